"""`ironband measure intervals`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from capture.published_intervals import PUBLISHED, PUBLISHED_PACKETS, SHORT_US, interval_classes, total_variation
from cosim.pictures.laboratory_pictures import IntervalPanel, interval_figure
from cosim.scenario.laboratory import flow_scenario
from ironband.measure.laboratory import Asked, Laboratory, NothingToMeasure
from laboratory.flow_intervals import FlowIntervals, FlowKey, FlowTimes

__all__ = ["measure_intervals"]

_FAR: Final = 0.1
"""Total variation from a published table, at most."""

_PLACES: Final = ["H1:out", "R:in", "H1:host", "R:host"]
_HEADERS: Final = 64
"""Bytes kept of each packet: hundreds of thousands are captured, and only their headers are looked at."""

_SENDER_LID: Final = 1
_OF_SENDERS: Final = {1: "one flow", 2: "one of two flows"}
_HOSTS: Final = {1: "1 host sends", 2: "2 hosts send each"}
_AT: Final = {"H1[1] host": "at its sender", "R[1] host": "at its receiver"}


class _Seen(NamedTuple):
    """A flow at a place; PUBLISHED is the key of the table that it is compared with, empty for none."""

    place: str
    key: FlowKey
    scenario: str
    published: str
    times: FlowTimes


def measure_intervals(packets: int, transport: Literal["uc", "rc"], **asked: Any) -> int:
    """Measure and report; the exit status, 1 if a host's table is too far from the published one.

    With fewer packets than that has there are too few pauses of the host to compare.

    Raises:
        UserError: no capture, or one without two packets of a flow.
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    laboratory = Laboratory("intervals", Asked(**asked))
    told = asked["given"] is not None
    seen: list[_Seen] = []
    for senders in (1,) if told else (1, 2):
        with laboratory.capture(
            flow_scenario(packets, senders, transport), _PLACES, f"-{senders}", _HEADERS
        ) as reading:
            intervals = FlowIntervals()
            reading.read(intervals)
            title = reading.place if told else f"{_HOSTS[senders]} {packets:,} packets"
            found = sorted(_seen(intervals, reading.capture.directions, title, 0 if told else senders))
            if not found:
                raise NothingToMeasure(f"{reading.place}: no two data packets of a flow")
            _print(laboratory, title, found)
            _print_turns(laboratory, intervals, reading.capture.directions)
            seen += found
    compared = [one for one in seen if one.published]
    far = [_variation(one) for one in compared]
    enough = packets >= PUBLISHED_PACKETS
    wanted = (
        f"at most {_FAR}" if enough else f"at most {_FAR} with {PUBLISHED_PACKETS:,} packets, which have more pauses"
    )
    for one, variation in zip(compared, far, strict=True):
        laboratory.print(f"{one.published}: total variation from the published table {variation:.3f}, {wanted}")
    panels = [_panel(one) for one in compared or seen]
    results = {"flows": [_json(one) for one in seen]}
    return laboratory.finish(
        interval_figure(panels), results, held=not enough or all(variation <= _FAR for variation in far)
    )


def _seen(intervals: FlowIntervals, directions: Sequence[str], title: str, senders: int) -> Iterator[_Seen]:
    for key, times in intervals.flows.items():
        place = directions[key.direction]
        compared = senders and place in _AT and key.slid == _SENDER_LID
        if times.packets > 1:
            yield _Seen(place, key, title, f"{_OF_SENDERS[senders]}, {_AT[place]}" if compared else "", times)


def _print(laboratory: Laboratory, title: str, found: Sequence[_Seen]) -> None:
    laboratory.print(title)
    laboratory.print(f"  {'':32} {'packets':>9} {'mean ns':>9} {'usual ns':>9} {'share of the usual µs':>22}")
    for place, key, _scenario, _published, times in found:
        name = f"{place}, LID {key.slid} to {key.dlid}"
        laboratory.print(
            f"  {name:32} {times.packets:>9,} {times.mean_ns:>9,.0f} {times.usual_ns:>9,} {times.usual_share:>22.1%}"
        )
    shown = [one for one in found if one.published]
    if not shown:
        return
    laboratory.print(f"  {'':>8}" + "".join(f"{one.place:>16}{'published':>11}" for one in shown))
    tables = [(interval_classes(one.times.microseconds), PUBLISHED[one.published]) for one in shown]
    for class_us in range(SHORT_US + 1):
        label = f"{class_us} µs" if class_us < SHORT_US else "longer"
        cells = (f"{counts[class_us]:>16,}{published[class_us]:>11,}" for counts, published in tables)
        laboratory.print(f"  {label:>8}" + "".join(cells))


def _print_turns(laboratory: Laboratory, intervals: FlowIntervals, directions: Sequence[str]) -> None:
    for direction, turns in intervals.turns.items():
        if turns:
            said = ", ".join(f"{count:,} of {length}" for length, count in sorted(turns.items()))
            laboratory.print(f"  {directions[direction]}: flows take turns, packets in a row: {said}")


def _variation(one: _Seen) -> float:
    return total_variation(interval_classes(one.times.microseconds), PUBLISHED[one.published])


def _panel(one: _Seen) -> IntervalPanel:
    title = one.published or f"{one.place}, LID {one.key.slid} to {one.key.dlid}"
    return IntervalPanel(title, interval_classes(one.times.microseconds), PUBLISHED.get(one.published))


def _json(one: _Seen) -> dict[str, Any]:
    result = {
        "scenario": one.scenario,
        "place": one.place,
        "slid": one.key.slid,
        "dlid": one.key.dlid,
        "packets": one.times.packets,
        "mean_ns": one.times.mean_ns,
        "usual_ns": one.times.usual_ns,
        "intervals_us": dict(sorted(one.times.microseconds.items())),
    }
    if one.published:
        result |= {"published": one.published, "total_variation": _variation(one)}
    return result
