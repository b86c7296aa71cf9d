"""What a story calls packets."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["PacketNames", "flow_of", "plural"]


class PacketNames:
    """Names of packets by their labels, `flow/sequence`.

    A packet is called by its number alone if there is only one flow.
    """

    def __init__(self, flow_names: Sequence[str]) -> None:
        self._flow_names = flow_names

    def name(self, label: str | None) -> str:
        """Of one packet; of one that nobody knows without a label."""
        if label is None:
            return "a packet"
        if len(self._flow_names) <= 1:
            return f"packet {_sequence(label)}" if _sequence(label).isdecimal() else _sequence(label)
        return f"{self._flow_names[int(flow_of(label))]} {_sequence(label)}"

    def listed(self, first: str, last: str, packets: int, flows: int) -> str:
        """So many packets of so many flows: `packets 3 and 4`, `packets 0 to 4`."""
        if packets == 1:
            return self.name(first)
        if flows > 1:
            return f"{packets:,} packets"
        name = "packets" if len(self._flow_names) <= 1 else self._flow_names[int(flow_of(first))]
        if not _sequence(first).isdecimal():
            return f"{packets:,} packets, {_sequence(first)} to {_sequence(last)}"
        return f"{name} {_sequence(first)} {'and' if packets == 2 else 'to'} {_sequence(last)}"


def flow_of(label: str) -> str:
    """The flow in a label."""
    return label.partition("/")[0]


def _sequence(label: str) -> str:
    return label.partition("/")[2]


def plural(number: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
