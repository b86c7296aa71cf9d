"""A port's link side on the bench: stimulus by cycle in, what it did by cycle out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from rtl.link.port import PORT_KINDS, LinkPort
from rtl.registers.port_access import PortDecoder
from tests.rtl.registers.decoded import behind_decoder, give
from tests.rtl.simulation import Simulation
from wire.codes import PortState
from wire.flow_control import FlowControlOp, FlowControlPacket
from wire.packet import Packet, build_ud_send
from wire.registers import Counter, PacketCounter, PortRegister
from wire.symbols import Row, frame_data_packet, frame_link_packet, idle_row
from wire.trace import Kind

ACTIVE_FROM = 8
"""The cycle in which `PortBench.activate` makes Active visible."""

DECIDED = 2
"""Cycles from a packet's row 1, h, until its node objects or it is accepted; free and ABR show it in the next."""

TO_STAGE = 2
"""Cycles from a row's read, x_r, to the transmit stage."""

TO_WIRES = TO_STAGE + 1
"""Cycles from a row's read, x_r, to the wires, w_r."""


class Seen(NamedTuple):
    """A record of the port's trace."""

    cycle: int
    kind: Kind
    words: tuple[int, ...]


def data_rows(payload: int = 8, *, vl: int = 0, dlid: int = 5, good: bool = True, **more: Any) -> list[Row]:
    """The rows of a UD SEND Only packet; 24 + 8 bytes of headers and ICRC around the payload."""
    return frame_data_packet(packet(payload, vl=vl, dlid=dlid, **more).wire, good)


def packet(payload: int = 8, *, vl: int = 0, dlid: int = 5, **more: Any) -> Packet:
    """A UD SEND Only packet of n = 8 + payload / 4 words."""
    content = bytes(i * 7 & 0xFF for i in range(payload))
    return build_ud_send(slid=1, dlid=dlid, dest_qp=1, src_qp=2, q_key=3, payload=content, vl=vl, sl=vl & 7, **more)


def link_rows(*, op: int = FlowControlOp.NORMAL, vl: int = 0, fctbs: int = 0, fccl: int = 0) -> list[Row]:
    """The two rows of a flow control packet."""
    return frame_link_packet(FlowControlPacket(FlowControlOp(op), fctbs, vl, fccl).encode())


@lru_cache
def _simulated(kind: str, vls: int, mtu: int) -> tuple[LinkPort, PortDecoder, Simulation]:
    dut = LinkPort(kind, vls, mtu, blocks=4095, others=63)
    design, decoder = behind_decoder(dut, vls, mtu, is_port=True)
    return dut, decoder, Simulation(design)


