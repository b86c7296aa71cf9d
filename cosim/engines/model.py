"""A scenario on the golden model: no RTL at all."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import model.fabric
from cosim.engines.base import OnDelivery, Progress, RunSpec, Stimulus, WavesUnsupported
from cosim.mail import Delivery, unpack_words
from wire.trace import Record

__all__ = ["simulate"]

_PROGRESS_RECORDS = 4096


def simulate(
    spec: RunSpec,
    work_dir: Path,
    waves: Path | None,
    on_delivery: OnDelivery | None,
    progress: Progress,
) -> Generator[Record, None, None]:
    """Run a specification on the model; see `cosim.engines.base.Engine`.

    Raises:
        WavesUnsupported: WAVES is given.
    """
    if waves is not None:
        raise WavesUnsupported(f"waves {waves}: the model has no wires to record")
    stimulus = Stimulus(spec)

    def deliver(packet: model.fabric.Delivery) -> None:
        if on_delivery is not None:
            on_delivery(Delivery(packet.cycle, packet.node, packet.slot, unpack_words(packet.data)))

    fabric = model.fabric.Fabric(
        spec.parameters, stimulus.controls_until(spec.cycles), stimulus.posts_until(spec.cycles), deliver
    )
    for count, record in enumerate(fabric.run(spec.cycles)):
        if count % _PROGRESS_RECORDS == 0:
            progress(record.cycle)
        yield record
    progress(spec.cycles)
