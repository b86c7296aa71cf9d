"""The Performance Management Agent: its answers, and what is a request (docs/management.md, section 6)."""

from typing import NamedTuple

import pytest

from tests.rtl.management.agent_bench import MAD_START, Access, Bench, Work
from tests.rtl.management.pma_bench import (
    ADAPTER,
    GET,
    ONES,
    OWN,
    SENDER,
    SENDERS_QP,
    SET,
    SWITCH,
    WAY_BACK,
    answer,
    counter_reads,
    counter_write,
    mad,
    of_port,
    packet,
    perf,
    run,
    selecting,
    work_of,
    works,
    written,
)
from wire.codes import Q_KEY_GSI
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, GRH, LRH
from wire.layout import Layout
from wire.mad import CLASS_PORT_INFO, MadMethod, MadStatus, MgmtClass
from wire.mad_packet import gmp_packet
from wire.node_info import NODE_INFO
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import (
    PERF_MAD,
    PMA_CAPABILITIES,
    PMA_DATA_BYTES,
    PMA_RESP_TIME,
    PmaAttribute,
)
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import Counter, lft_address
from wire.sma import SmaAttribute

# The answer.


def test_an_answer_goes_back_to_the_queue_pair_that_asked() -> None:
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\2" + bytes(range(190))))
    work = work_of(request)
    assert (work.answered, work.outputs, work.free - work.start) == (True, (WAY_BACK - 1,), len(work.numbers) + 73)
    assert work.accesses[0] == Access(2, lft_address(SENDER), None)
    # PortSelect, CounterSelect and CounterSelect2 are as they came, and there are no counts.
    assert work.data == answer(request, bytes([0, 2, 0, 1, *bytes(14), 16]))


def test_the_answer_to_a_request_with_a_grh_has_one_that_leads_back() -> None:
    grh = {"sgid": 5 << 64 | 6, "dgid": 7 << 64 | 8, "t_class": 0xA5, "flow_label": 0x54321, "hop_lmt": 3}
    asked = perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\2" + bytes(range(190)))
    local = packet(asked)
    with_grh = gmp_packet(asked, SENDER, OWN, sl=2, vl=1, p_key=0x8001, src_qp=SENDERS_QP, psn=0x123, grh=grh).data
    first, second, third = works([with_grh, local, with_grh])
    body = second.data[:8] + GRH.pack(**grh, pay_len=280) + second.data[8:-ICRC_BYTES]
    body = written(written(body, LRH, 0, lnh=3, pkt_len=82), GRH, 8, sgid=grh["dgid"], dgid=grh["sgid"], hop_lmt=255)
    assert second.data == answer(local, bytes([0, 2, 0, 1, *bytes(14), 16]))
    assert first.data == third.data == body + icrc(body)
    assert first.free - first.start == len(first.numbers) + 83


@pytest.mark.parametrize("code", list(PmaAttribute))
@pytest.mark.parametrize("method", [GET, SET])
def test_whatever_is_asked_the_answer_takes_its_steps(method: MadMethod, code: int) -> None:
    work = work_of(packet(perf(method, code, b"\0\1")))
    assert (work.answered, work.outputs) == (True, (WAY_BACK - 1,))
    assert mad(work).method == MadMethod.GET_RESP


def test_no_m_key_is_asked_for() -> None:
    async def script(bench: Bench) -> Work:
        fields = PORT_INFO.record(m_key=5, m_key_protect_bits=3, master_sm_lid=1, lid=1)
        await bench.set(SmaAttribute.PORT_INFO, fields.pack())
        work = await bench.send(packet(perf(SET, PmaAttribute.PORT_COUNTERS, b"\0\1")), slot=0)
        port_info = await bench.get(SmaAttribute.PORT_INFO, m_key=5)
        assert PORT_INFO.unpack(port_info.attribute).m_key_violations == 0
        return work

    assert run(script).answered


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"class_version": 2}, MadStatus.BAD_VERSION),
        ({"class_version": 2, "attribute_id": 0x11}, MadStatus.BAD_VERSION),
        *(({"attribute_id": code}, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED) for code in (0, 0x13, 0x14, 0x19, 0x8012)),
        *(
            ({"attribute_id": code, "attribute_modifier": modifier}, MadStatus.INVALID_ATTRIBUTE_VALUE)
            for code in PmaAttribute
            if code not in (PmaAttribute.CLASS_PORT_INFO, PmaAttribute.PORT_SAMPLES_RESULT)
            for modifier in (1, 1 << 31)
        ),
    ],
)
def test_what_cannot_be_answered_has_a_status_and_the_data_that_came(fields: dict[str, int], status: int) -> None:
    data = bytes([0xFF, 1, *ONES[2:]])
    for method in (GET, SET):
        request = packet(perf(method, PmaAttribute.PORT_COUNTERS, data).replace(**fields))
        work = work_of(request)
        assert (work.answered, of_port(work)) == (True, [])
        assert work.data == answer(request, data, status)


