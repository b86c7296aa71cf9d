"""What `ironband run` says of flows of messages, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from cosim.analysis.measurement import least_over_mean
from cosim.analysis.message_measurement import ServedMessages
from verbs.incidents import Incident
from wire.parameters import node_text

__all__ = ["message_flow_json", "message_lines"]

_MOST_FLOWS: Final = 40

_NAMES: Final = {
    Incident.SEQUENCE_NAK: "NAK PSN sequence error",
    Incident.RNR_NAK: "RNR NAK",
    Incident.IMPLIED_NAK: "answer missing",
    Incident.TIMEOUT: "time-out",
    Incident.REFUSED: "request refused",
    Incident.DUPLICATE: "duplicate",
    Incident.BECN: "BECN",
}
"""Each NAK once, where it comes; what a responder has sent may be lost."""


def message_lines(flows: Sequence[ServedMessages], symbol_time_ns: float) -> Iterator[tuple[str, str]]:
    """A table, and what there was to recover from, line by line with its style."""
    shown = flows[:_MOST_FLOWS]
    names = {id(served): _name(served) for served in shown}
    width = max(map(len, ("messages of", *names.values())))
    heading = f"{'messages of':{width}}  {'posted':>8}  {'arrived':>8}  {'Gbit/s':>7}  {'of link':>7}"
    latencies = f"{'least':>9}  {'median':>9}  {'most':>9}"
    yield f"{heading}  {latencies}  (of payload; of what headers leave; latencies in cycles)", "bold"
    for served in shown:
        speed = served.bytes_per_cycle * 8 / symbol_time_ns
        line = f"{names[id(served)]:{width}}  {served.posted:>8,}  {served.arrived:>8,}  {speed:>7.2f}"
        cycles = served.latencies
        yield f"{line}  {served.share:>7.3f}  {cycles.least:>9,}  {cycles.percentile(50):>9,}  {cycles.most:>9,}", ""
    if len(shown) < len(flows):
        yield f"and {len(flows) - len(shown):,} more", ""
    for served in shown:
        if told := [*_incidents(served), *_errors(served)]:
            yield f"{names[id(served)]}: {', '.join(told)}", "bold yellow"
    for name, fairness in _fairness(flows).items():
        yield f"{name}: the least served host got {fairness:.3f} of the mean", ""


def _name(served: ServedMessages) -> str:
    flow = served.stream.flow
    return f"{served.stream.name}, {flow.transport.upper()} {flow.operation}"


def _incidents(served: ServedMessages) -> Iterator[str]:
    for incident, name in _NAMES.items():
        if number := served.incidents[incident]:
            yield f"{number:,} {name}{'' if number == 1 else 's'}"


def _errors(served: ServedMessages) -> Iterator[str]:
    for status, number in served.failed.items():
        yield f"{number:,} ended with {status.name}"


def _fairness(flows: Sequence[ServedMessages]) -> dict[str, float]:
    """Of flows that many hosts send."""
    amounts: dict[str, list[int]] = {}
    for served in flows:
        amounts.setdefault(served.stream.flow.label, []).append(served.payload_bytes)
    return {label: least_over_mean(given) for label, given in amounts.items() if len(given) > 1}


def message_flow_json(served: ServedMessages, symbol_time_ns: float) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    stream, flow, cycles = served.stream, served.stream.flow, served.latencies
    return {
        "name": stream.name,
        "from": node_text(stream.source),
        "to": node_text(stream.destination),
        "sl": flow.sl,
        "transport": flow.transport,
        "operation": flow.operation,
        "message_bytes": flow.size,
        "posted_messages": served.posted,
        "arrived_messages": served.arrived,
        "payload_bytes": served.payload_bytes,
        "throughput_gbit_per_s": served.bytes_per_cycle * 8 / symbol_time_ns,
        "share_of_what_headers_leave": served.share,
        "latency_min_cycles": cycles.least,
        "latency_median_cycles": cycles.percentile(50),
        "latency_max_cycles": cycles.most,
        "retries": served.retries,
        "incidents": {incident.value: served.incidents[incident] for incident in Incident},
        "failed_requests": {status.name: number for status, number in served.failed.items()},
    }
