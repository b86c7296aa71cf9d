"""`ironband measure buffer`."""

from __future__ import annotations

from typing import Any

from cosim.pictures.laboratory_pictures import buffer_figure
from cosim.scenario.laboratory import buffer_scenario
from ironband.measure.laboratory import Asked, Laboratory, NothingToMeasure
from laboratory.buffer_size import BufferSize, Sender
from wire.packet import BLOCK_BYTES

__all__ = ["measure_buffer"]

_KIB = 1024
_NEAR = 0.5
"""Packets; whole ones are held."""


def measure_buffer(packets: int, vls: int, buffer_blocks: int, **asked: Any) -> int:
    """Measure and report; the exit status, 1 if it is another number of packets than was configured.

    Raises:
        UserError: no capture, or one in which no two hosts waited for each other.
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    laboratory = Laboratory("buffer", Asked(**asked))
    with laboratory.capture(buffer_scenario(packets, vls, buffer_blocks), ["A:out", "B:out"]) as reading:
        size = BufferSize(reading.capture)
        reading.read(size)
        directions = reading.capture.directions
    measured = [
        (vl, sender, number)
        for vl, senders in sorted(size.senders.items())
        for sender in senders
        if (number := size.packets_held(vl).get(sender.direction)) is not None
    ]
    if not measured:
        reason = f"{reading.place}: no two senders that waited for each other on a VL"
        raise NothingToMeasure(reason if reading.run is None else f"{reason}: expected more --packets than {packets}")
    for vl, sender, number in measured:
        laboratory.print(f"{directions[sender.direction]}, VL {vl}")
        laboratory.print(
            f"  {sender.packets:,} packets, alone every {sender.pace_ns:,.0f} ns, waiting for credits "
            f"every {sender.shared_pace_ns:,.0f} ns"
        )
        laboratory.print(
            f"  the switch holds {number:.2f} of them: {round(number)} packets of {sender.blocks} blocks, "
            f"{_kib(round(number) * sender.blocks)}"
        )
    held = True
    if reading.run is not None:
        room = buffer_blocks // measured[0][1].blocks
        laboratory.print(
            f"configured: {buffer_blocks} blocks, {_kib(buffer_blocks)}, for each VL: room for {room} packets"
        )
        held = len(measured) == 2 * vls and all(abs(number - room) < _NEAR for _vl, _sender, number in measured)
    results = {"ports": [_json(directions[sender.direction], vl, sender, number) for vl, sender, number in measured]}
    return laboratory.finish(buffer_figure(size, directions), results, held=held)


def _kib(blocks: int) -> str:
    return f"{blocks * BLOCK_BYTES / _KIB:.1f} KiB"


def _json(direction: str, vl: int, sender: Sender, number: float) -> dict[str, Any]:
    return {
        "direction": direction,
        "vl": vl,
        "packets": sender.packets,
        "pace_ns": sender.pace_ns,
        "shared_pace_ns": sender.shared_pace_ns,
        "packets_held": number,
        "blocks_per_packet": sender.blocks,
    }