@pytest.mark.parametrize(("parameters", "ports"), [(SWITCH, 3), (ADAPTER, 1)], ids=["switch", "adapter"])
def test_port_select_names_one_port(parameters: NodeParameters, ports: int) -> None:
    codes = (PmaAttribute.PORT_SAMPLES_CONTROL, PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED)
    asked = [(code, port) for code in codes for port in (0, 1, ports, ports + 1, 129, 254)]
    found = works([packet(perf(SET, code, bytes([0, port]))) for code, port in asked], parameters)
    for (_, port), work in zip(asked, found, strict=True):
        there = 1 <= port <= ports
        assert mad(work).status == (MadStatus.OK if there else MadStatus.INVALID_ATTRIBUTE_VALUE)
        assert bool(of_port(work)) == there
        assert all(access.address >> 16 == port for access in of_port(work))


@pytest.mark.parametrize("modifier", [0, 1])
def test_class_port_info_cannot_be_set(modifier: int) -> None:
    request = packet(perf(SET, PmaAttribute.CLASS_PORT_INFO, ONES, attribute_modifier=modifier))
    assert work_of(request).data == answer(request, ONES, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


def test_class_port_info_has_no_modifier() -> None:
    request = packet(perf(GET, PmaAttribute.CLASS_PORT_INFO, ONES, attribute_modifier=1))
    assert work_of(request).data == answer(request, ONES, MadStatus.INVALID_ATTRIBUTE_VALUE)


def test_class_port_info_is_of_no_port() -> None:
    work = work_of(packet(perf(GET, PmaAttribute.CLASS_PORT_INFO, ONES)))
    expected = CLASS_PORT_INFO.pack(capability_mask=PMA_CAPABILITIES, resp_time_value=PMA_RESP_TIME)
    assert mad(work).status == MadStatus.OK
    assert work.data[MAD_START + 64 : -ICRC_BYTES] == expected.ljust(PMA_DATA_BYTES, b"\0")
    assert of_port(work) == []


# Where it goes, and on which slot.


@pytest.mark.parametrize(("slid", "entry", "output"), [(7, 2, 1), (7, 0, None), (7, 4, None), (128, 2, None)])
def test_an_answer_without_a_route_is_dropped_with_its_set_done(slid: int, entry: int, output: int | None) -> None:
    request = packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(1)), slid=slid)
    work = work_of(request, registers={lft_address(slid): entry})
    assert work.writes == [counter_write(Counter.SYMBOL_ERROR)]
    assert (work.answered, work.outputs) == (True, () if output is None else (output,))


def test_the_slot_is_the_vl_that_the_stored_table_gives_the_sl() -> None:
    request = [packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"), sl=sl) for sl in range(16)]
    assert [work.slot for work in works(request)] == [sl % 4 for sl in range(16)]
    assert [work.slot for work in works(request, ADAPTER)] == [sl % 2 for sl in range(16)]


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
def test_a_table_that_was_set_holds_for_input_0_and_the_output_of_the_route(parameters: NodeParameters) -> None:
    vls = parameters.vls
    table = [(5 * sl + 3) % 16 for sl in range(16)]
    others = SL_TO_VL_MAPPING_TABLE.pack([0] * 16)

    async def script(bench: Bench) -> list[Work]:
        if isinstance(parameters, SwitchParameters):
            for pair in ((1, WAY_BACK), (0, 1), (0, 2), (WAY_BACK, 0), (0, 0)):
                modifier = SL_TO_VL_MODIFIER.to_int(input_port=pair[0], output_port=pair[1])
                await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, others, modifier)
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=WAY_BACK)
        await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE.pack(table), modifier)
        request = perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1")
        return [await bench.send(packet(request, sl=sl), slot=0) for sl in range(16)]

    for vl, work in zip(table, run(script, parameters), strict=True):
        assert work.answered
        if vl < vls:
            assert work.slot == vl
        else:
            assert work.offered is None


@pytest.mark.parametrize("slot", [0, 1])
def test_an_adapters_answer_goes_to_the_side_that_asked(slot: int) -> None:
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"), sl=2)

    async def script(bench: Bench) -> list[Work]:
        return [await bench.send(request, arrival, slot=slot) for arrival in (1, 0)]

    from_link, from_host = run(script, ADAPTER)
    assert (from_link.outputs, from_link.slot) == ((0,), 0)
    assert (from_host.outputs, from_host.slot) == ((1,), slot)
    assert from_link.data == from_host.data
    assert from_link.accesses == from_host.accesses == counter_reads(1)


