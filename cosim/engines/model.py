"""A scenario on the golden model: no RTL at all."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import model.fabric
from cosim.engines import compiled_model
from cosim.engines.base import OnDelivery, Progress, RunSpec, Stimulus, WavesUnsupported
from cosim.mail import Delivery, unpack_words
from wire.trace import Kind, Record

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
    delivered: dict[tuple[int, int], Delivery] = {}

    def deliver(packet: model.fabric.Delivery) -> None:
        words = unpack_words(packet.data)
        delivered[packet.cycle, packet.node] = Delivery(packet.cycle, packet.node, packet.slot, words)

    fabric = compiled_model.fabric_class()(
        spec.parameters,
        stimulus.controls_until(spec.cycles),
        stimulus.posts_until(spec.cycles),
        None if on_delivery is None else deliver,
    )
    for count, record in enumerate(fabric.run(spec.cycles)):
        if count % _PROGRESS_RECORDS == 0:
            progress(record.cycle)
        if on_delivery is not None and record.kind == Kind.DELIVER:
            on_delivery(delivered.pop((record.cycle, record.source >> 8)))
        yield record
    progress(spec.cycles)
