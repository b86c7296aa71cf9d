"""A node's PMA and the counters that it reads, from the trace: docs/management.md, section 6, read naively.

What ports count is in the records of packets received and sent. PortXmitWait is not, of all VLs or of one: it is left
out. No watchdog expires here, so that FLOW_CTL_UPDATE_ERRORS is what was written.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.agent_steps import LAP, slot_for_answer, slot_in_set
from wire.codes import LNH, Q_KEY_GSI, QP_GSI
from wire.crc import ICRC_BYTES, icrc_good
from wire.headers import BTH, DETH, GRH, LRH
from wire.layout import Layout
from wire.mad import BASE_VERSION, CLASS_VERSION, MAD_BYTES, MAD_HEADER, MadMethod, MadStatus, MgmtClass
from wire.opcodes import Opcode
from wire.pma import (
    ALL_PORTS,
    PMA_COUNTERS,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_RCV_ERROR_DETAILS,
    PORT_SAMPLES_CONTROL,
    PORT_VL_XMIT_WAIT_COUNTERS,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
)
from wire.registers import (
    COUNTER_WIDTHS,
    DATA_BITS,
    DETAIL_BITS,
    VL_XMIT_WAIT,
    Counter,
    CounterHigh,
    Detail,
    PacketCounter,
    PortRegister,
)
from wire.trace import Discard, Kind, Record, Verdict
from wire.trace_layout import RxData, TxData, TxDiscard

__all__ = [
    "SIZES",
    "WAITS",
    "Access",
    "NaivePort",
    "accesses_of",
    "answer_to",
    "asked",
    "comparable",
    "is_request",
    "laps_of",
    "looks_like_request",
    "port_select",
]

_DETH = LRH.size_bytes + BTH.size_bytes
_MAD = _DETH + DETH.size_bytes
_DATA = _MAD + 64
_BYTES = _MAD + MAD_BYTES + ICRC_BYTES
SIZES = (_BYTES, _BYTES + GRH.size_bytes)
"""Bytes of a request without and with a GRH."""
_ONES_64 = (1 << 64) - 1
_ONES_32 = (1 << 32) - 1
_TICK_AT_RESET = 0x1F
_LOCAL_PHY_ERRORS = 15

_RCV_ERRORS = (Verdict.PHYSICAL, Verdict.LVER, Verdict.LENGTH, Verdict.VL, Verdict.VL15_HEADER, Verdict.OVERRUN)
_RELAY_ERRORS = (Verdict.NO_ROUTE, Verdict.LOOP, Verdict.VL_MAP)
_DETAILS = {
    Verdict.PHYSICAL: Detail.LOCAL_PHYSICAL_ERRORS,
    Verdict.LVER: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.LENGTH: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.VL: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.VL15_HEADER: Detail.MALFORMED_PACKET_ERRORS,
    Verdict.OVERRUN: Detail.BUFFER_OVERRUN_ERRORS,
    Verdict.NO_ROUTE: Detail.DLID_MAPPING_ERRORS,
    Verdict.DLID: Detail.DLID_MAPPING_ERRORS,
    Verdict.VL_MAP: Detail.VL_MAPPING_ERRORS,
    Verdict.LOOP: Detail.LOOPING_ERRORS,
}
_DISCARDS = {
    Discard.INACTIVE: Detail.INACTIVE_DISCARDS,
    Discard.NEIGHBOR_MTU: Detail.NEIGHBOR_MTU_DISCARDS,
    Discard.LIFE_TIME: Detail.LIFE_TIME_DISCARDS,
    Discard.HOQ_LIFE: Detail.HOQ_LIFE_DISCARDS,
}
WAITS = range(VL_XMIT_WAIT, VL_XMIT_WAIT + 16)
"""Registers that are not followed: ticks that VLs waited."""
_OF_DETAILS = {
    PmaAttribute.PORT_RCV_ERROR_DETAILS: (PORT_RCV_ERROR_DETAILS, Detail.LOCAL_PHYSICAL_ERRORS, 6),
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: (PORT_XMIT_DISCARD_DETAILS, Detail.INACTIVE_DISCARDS, 4),
    PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS: (PORT_VL_XMIT_WAIT_COUNTERS, VL_XMIT_WAIT, 16),
}
"""The format, the register of bit 0, and how many follow each other: two in each word from word 1 on."""
_EXTENDED = (
    ("port_xmit_data", CounterHigh.XMIT_DATA_HIGH, 2),
    ("port_rcv_data", CounterHigh.RCV_DATA_HIGH, 4),
    ("port_xmit_pkts", CounterHigh.XMIT_PKTS_HIGH, 6),
    ("port_rcv_pkts", CounterHigh.RCV_PKTS_HIGH, 8),
    ("port_unicast_xmit_pkts", CounterHigh.UNICAST_XMIT_PKTS_HIGH, 10),
    ("port_unicast_rcv_pkts", CounterHigh.UNICAST_RCV_PKTS_HIGH, 12),
    ("port_multicast_xmit_pkts", CounterHigh.MULTICAST_XMIT_PKTS_HIGH, 14),
    ("port_multicast_rcv_pkts", CounterHigh.MULTICAST_RCV_PKTS_HIGH, 16),
)

_WHOLE = {
    CounterHigh.XMIT_DATA_HIGH: Counter.XMIT_DATA,
    CounterHigh.RCV_DATA_HIGH: Counter.RCV_DATA,
    CounterHigh.XMIT_PKTS_HIGH: Counter.XMIT_PKTS,
    CounterHigh.RCV_PKTS_HIGH: Counter.RCV_PKTS,
    CounterHigh.UNICAST_XMIT_PKTS_HIGH: PacketCounter.UNICAST_XMIT_PKTS,
    CounterHigh.UNICAST_RCV_PKTS_HIGH: PacketCounter.UNICAST_RCV_PKTS,
    CounterHigh.MULTICAST_XMIT_PKTS_HIGH: PacketCounter.MULTICAST_XMIT_PKTS,
    CounterHigh.MULTICAST_RCV_PKTS_HIGH: PacketCounter.MULTICAST_RCV_PKTS,
}


class Access(NamedTuple):
    """An access of the agent: at a step, a write if there is a value. ``name`` is the field that a read fills."""

    step: int
    register: int
    value: int | None = None
    name: str = ""
    port: int = 0


@dataclass
class NaivePort:
    """The counters of a port. Accesses are given in the order of their cycles, after all records."""

    is_switch: bool
    vls: int
    _cycles: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _sums: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0]))
    _written: dict[int, tuple[int, int]] = field(default_factory=dict)
    _low: list[tuple[int, int, int]] = field(default_factory=lambda: [(-1, 0, 0)])
    _tick: int = _TICK_AT_RESET
    _update_errors: list[tuple[int, int]] = field(default_factory=lambda: [(-1, 0)])
    _physical: int = 0

    def sees(self, record: Record) -> None:
        """A record of this port, in their order."""
        if record.kind == Kind.RX_DATA:
            seen = record.cycle + 1
            self._counts(Counter.RCV_PKTS, seen)
            multicast = 0xC000 <= RxData.dlid.read(record) <= 0xFFFE
            self._counts(PacketCounter.MULTICAST_RCV_PKTS if multicast else PacketCounter.UNICAST_RCV_PKTS, seen)
            self._counts(Counter.RCV_DATA, seen, RxData.end_row.read(record))
            self._verdict(Verdict(RxData.verdict.read(record)), seen)
        elif record.kind == Kind.TX_DATA:
            self._counts(Counter.XMIT_PKTS, record.cycle)
            multicast = 0xC000 <= TxData.dlid(record) <= 0xFFFE
            counter = PacketCounter.MULTICAST_XMIT_PKTS if multicast else PacketCounter.UNICAST_XMIT_PKTS
            self._counts(counter, record.cycle)
            self._counts(Counter.XMIT_DATA, record.cycle, TxData.end_row.read(record))
        elif record.kind == Kind.TX_DISCARD:
            self._counts(Counter.XMIT_DISCARDS, record.cycle)
            reason = Discard(TxDiscard.reason.read(record))
            if reason in _DISCARDS:
                self._counts(_DISCARDS[reason], record.cycle)

    def icrc_wrong(self, seen: int) -> None:
        """A packet that came by this port ended in the agent, and its ICRC was wrong."""
        self._counts(Counter.RCV_ERRORS, seen)
        self._counts(Detail.LOCAL_PHYSICAL_ERRORS, seen)

    def _verdict(self, verdict: Verdict, seen: int) -> None:
        if verdict in _RELAY_ERRORS or (verdict == Verdict.DLID and self.is_switch):
            self._counts(Counter.RCV_SWITCH_RELAY_ERRORS, seen)
        elif verdict in _RCV_ERRORS:
            self._counts(Counter.RCV_ERRORS, seen)
        elif verdict == Verdict.REMOTE:
            self._counts(Counter.RCV_REMOTE_PHYSICAL_ERRORS, seen)
        elif verdict == Verdict.VL15_DROPPED:
            self._counts(Counter.VL15_DROPPED, seen)
        if verdict in _DETAILS and (verdict != Verdict.DLID or self.is_switch):
            self._counts(_DETAILS[verdict], seen)
        self._physical += verdict == Verdict.PHYSICAL
        if self._physical > _LOCAL_PHY_ERRORS:
            self._physical = 0
            self._counts(Counter.LOCAL_LINK_INTEGRITY_ERRORS, seen)

    def _counts(self, counter: int, seen: int, amount: int = 1) -> None:
        insort(self._cycles[counter], seen)  # what the agent finds comes later than what the link does
        self._sums[counter].append(self._sums[counter][-1] + amount)

    def _whole(self, counter: int, cycle: int) -> int:
        """Visible in a cycle: what was written, and what has been counted since the cycle in which that showed."""
        since, value = self._written.get(counter, (-1, 0))
        before, now = (bisect_right(self._cycles[counter], at) for at in (since, cycle))
        return min(value + self._sums[counter][now] - self._sums[counter][before], _ONES_64)

    def _low_at(self, cycle: int) -> int:
        return self._low[bisect_right(self._low, (cycle, 2, 0)) - 1][2]

    def _low_becomes(self, cycle: int, by_write: bool, value: int) -> None:
        insort(self._low, (cycle, by_write, value))

    def reads(self, cycle: int, register: int) -> int:
        """A read given in a cycle."""
        seen = cycle + 2
        if register == PortRegister.TICK:
            return self._tick
        if register == PortRegister.EXTENDED_LOW:
            return self._low_at(seen)
        if register == PortRegister.FLOW_CTL_UPDATE_ERRORS:
            return self._update_errors[bisect_right(self._update_errors, (seen, _ONES_32)) - 1][1]
        if register in WAITS:
            return 0
        if register in _WHOLE:
            whole = self._whole(_WHOLE[CounterHigh(register)], seen)
            self._low_becomes(seen + 1, False, whole & _ONES_32)
            return whole >> 32
        if register in set(PacketCounter):
            bits = DATA_BITS
        else:
            bits = DETAIL_BITS if register in set(Detail) else COUNTER_WIDTHS[Counter(register)]
        return min(self._whole(register, seen), (1 << bits) - 1)

    def writes(self, cycle: int, register: int, value: int) -> None:
        """A write given in a cycle."""
        seen = cycle + 2
        if register == PortRegister.TICK:
            self._tick = value
        elif register == PortRegister.EXTENDED_LOW:
            self._low_becomes(seen, True, value)
        elif register == PortRegister.FLOW_CTL_UPDATE_ERRORS:
            chosen = self._low_at(cycle + 1)
            held = self._update_errors[-1][1]
            for vl in range(self.vls):
                if chosen >> vl & 1:
                    of_vl = 3 << 30 - 2 * vl
                    held = held & ~of_vl | value & of_vl
            self._update_errors.append((seen, held))
        elif register in _WHOLE:
            self._written[_WHOLE[CounterHigh(register)]] = seen, value << 32 | self._low_at(cycle + 1)
        else:
            self._written[register] = seen, value


def is_request(packet: bytes) -> bool:
    """Whether an agent answers a packet on the slot of a data VL."""
    return looks_like_request(packet) and icrc_good(packet)


def looks_like_request(packet: bytes) -> bool:
    """Whether it does if the ICRC is right."""
    if len(packet) == SIZES[1] and LRH["lnh"].read(packet) == LNH.IBA_GLOBAL:
        grh = GRH.unpack(packet, LRH.size_bytes)
        return (grh.ip_ver, grh.nxt_hdr) == (6, 0x1B) and looks_like_request(_local(packet))
    return (
        len(packet) == _BYTES
        and not 0xC000 <= LRH["dlid"].read(packet) <= 0xFFFE
        and LRH["lnh"].read(packet) == LNH.IBA_LOCAL
        and BTH["opcode"].read(packet, LRH.size_bytes) == Opcode.UD_SEND_ONLY
        and BTH["dest_qp"].read(packet, LRH.size_bytes) == QP_GSI
        and DETH["q_key"].read(packet, _DETH) == Q_KEY_GSI
        and _read(packet, "base_version") == BASE_VERSION
        and _read(packet, "mgmt_class") == MgmtClass.PERF
        and _read(packet, "method") in (MadMethod.GET, MadMethod.SET)
    )


def _local(packet: bytes) -> bytes:
    """The packet without its GRH, if it has one."""
    if len(packet) <= _BYTES:
        return packet
    return LRH["lnh"].write(packet[: LRH.size_bytes], LNH.IBA_LOCAL) + packet[LRH.size_bytes + GRH.size_bytes :]


def _read(packet: bytes, name: str) -> int:
    return MAD_HEADER[name].read(_local(packet), _MAD)


def port_select(packet: bytes) -> int:
    """The port that a request asks about."""
    return _local(packet)[_DATA + PORT_COUNTERS["port_select"].byte]


def _status(packet: bytes, ports: Sequence[int]) -> MadStatus:
    attribute = _read(packet, "attribute_id")
    if _read(packet, "class_version") != CLASS_VERSION:
        return MadStatus.BAD_VERSION
    is_set = _read(packet, "method") == MadMethod.SET
    of_no_port = attribute in (PmaAttribute.CLASS_PORT_INFO, PmaAttribute.PORT_SAMPLES_RESULT)
    if attribute not in set(PmaAttribute) or (of_no_port and is_set):
        return MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
    has_port = of_no_port or port_select(packet) in (*ports, ALL_PORTS)
    if _read(packet, "attribute_modifier") or not has_port:
        return MadStatus.INVALID_ATTRIBUTE_VALUE
    return MadStatus.OK


def laps_of(packet: bytes, ports: Sequence[int]) -> int:
    """How often the agent goes through a slot with accesses."""
    of_ports = _read(packet, "attribute_id") in set(PmaAttribute) - {PmaAttribute.CLASS_PORT_INFO}
    return len(ports) if of_ports and port_select(packet) == ALL_PORTS else 1


def accesses_of(packet: bytes, ports: Sequence[int]) -> Iterator[Access]:
    """What the agent does on the bus for a request, for each of its ports, whose registers are at 1, 2, ..."""
    first = 1 + ports.index(port_select(packet)) if port_select(packet) in ports else 1
    for access in _accesses(packet, ports):
        for lap in range(laps_of(packet, ports)):
            yield access._replace(step=access.step + LAP * lap, port=first + lap)


def _accesses(packet: bytes, ports: Sequence[int]) -> Iterator[Access]:
    """Of one port, in the order of their steps."""
    if _status(packet, ports) != MadStatus.OK:
        return
    data = _local(packet)[_DATA:]
    is_set = _read(packet, "method") == MadMethod.SET
    match _read(packet, "attribute_id"):
        case PmaAttribute.PORT_SAMPLES_CONTROL:
            if is_set:
                yield Access(18, PortRegister.TICK, PORT_SAMPLES_CONTROL["tick"].read(data))
            yield Access(144, PortRegister.TICK, name="tick")
        case PmaAttribute.PORT_COUNTERS:
            chosen = PORT_COUNTERS["counter_select"].read(data) | PORT_COUNTERS["counter_select2"].read(data) << 16
            if is_set:
                for place, bit, counter, name in _counters():
                    if chosen >> bit & 1:
                        yield Access(18 + place, counter, PORT_COUNTERS[name].read(data))
            for place, _, counter, name in _counters():
                yield Access(144 + place, counter, name=name)
        case PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS:
            if is_set:
                yield Access(26, PortRegister.EXTENDED_LOW, int.from_bytes(data[2:4], "big"))
                yield Access(27, PortRegister.FLOW_CTL_UPDATE_ERRORS, int.from_bytes(data[4:8], "big"))
            yield Access(152, PortRegister.FLOW_CTL_UPDATE_ERRORS, name="all VLs")
        case code if code in _OF_DETAILS:
            layout, first, count = _OF_DETAILS[PmaAttribute(code)]
            fields = layout.fields[2:]
            for bit in range(count if is_set else 0):
                if layout["counter_select"].read(data) >> bit & 1:
                    yield Access(18 + 8 * (1 + bit // 2) + bit % 2, first + bit, fields[bit].read(data))
            for bit in range(count):
                yield Access(144 + 8 * (1 + bit // 2) + bit % 2, first + bit, name=fields[bit].name)
        case PmaAttribute.PORT_COUNTERS_EXTENDED:
            chosen = PORT_COUNTERS_EXTENDED["counter_select"].read(data)
            for bit, (name, high, word) in enumerate(_EXTENDED):
                if is_set and chosen >> bit & 1:
                    value = PORT_COUNTERS_EXTENDED[name].read(data)
                    yield Access(slot_in_set(word + 1) + 2, PortRegister.EXTENDED_LOW, value & _ONES_32)
                    yield Access(slot_in_set(word + 1) + 3, high, value >> 32)
            for name, high, word in _EXTENDED:
                yield Access(slot_for_answer(word), high, name=f"{name} high")
                yield Access(slot_for_answer(word + 1), PortRegister.EXTENDED_LOW, name=f"{name} low")


def _counters() -> Iterator[tuple[int, int, Counter, str]]:
    """Steps from the first slot on, bit, register and field: those of a word in successive steps of its slot."""
    seen: dict[int, int] = {}
    for counter in Counter:
        bit = counter - Counter.SYMBOL_ERROR
        word = PMA_COUNTERS[bit].offset_bits // 32
        yield 8 * word + seen.get(word, 0), bit, counter, PMA_COUNTERS[bit].name
        seen[word] = seen.get(word, 0) + 1


def asked(packet: bytes) -> tuple[int, int]:
    """Method and attribute of a request."""
    return _read(packet, "method"), _read(packet, "attribute_id")


def answer_to(packet: bytes, ports: Sequence[int], read: dict[str, list[int]]) -> bytes:
    """The answer, whose accesses read this, as `comparable` has it."""
    status = _status(packet, ports)
    grh, packet = packet[LRH.size_bytes : -len(_local(packet)) + LRH.size_bytes], _local(packet)
    data = packet[_DATA:-ICRC_BYTES]
    made = packet
    for layout, place, values in (
        (LRH, 0, {"dlid": LRH["slid"].read(packet), "slid": LRH["dlid"].read(packet)}),
        (BTH, LRH.size_bytes, {"dest_qp": DETH["src_qp"].read(packet, _DETH)}),
        (DETH, _DETH, {"src_qp": QP_GSI}),
        (MAD_HEADER, _MAD, {"method": MadMethod.GET_RESP, "status": status}),
    ):
        for name, value in values.items():
            made = layout[name].write(made, value, place)
    if status == MadStatus.OK:
        data = _attribute(packet, read).ljust(len(data), b"\0")
    made = made[:_DATA] + data + bytes(ICRC_BYTES)
    if not grh:
        return comparable(made)
    back = grh[:7] + b"\xff" + grh[24:40] + grh[8:24]
    return comparable(LRH["lnh"].write(made[: LRH.size_bytes], LNH.IBA_GLOBAL) + back + made[LRH.size_bytes :])


def _sums(layout: Layout, read: dict[str, list[int]]) -> dict[str, int]:
    """Of all ports, as much as the fields hold."""
    return {name: min(sum(values), layout[name].max) for name, values in read.items()}


def _attribute(packet: bytes, read: dict[str, list[int]]) -> bytes:
    data = packet[_DATA:]
    match _read(packet, "attribute_id"):
        case PmaAttribute.PORT_SAMPLES_CONTROL:
            return PORT_SAMPLES_CONTROL.pack(port_select=port_select(packet), tick=read["tick"][-1])
        case PmaAttribute.PORT_COUNTERS:
            as_it_came = {name: PORT_COUNTERS[name].read(data) for name in ("counter_select", "counter_select2")}
            return PORT_COUNTERS.pack(port_select=port_select(packet), **as_it_came, **_sums(PORT_COUNTERS, read))
        case PmaAttribute.PORT_COUNTERS_EXTENDED:
            values = {
                name: min((sum(read[f"{name} high"]) << 32) + sum(read[f"{name} low"]), _ONES_64)
                for name, _, _ in _EXTENDED
            }
            chosen = PORT_COUNTERS_EXTENDED["counter_select"].read(data)
            return PORT_COUNTERS_EXTENDED.pack(port_select=port_select(packet), counter_select=chosen, **values)
        case PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS:
            of_vls = (min(3, sum(value >> 30 - 2 * vl & 3 for value in read["all VLs"])) for vl in range(16))
            word = sum(count << 30 - 2 * vl for vl, count in enumerate(of_vls))
            return bytes([0, port_select(packet), *data[2:4], *word.to_bytes(4, "big")])
        case code if code in _OF_DETAILS:
            layout = _OF_DETAILS[PmaAttribute(code)][0]
            chosen = layout["counter_select"].read(data)
            return layout.pack(port_select=port_select(packet), counter_select=chosen, **_sums(layout, read))
        case PmaAttribute.PORT_SAMPLES_RESULT:
            return b""
    # ClassPortInfo: versions, what it can do, and how fast.
    return bytes([1, 1, 0x13, 0x00, 0, 0, 0, 8])


def comparable(packet: bytes) -> bytes:
    """An answer without its VL and ICRC, and without PortXmitWait and that of VLs."""
    packet = LRH["vl"].write(packet, 0)
    if len(packet) in SIZES and _read(packet, "status") == MadStatus.OK:
        data = len(packet) - _BYTES + _DATA
        if _read(packet, "attribute_id") == PmaAttribute.PORT_COUNTERS:
            packet = PORT_COUNTERS["port_xmit_wait"].write(packet, 0, data)
        elif _read(packet, "attribute_id") == PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS:
            packet = packet[: data + 4] + bytes(32) + packet[data + 36 :]
    return packet[:-ICRC_BYTES]