# Offers.


def test_an_answer_for_which_there_is_no_room_is_dropped_at_once() -> None:
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"))

    async def script(bench: Bench) -> list[Work]:
        bench.take_after = 1
        dropped = await bench.send(request, slot=0)
        bench.take_after = 0
        taken = await bench.send(request, slot=0)
        bench.take_after = 9
        smp = await bench.get(SmaAttribute.NODE_INFO)
        return [dropped, taken, smp]

    dropped, taken, smp = run(script)
    assert (dropped.answered, dropped.data, dropped.free) == (True, b"", dropped.offered + 1)
    assert taken.free == taken.offered + 73
    assert mad(taken).method == MadMethod.GET_RESP
    # VL15 is waited for.
    assert (smp.free - smp.offered, smp.slot) == (73 + 9, SWITCH.vls)


def test_smps_and_requests_in_turn_do_not_meet() -> None:
    request = packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(0xFFFFFF)))

    async def script(bench: Bench) -> list[Work]:
        found = []
        for _ in range(2):
            found.append(await bench.send(request, slot=3))
            found.append(await bench.get(SmaAttribute.NODE_INFO, arrival=2))
        return found

    first, info, second, again = run(script)
    assert first.data == second.data
    assert first.accesses == second.accesses
    assert (info.data, info.slot, info.accesses) == (again.data, SWITCH.vls, [])
    assert NODE_INFO.unpack(info.attribute).local_port_num == 2


# What is a request.


class Changed(NamedTuple):
    """A field to change, of a header at this byte."""

    layout: Layout
    start: int
    fields: dict[str, int]


GOOD = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"))
NO_REQUESTS = {
    "with a GRH": Changed(LRH, 0, {"lnh": 3}),
    "to the first multicast LID": Changed(LRH, 0, {"dlid": 0xC000}),
    "to the last": Changed(LRH, 0, {"dlid": 0xFFFE}),
    "no UD SEND Only": Changed(BTH, 8, {"opcode": 0x04}),
    "to QP0": Changed(BTH, 8, {"dest_qp": 0}),
    "to QP2": Changed(BTH, 8, {"dest_qp": 2}),
    "to QP3": Changed(BTH, 8, {"dest_qp": 3}),
    "with another Q_Key": Changed(DETH, 20, {"q_key": Q_KEY_GSI ^ 1}),
    "with no Q_Key": Changed(DETH, 20, {"q_key": 0}),
    "of another BaseVersion": Changed(PERF_MAD, MAD_START, {"base_version": 2}),
    "of the class of SMPs": Changed(PERF_MAD, MAD_START, {"mgmt_class": MgmtClass.SUBN_LID_ROUTED}),
    "of another class": Changed(PERF_MAD, MAD_START, {"mgmt_class": MgmtClass.BM}),
    **{
        f"of method {method:#04x}": Changed(PERF_MAD, MAD_START, {"method": method})
        for method in (0, MadMethod.SEND, MadMethod.TRAP, MadMethod.GET_RESP, 0x82, 0x12)
    },
}


def changed(change: Changed, data: bytes = GOOD) -> bytes:
    body = written(data[:-ICRC_BYTES], change.layout, change.start, **change.fields)
    return body + icrc(body)


def test_what_is_no_request_is_dropped_and_the_agent_free_from_t_on() -> None:
    async def script(bench: Bench) -> list[Work]:
        found = [await bench.send(changed(change), slot=0) for change in NO_REQUESTS.values()]
        found += [
            await bench.send(GOOD),  # on VL15
            await bench.send(GOOD, slot=0, good=False),
            await bench.send(GOOD[:-1] + bytes([GOOD[-1] ^ 1]), slot=0),
            await bench.send(GOOD + bytes(4), slot=0),
        ]
        return [*found, await bench.send(GOOD, slot=0)]

    *dropped, last = run(script)
    assert [work.steps for work in dropped] == [0] * len(dropped)
    assert last.answered


def test_all_else_in_a_request_does_not_matter() -> None:
    others = [
        Changed(LRH, 0, {"sl": 15}),
        Changed(BTH, 8, {"p_key": 1, "se": 1, "mig_req": 1, "ack_req": 1, "psn": 0xFFFFFF}),
        Changed(DETH, 20, {"src_qp": 1}),
        Changed(PERF_MAD, MAD_START, {"status": 0xFFFF, "transaction_id": 0}),
    ]
    for change, work in zip(others, works([changed(change) for change in others]), strict=True):
        assert work.answered
        assert mad(work).status == MadStatus.OK
        assert work.data[:8] == answer(changed(change), b"")[:8]
        assert DETH.unpack(work.data, 20).src_qp == 1
