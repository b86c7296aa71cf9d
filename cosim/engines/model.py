"""A scenario on the golden model: no RTL at all."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import model.fabric
from cosim.engines import compiled_model
from cosim.engines.base import OnDelivery, Progress, RunSpec, Stimulus, WavesUnsupported
from cosim.mail import Delivery, unpack_words
from wire.trace import AGENT_PORT, Kind, Record, port_of_source

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
    answered = spec.actor is not None
    wanted = answered or on_delivery is not None
    delivered: dict[tuple[int, int], Delivery] = {}

    def deliver(packet: model.fabric.Delivery) -> None:
        words = unpack_words(packet.data)
        delivered[packet.cycle, packet.node] = Delivery(packet.cycle, packet.node, packet.slot, words)

    fabric = compiled_model.fabric_class()(
        spec.parameters,
        stimulus.controls_until(spec.cycles),
        () if answered else stimulus.posts_until(spec.cycles),
        deliver if wanted else None,
    )
    finished = 0
    while (stop := stimulus.until(finished)) > finished:
        if answered:
            for post in stimulus.posts_until(stop):
                fabric.post(post)
        for count, record in enumerate(fabric.run(stop)):
            if count % _PROGRESS_RECORDS == 0:
                progress(record.cycle)
            if wanted and record.kind == Kind.DELIVER:
                node, port = port_of_source(record.source)
                if port != AGENT_PORT:
                    delivery = delivered.pop((record.cycle, node))
                    stimulus.delivered(delivery)
                    if on_delivery is not None:
                        on_delivery(delivery)
            yield record
        finished = stop
    progress(finished)
