"""An adapter distinguishes SMPs and PMA requests from all other packets by the rows that pass."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from rtl.adapter.mad_check import MadCheck
from tests.rtl.simulation import Simulation
from wire.codes import Q_KEY_GSI, VL15
from wire.mad import MadMethod, MgmtClass
from wire.mad_packet import gmp_packet, smp_packet
from wire.opcodes import Opcode
from wire.packet import Packet, build_ud_send
from wire.pma import PmaAttribute, perf_request
from wire.smp import smp_request
from wire.symbols import frame_data_packet

VLS = 2


def are_smps(packets: list[tuple[bytes, int]]) -> list[bool]:
    """Which of these packets, (LRH..VCRC, slot) one after the other, are SMPs."""
    return [is_smp for is_smp, _ in kinds(packets)]


def are_requests(packets: list[tuple[bytes, int]]) -> list[bool]:
    """Which are PMA requests."""
    return [is_request for _, is_request in kinds(packets)]


@cache
def simulated() -> tuple[MadCheck, Simulation]:
    dut = MadCheck(VLS)
    return dut, Simulation(dut)


def kinds(packets: list[tuple[bytes, int]]) -> list[tuple[bool, bool]]:
    """What the check says of each packet."""
    dut, simulation = simulated()
    found = []

    async def bench(ctx: Any) -> None:
        for wire, slot in packets:
            rows = frame_data_packet(wire)
            n = len(rows) - 1
            for index, row in enumerate(rows):
                fields = {"valid": 1, "data": row.data, "index": index, "first": index == 0, "last": index == n}
                ctx.set(dut.row, fields | {"slot": slot, "n": n})
                if index == n:
                    found.append((bool(ctx.get(dut.is_smp)), bool(ctx.get(dut.is_pma_request))))
                await ctx.tick()
            ctx.set(dut.row, {})
            await ctx.tick()

    simulation.run(bench)
    return found


def smp(**request: Any) -> Packet:
    return smp_packet(smp_request(MadMethod.GET, 0x11, transaction_id=0xFFFF_FFFF, data=b"\xff" * 64, **request))


def test_smps_of_both_classes_are_found_among_others() -> None:
    directed, routed = smp(path=[3]), smp()
    other = build_ud_send(slid=1, dlid=2, dest_qp=0, src_qp=0, q_key=0, payload=bytes(256), vl=VL15)
    packets = [directed, other, routed, other, other, directed]
    assert are_smps([(packet.wire, VLS) for packet in packets]) == [True, False, True, False, False, True]


def request(method: MadMethod = MadMethod.GET, grh: dict[str, int] | None = None) -> Packet:
    mad = perf_request(method, PmaAttribute.PORT_COUNTERS, b"\xff" * 192, transaction_id=0xFFFF_FFFF)
    return gmp_packet(mad, 1, 2, grh=grh)


GRH = {"sgid": (1 << 128) - 1, "dgid": (1 << 128) - 1, "t_class": 0xFF, "flow_label": 0xF_FFFF, "hop_lmt": 0xFF}


def test_a_request_may_have_a_grh() -> None:
    wrong = [GRH | {"ip_ver": 4}, GRH | {"nxt_hdr": 0x1A}]
    packets = [request(grh=GRH), request(), *(request(grh=grh) for grh in wrong), request(MadMethod.SET, GRH)]
    found = kinds([(packet.wire, 0) for packet in packets])
    assert found == [(False, True), (False, True), (False, False), (False, False), (False, True)]
    behind = 40
    for byte in (OPCODE, DEST_QP + 2, Q_KEY, BASE_VERSION, MGMT_CLASS, METHOD):
        assert are_requests([(changed(byte + behind, lambda before: before ^ 0x40, request(grh=GRH)), 0)]) == [False]


def test_an_smp_has_no_grh() -> None:
    with_grh = build_ud_send(slid=1, dlid=2, dest_qp=0, src_qp=0, q_key=0, payload=smp().payload, vl=VL15, grh=GRH)
    assert are_smps([(with_grh.wire, VLS), (smp().wire, VLS)]) == [False, True]


def test_requests_of_both_methods_are_found_among_others() -> None:
    other = build_ud_send(slid=1, dlid=2, dest_qp=1, src_qp=1, q_key=0, payload=bytes(256))
    packets = [request(), other, request(MadMethod.SET), other, smp()]
    found = kinds([(packet.wire, VLS if packet.lrh.vl == VL15 else 0) for packet in packets])
    assert found == [(False, True), (False, False), (False, True), (False, False), (True, False)]


def changed(byte: int, change: Callable[[int], int], packet: Packet | None = None) -> bytes:
    wire = bytearray((packet or smp()).wire)
    wire[byte] = change(wire[byte])
    return bytes(wire)


LNH, OPCODE, DEST_QP, Q_KEY, BASE_VERSION, MGMT_CLASS, METHOD = 1, 8, 13, 20, 28, 29, 31


@pytest.mark.parametrize(
    ("byte", "value"),
    [
        *((LNH, value) for value in (0, 1, 3)),
        (OPCODE, Opcode.UD_SEND_ONLY_IMM),
        (DEST_QP, 1),
        (DEST_QP + 1, 1),
        *((DEST_QP + 2, value) for value in (0, 2, 3, 0x81)),
        *((Q_KEY, value) for value in (0, 0x81)),
        *((Q_KEY + place, value) for place, value in ((1, 0), (1, 3), (2, 1), (3, 1))),
        *((BASE_VERSION, value) for value in (0, 2)),
        *((MGMT_CLASS, value) for value in (0, 1, 3, 5, 0x81, 0x84)),
        *((METHOD, value) for value in (0, 3, 5, 0x12, 0x81, 0x82)),
    ],
)
def test_a_packet_that_differs_in_one_of_a_requests_fields_is_none(byte: int, value: int) -> None:
    wire = changed(byte, lambda before: before & ~3 | value if byte == LNH else value, request())
    assert are_requests([(wire, 0), (request().wire, VLS - 1)]) == [False, True]


@pytest.mark.parametrize("dlid", [0xBFFF, 0xC000, 0xE0FF, 0xFFFE, 0xFFFF])
def test_a_packet_to_a_multicast_lid_is_no_request(dlid: int) -> None:
    to_one, to_other = request().wire, changed(2, lambda _: dlid >> 8, request())
    to_other = to_other[:3] + bytes([dlid & 0xFF]) + to_other[4:]
    assert are_requests([(to_other, 0), (to_one, 0)]) == [not 0xC000 <= dlid <= 0xFFFE, True]


def test_a_request_is_on_a_data_vl_and_has_the_length_of_one() -> None:
    payload = request().payload
    short, long = (
        build_ud_send(slid=1, dlid=2, dest_qp=1, src_qp=1, q_key=Q_KEY_GSI, payload=changed_payload)
        for changed_payload in (payload[:252], payload + bytes(4))
    )
    packets = [(request().wire, VLS), (short.wire, 0), (long.wire, 0), (request().wire, 0)]
    assert are_requests(packets) == [False, False, False, True]


def test_all_else_in_a_request_does_not_matter() -> None:
    fields = {LNH, OPCODE, *range(DEST_QP, DEST_QP + 3), *range(Q_KEY, Q_KEY + 4), BASE_VERSION, MGMT_CLASS, METHOD}
    others = [byte for byte in range(len(request().wire)) if byte not in fields]
    flipped = [(changed(byte, lambda before: before ^ 0xFF, request()), 1) for byte in others[::5]]
    assert are_requests(flipped) == [True] * len(flipped)


@pytest.mark.parametrize(
    ("byte", "value"),
    [
        *((LNH, value) for value in (0, 1, 3)),
        (OPCODE, Opcode.UD_SEND_ONLY_IMM),
        (OPCODE, Opcode.RC_SEND_ONLY),
        *((DEST_QP + place, 1) for place in range(3)),
        (DEST_QP, 0x80),
        *((BASE_VERSION, value) for value in (0, 2, 3, 0x81)),
        *((MGMT_CLASS, value) for value in (0, 2, 3, 4, 0x80, 0x83, 0x41)),
        (MGMT_CLASS, MgmtClass.PERF),
    ],
)
def test_a_packet_that_differs_in_one_of_an_smps_fields_is_none(byte: int, value: int) -> None:
    wire = changed(byte, lambda before: before & ~3 | value if byte == LNH else value)
    assert are_smps([(wire, VLS), (smp().wire, VLS)]) == [False, True]


def test_an_smp_is_on_vl15_and_has_the_length_of_one() -> None:
    short = build_ud_send(slid=1, dlid=2, dest_qp=0, src_qp=0, q_key=0, payload=smp().payload[:252], vl=VL15)
    long = build_ud_send(slid=1, dlid=2, dest_qp=0, src_qp=0, q_key=0, payload=smp().payload + bytes(4), vl=VL15)
    assert are_smps([(smp().wire, 0), (short.wire, VLS), (long.wire, VLS), (smp().wire, VLS)]) == [
        False,
        False,
        False,
        True,
    ]


def test_all_else_in_a_packet_does_not_matter() -> None:
    fields = {LNH, OPCODE, *range(DEST_QP, DEST_QP + 3), BASE_VERSION, MGMT_CLASS}
    # The packet's slot and length are known from its LRH, and given apart.
    others = [byte for byte in range(len(smp().wire)) if byte not in fields]
    flipped = [(changed(byte, lambda before: before ^ 0xFF), VLS) for byte in others[::5]]
    assert are_smps(flipped) == [True] * len(flipped)
