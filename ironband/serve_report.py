"""What is told of the queue pairs of a fabric that was served, at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from doors.door import NS_PER_CYCLE
from doors.transports import Transports

__all__ = ["data_lines", "data_results"]

_MS_NS: Final = 1_000_000
_US_NS: Final = 1_000


def data_lines(transports: Transports, cycles: int, seconds: float, *, operations: bool) -> Iterator[str]:
    """For people: what it took by the clock and in the fabric; with OPERATIONS, a line for each kind of request too."""
    ports = [port for port in transports.hosts.ports if port.packets]
    if not ports:
        return
    packets, size = sum(port.packets for port in ports), sum(port.bytes for port in ports)
    passed = cycles * NS_PER_CYCLE / _MS_NS
    yield (
        f"queue pairs sent {packets:,} packets, {size:,} bytes; "
        f"{passed:,.3f} ms passed in the fabric, {seconds:,.1f} s by the clock"
    )
    if operations:
        yield f"{'host':<12}{'operation':<22}{'number':>10}{'bytes':>14}{'least us':>11}{'median':>11}{'most':>11}"
        for times in transports.operations.times():
            least, middle, most = (
                f"{span * NS_PER_CYCLE / _US_NS:,.2f}" for span in (times.least, times.middle, times.most)
            )
            yield (
                f"{times.host:<12}{times.operation.lower():<22}{times.number:>10,}{times.bytes:>14,}"
                f"{least:>11}{middle:>11}{most:>11}"
            )


def data_results(transports: Transports, names: Sequence[str], seconds: float) -> dict[str, Any]:
    """For programs; NAMES are the fabric's nodes."""
    ports = (port for port in transports.hosts.ports if port.packets)
    return {
        "seconds": seconds,
        "data": {names[port.node]: {"packets": port.packets, "bytes": port.bytes} for port in ports},
        "operations": [times._asdict() for times in transports.operations.times()],
    }