class PortBench:
    """A `LinkPort`, its stimulus, and afterwards what was seen.

    Attributes:
        records: the trace, in order.
        seen: for each name of an output the values by cycle.
        watched: values by cycle of the register read in every cycle (`watch`) from `watch_from` on.
    """

    def __init__(self, kind: str = "switch", vls: int = 1, mtu: int = 256) -> None:
        self.dut, self._decoder, self._simulation = _simulated(kind, vls, mtu)
        self.vls = vls
        self._rows: dict[int, Row] = {}
        self._inputs: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        self._accesses: dict[int, dict[str, int]] = {}
        self._sends: dict[int, dict[str, int]] = {}
        self.narrow = False  # rows come in every fourth cycle
        self.watch: int | None = None
        self.watch_from = 0
        self.records: list[Seen] = []
        self.seen: defaultdict[str, list[Any]] = defaultdict(list)
        self.watched: dict[int, int] = {}
        self.at(0, up=1, free=[64] * vls)

    def at(self, cycle: int, **inputs: Any) -> None:
        """Set inputs from this cycle on."""
        self._inputs[cycle].update(inputs)

    def pulse(self, cycle: int, **inputs: Any) -> None:
        """Set inputs for this cycle only."""
        self._inputs[cycle].update(inputs)
        for name in inputs:
            self._inputs[cycle + 1].setdefault(name, 0)

    def grant(self, g: int) -> None:
        """A flow control packet is granted at g; the port is told in the cycle after."""
        self.pulse(g + 1, granted=1)

    def receive(self, cycle: int, rows: Iterable[Row], step: int = 1) -> int:
        """Put rows on the wires, the first in this cycle; returns the cycle after the last."""
        for row in rows:
            assert cycle not in self._rows, f"two rows in cycle {cycle}"
            self._rows[cycle] = row
            cycle += step
        return cycle

    def write(self, cycle: int, register: int, value: int) -> None:
        """A bus write given in this cycle (the register watched is not read in it)."""
        assert cycle not in self._accesses, f"two bus accesses in cycle {cycle}"
        self._accesses[cycle] = {"write": 1, "offset": register, "wdata": value}

    def send(
        self, x_0: int, rows: Sequence[Row], *, slot: int = 0, bad: bool = False, step: int = 1, **more: int
    ) -> int:
        """Rows read from a buffer, row 0 at x_0; returns the cycle of the last read."""
        n = len(rows) - 1
        need = (4 * n + 2 + 63) // 64
        for index, row in enumerate(rows):
            fields = {"n": n, "need": need, "slot": slot, **more}
            fields |= {"valid": 1, "data": row.data, "first": index == 0, "last": index == n}
            self._sends[x_0 + index * step + TO_STAGE] = fields | {"bad": bad and index == n}
        return x_0 + n * step

    def activate(self) -> None:
        """Make the port Active from `ACTIVE_FROM` on; the credit registers stay 0."""
        self.write(1, PortRegister.STATE, PortState.ARMED)
        self.receive(4, link_rows())
        self.write(6, PortRegister.STATE, PortState.ACTIVE)

    def run(self, cycles: int) -> None:
        """Simulate these cycles."""
        self._simulation.run(lambda ctx: self._drive(ctx, cycles))

    async def _drive(self, ctx: Any, cycles: int) -> None:
        dut = self.dut
        reads = [False, False, False]  # of the three cycles before
        for cycle in range(cycles):
            ctx.set(dut.phase, cycle % 4)
            self._drive_inputs(ctx, cycle)
            self._drive_rows(ctx, cycle)
            access = self._accesses.get(cycle)
            if access is None and self.watch is not None and cycle >= self.watch_from:
                access = {"read": 1, "offset": self.watch}
            give(ctx, self._decoder, access)
            ctx.set(dut.send, self._sends.get(cycle, {}))

            answer = ctx.get(dut.reg_rdata)
            if reads.pop(0):
                self.watched[cycle - 1] = answer
            else:
                assert answer == 0, f"cycle {cycle}: an answer nobody asked for"
            reads.append(access is not None and "read" in access)
            self._sample(ctx, cycle)
            await ctx.tick()

    def _drive_inputs(self, ctx: Any, cycle: int) -> None:
        for name, value in self._inputs.get(cycle, {}).items():
            ctx.set(self._member(name), value)

    def _member(self, name: str) -> Any:
        """A member of the port, or of one of its interfaces."""
        places = (self.dut, self.dut.admission, self.dut.sending, self.dut.sending.credits)
        return next(getattr(place, name) for place in places if hasattr(place, name))

    def _drive_rows(self, ctx: Any, cycle: int) -> None:
        rx = self.dut.rx
        valid = not self.narrow or cycle % 4 == 0
        row = self._rows.get(cycle)
        assert row is None or valid, f"cycle {cycle} has no row on a 1X port"
        data, k = row or idle_row(cycle)
        ctx.set(rx.data, data)
        ctx.set(rx.k, k)
        ctx.set(rx.valid, valid)

    def _sample(self, ctx: Any, cycle: int) -> None:
        dut, seen = self.dut, self.seen
        for name in (
            "state",
            "state_reported",
            "operational_follows",
            "wide",
            "max_words",
            "lookup_dlid",
            "acceptable",
            "accept",
        ):
            seen[name].append(ctx.get(self._member(name)))
        credits = dut.sending.credits
        seen["fcp_urgent"].append(ctx.get(credits.urgent))
        seen["fcp_changed"].append(ctx.get(credits.changed))
        for name in ("cl", "tbs"):
            seen[name].append([ctx.get(getattr(credits, name)[vl]) for vl in range(self.vls)])
        seen["tx"].append(Row(ctx.get(dut.tx.data), ctx.get(dut.tx.k)) if ctx.get(dut.tx.valid) else None)
        seen["header"].append(_fields(ctx, dut.admission.header))
        seen["write"].append(_fields(ctx, dut.admission.write))
        valid = ctx.get(dut.trace.valid)
        for slot, kind in enumerate(PORT_KINDS):
            if valid >> slot & 1:
                words = tuple(ctx.get(dut.trace.payload[slot][i]) for i in range(5))
                self.records.append(Seen(cycle, kind, words))

    def last_watched(self) -> int:
        """The last value read of the register watched."""
        return self.watched[max(self.watched)]

    def of(self, kind: Kind) -> list[Seen]:
        """The records of one kind."""
        return [record for record in self.records if record.kind == kind]

    def changes(self, name: str) -> list[tuple[int, Any]]:
        """An output's first value and its changes: (cycle, value)."""
        values = self.seen[name]
        return [(c, v) for c, v in enumerate(values) if c == 0 or v != values[c - 1]]

    def counts(self, counter: Counter | PacketCounter | PortRegister) -> list[tuple[int, int]]:
        """The changes of the register watched: (cycle in which the value is first visible, value)."""
        assert self.watch == counter
        cycles = sorted(self.watched)
        pairs = [(c, self.watched[c]) for c in cycles]
        return [pair for before, pair in pairwise(pairs) if before[1] != pair[1]]


def _fields(ctx: Any, view: Any) -> dict[str, int] | None:
    """The fields of a struct with `valid`, None if it is not."""
    if not ctx.get(view.valid):
        return None
    return {name: int(ctx.get(view[name])) for name, _ in view.shape()}
