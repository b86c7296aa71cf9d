"""What `ironband show` prints of a capture, and the same as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from capture.crc_check import check_crcs
from capture.fields import Fields
from capture.intervals import IntervalTable
from capture.reader import CaptureReader, capture_reader
from capture.selection import Selection
from capture.timeline import Gaps, Timeline
from capture.told_packet import told_packets
from capture.totals import Totals
from capture.views import AnalyserView, Ladder, View
from ironband.common import write_json
from toolchain.errors import UserError

__all__ = ["report_capture"]


def report_capture(
    place: str, view: str, selection: Selection, bin_ns: int, bits_per_s: int, json_file: str | None
) -> int:
    """Read and print; the exit status.

    Raises:
        UserError: no capture, a damaged one, or a port that is not in it.
        OutputError: the JSON cannot be written.
    """
    table = IntervalTable(bin_ns) if view == "intervals" else None
    shown: View | None = None
    if table is None and json_file is None:
        shown = Ladder() if view == "ladder" else AnalyserView()
    totals = Totals()
    with capture_reader(place) as capture:
        for lines in _read(capture, selection, Timeline(bits_per_s), totals, table, shown):
            _print(lines)
        if selection.ports and not any(map(selection.at_ports, capture.directions)):
            known = ", ".join(capture.directions) or "none"
            raise UserError(f"{place}: no packet at {', '.join(selection.ports)}; its directions are: {known}")
        if json_file is not None:
            write_json(json_file, _json(capture, totals, table))
        elif table is not None:
            _print(table.lines(capture.directions))
    return 0


def _read(
    capture: CaptureReader,
    selection: Selection,
    timeline: Timeline,
    totals: Totals,
    table: IntervalTable | None,
    shown: View | None,
) -> Iterator[Iterable[str]]:
    """The lines of each chunk; TABLE counts the intervals between packets that were chosen."""
    chosen_timeline = Timeline()
    for whole in capture.chunks():
        gaps = timeline.follow(whole, capture.speeds)
        wanted = selection.of(whole, Fields(whole), capture.directions)
        if not wanted.any():
            continue
        chunk = whole.where(wanted)
        fields = Fields(chunk)
        crcs = check_crcs(chunk, fields)
        totals.add(chunk, crcs)
        if table is not None:
            interval_ns = chosen_timeline.follow(chunk, capture.speeds).interval_ns
            table.count(chunk.direction, interval_ns)
        if shown is not None:
            chosen = Gaps(*(column[wanted] for column in gaps))
            yield shown.lines(told_packets(chunk, fields, crcs, chosen), capture.directions)


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _json(capture: CaptureReader, totals: Totals, table: IntervalTable | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "packets": totals.packets,
        "records_left_out": capture.left_out,
        "directions": totals.json(capture.directions),
    }
    if table is not None:
        result["intervals"] = [
            {"from_ns": least, "packets": {capture.directions[number]: count for number, count in counts.items()}}
            for least, counts in table.rows()
        ]
        result["bin_ns"] = table.bin_ns
    return result
