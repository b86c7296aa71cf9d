"""Congestion control requests to a switch's agent (docs/management.md, section 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agent_steps import CC_WORDS, of_cc_request
from tests.rtl.management.agent_bench import MAD_START, Access, Bench, Work
from tests.rtl.management.pma_bench import (
    ADAPTER,
    GET,
    OWN,
    SENDER,
    SENDERS_QP,
    SET,
    WAY_BACK,
    of_port,
    run,
    work_of,
    works,
    written,
)
from wire.congestion_control import CC_DATA_BYTES, CC_MAD, CcAttribute, cc_request
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, GRH, LRH
from wire.layout import Record
from wire.mad import MadMethod, MadStatus
from wire.mad_packet import gmp_packet
from wire.parameters import SwitchParameters
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import PortRegister, congestion_address, lft_address, place_of_address, port_address
from wire.sma import SmaAttribute

KEY_INFO, SETTING = CcAttribute.CONGESTION_KEY_INFO, CcAttribute.SWITCH_CONGESTION_SETTING
ELEMENTS, LOG = CcAttribute.SWITCH_PORT_CONGESTION_SETTING, CcAttribute.CONGESTION_LOG
DATA = bytes((7 * place + 1) & 0xFF for place in range(CC_DATA_BYTES))
DATA_START = MAD_START + 32
SETTABLE = (CcAttribute.CLASS_PORT_INFO, KEY_INFO, SETTING, ELEMENTS)
WORDS_SHOWN = {
    congestion_address(attribute, word): 0xA000_0000 | attribute << 8 | word
    for attribute in CC_WORDS
    for word in range(56)
}


def cc(method: MadMethod, attribute: int, modifier: int = 0, cc_key: int = 0, **fields: int) -> Record:
    request = cc_request(
        method, attribute, DATA, transaction_id=0x0123_4567_89AB_CDEF, modifier=modifier, cc_key=cc_key
    )
    return request.replace(**{"status": 0x1234, "class_specific": 0x5678, **fields})


def packet(mad: Record, **more: Any) -> bytes:
    fields = {"sl": 2, "vl": 1, "p_key": 0x8001, "src_qp": SENDERS_QP, "psn": 0x123} | more
    return gmp_packet(mad, SENDER, OWN, **fields).data


def answer(request: bytes, data: bytes, status: int = MadStatus.OK) -> bytes:
    """The packet that answers this one, with these bytes from byte 32 of the MAD on."""
    lrh = LRH.unpack(request)
    body = written(request[:-ICRC_BYTES], LRH, 0, dlid=lrh.slid, slid=lrh.dlid)
    body = written(body, BTH, 8, dest_qp=DETH.unpack(request, 20).src_qp)
    body = written(body, DETH, 20, src_qp=1)
    body = written(body, CC_MAD, MAD_START, method=MadMethod.GET_RESP, status=status)
    body = body[:DATA_START] + data
    return body + icrc(body)


def came(word: int) -> int:
    return int.from_bytes(DATA[4 * word : 4 * word + 4])


def shown(attribute: int) -> bytes:
    """What an answer has of the windows."""
    words = [
        WORDS_SHOWN[congestion_address(attribute, word)] if word in CC_WORDS[attribute] else 0 for word in range(56)
    ]
    return b"".join(word.to_bytes(4) for word in words)


def writes(attribute: int) -> list[Access]:
    return [Access(512 + 8 * word + 2, congestion_address(attribute, word), came(word)) for word in CC_WORDS[attribute]]


def reads(attribute: int) -> list[Access]:
    return [Access(1024 + 8 * word, congestion_address(attribute, word), None) for word in CC_WORDS[attribute]]


OF_WINDOWS = [attribute for attribute in CC_WORDS if attribute != ELEMENTS]


def test_an_answer_is_what_is_read_of_the_window() -> None:
    requests = [packet(cc(GET, attribute)) for attribute in OF_WINDOWS]
    for attribute, request, work in zip(OF_WINDOWS, requests, works(requests, registers=WORDS_SHOWN), strict=True):
        assert (work.answered, work.outputs) == (True, (WAY_BACK - 1,))
        assert work.accesses == [Access(2, lft_address(SENDER), None), *reads(attribute)]
        assert work.data == answer(request, shown(attribute)), attribute.name


def test_a_set_writes_its_words_in_order_before_they_are_read() -> None:
    attributes = [attribute for attribute in SETTABLE if attribute != ELEMENTS]
    for attribute, work in zip(attributes, works([packet(cc(SET, one)) for one in attributes]), strict=True):
        assert of_port(work) == writes(attribute) + reads(attribute)
        words = CC_WORDS[attribute]
        data = bytes(4 * words[0]) + DATA[4 * words[0] : 4 * (words[-1] + 1)]
        assert work.data[DATA_START:-ICRC_BYTES] == data.ljust(CC_DATA_BYTES, b"\0")
        assert work.answered


def test_elements_are_registers_of_the_ports_that_there_are() -> None:
    request = packet(cc(SET, ELEMENTS))
    work = work_of(request)
    registers = [(8 + port, port_address(port, PortRegister.CONGESTION)) for port in (1, 2, 3)]
    assert of_port(work) == [
        *(Access(512 + 8 * word + 2, address, came(word)) for word, address in registers),
        *(Access(1024 + 8 * word, address, None) for word, address in registers),
    ]
    assert work.answered
    assert work.data == answer(request, (bytes(36) + DATA[36:48]).ljust(CC_DATA_BYTES, b"\0"))


@pytest.mark.deep
def test_elements_of_a_large_switch_are_in_three_blocks() -> None:
    for block in range(3):
        work = work_of(packet(cc(GET, ELEMENTS, block)), SwitchParameters(ports=64))
        ports = [port for port in range(32 * block, 32 * block + 32) if 1 <= port <= 64]
        found = [place_of_address(access.address)[0] for access in of_port(work)]
        assert found == ports
    (refused,) = works([packet(cc(GET, ELEMENTS, 3))], SwitchParameters(ports=64))
    assert CC_MAD.unpack(refused.data, MAD_START).status == MadStatus.INVALID_ATTRIBUTE_VALUE


REFUSED = {
    "another ClassVersion": (cc(SET, SETTING, class_version=1), MadStatus.BAD_VERSION),
    "no such attribute": (cc(GET, 0x19), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED),
    "an adapter's": (cc(SET, CcAttribute.CA_CONGESTION_SETTING), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED),
    "the PMA's": (cc(GET, 0x10), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED),
    "only Get": (cc(SET, LOG), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED),
    "a modifier": (cc(SET, KEY_INFO, 1), MadStatus.INVALID_ATTRIBUTE_VALUE),
    "a block that there is not": (cc(SET, ELEMENTS, 1), MadStatus.INVALID_ATTRIBUTE_VALUE),
}


def test_what_is_refused_is_answered_with_the_data_that_came_in_as_many_steps() -> None:
    requests = [packet(mad) for mad, _ in REFUSED.values()]
    for name, request, work in zip(REFUSED, requests, works(requests), strict=True):
        mad, status = REFUSED[name]
        assert work.numbers == of_cc_request(mad.method, mad.attribute_id)
        assert work.answered, name
        assert of_port(work) == [], name
        assert work.data == answer(request, DATA, status), name


def test_an_answer_leaves_on_the_vl_of_its_sl() -> None:
    mapping = SL_TO_VL_MAPPING_TABLE.pack([sl % 4 for sl in range(1, 16)] + [4])

    async def script(bench: Bench) -> list[Work]:
        modifier = SL_TO_VL_MODIFIER.record(input_port=0, output_port=WAY_BACK)
        await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, mapping, int.from_bytes(modifier.pack()))
        mads = [cc(GET, LOG), cc(SET, KEY_INFO), cc(GET, 0x19), cc(SET, 0x19)]
        sls = (1, 6, 9, 14, 15)
        return [await bench.send(packet(mad, sl=sl), slot=0) for mad in mads for sl in sls]

    found = run(script)
    for start in range(0, len(found), 5):
        assert [work.slot for work in found[start : start + 4]] == [2, 3, 2, 3]
        assert found[start + 4].offered is None, "that VL is not there"


def test_a_grh_leads_back() -> None:
    grh = {"sgid": 5, "dgid": 7, "hop_lmt": 3}
    mad = cc(SET, SETTING)
    with_grh, local = works([packet(mad, grh=grh), packet(mad)])
    body = local.data[:8] + GRH.pack(**grh, pay_len=280) + local.data[8:-ICRC_BYTES]
    body = written(written(body, LRH, 0, lnh=3, pkt_len=82), GRH, 8, sgid=7, dgid=5, hop_lmt=255)
    assert with_grh.data == body + icrc(body)


@pytest.mark.parametrize("phase", range(3))
@pytest.mark.parametrize(
    "mad",
    [cc(SET, SETTING), cc(GET, LOG), cc(GET, 0x19), cc(SET, 0x19)],
    ids=["Set", "Get", "Get of none", "Set of none"],
)
def test_while_the_test_bus_has_accesses_the_agent_stands_still(mad: Record, phase: int) -> None:
    """In any of its steps: what is known of the next is still known."""
    request = packet(mad)
    free, held = (
        works([request], registers=WORDS_SHOWN, holds=holds)[0]
        for holds in (lambda _: False, lambda cycle: cycle % 3 != phase)
    )
    assert (held.accesses, held.data) == (free.accesses, free.data)
    steps = [cycle for cycle in range(held.start, held.offered) if cycle % 3 == phase]
    assert len(steps) == len(of_cc_request(mad.method, mad.attribute_id))


async def lock(bench: Bench, key: int, *, protect: bool, period: int = 0) -> None:
    """The test bus writes CongestionKeyInfo, as its page sees it."""
    for word, value in ((8, key >> 32), (9, key & 0xFFFF_FFFF), (10, protect << 31 | period)):
        offset = congestion_address(KEY_INFO, word) & 0xFFFF
        bench.access_congestion(select=1, write=1, offset=offset, wdata=value)
        await bench.cycle()
    bench.access_congestion()


KEY = 0x0123_4567_89AB_CDEF


@pytest.mark.parametrize("protect", [False, True])
def test_with_a_wrong_cc_key_a_get_is_answered_unless_protected(protect: bool) -> None:
    async def script(bench: Bench) -> list[Work]:
        await lock(bench, KEY, protect=protect)
        bench.registers.update(WORDS_SHOWN)
        keys = (KEY, KEY ^ 1 << 63, KEY ^ 1)
        return [
            await bench.send(packet(cc(method, KEY_INFO, cc_key=key)), slot=0) for method in (GET, SET) for key in keys
        ]

    good, *wrong, set_, set_wrong, set_wrong_too = run(script)
    assert good.data[DATA_START:-ICRC_BYTES] == shown(KEY_INFO)
    assert set_.answered
    for work in (set_wrong, set_wrong_too):
        assert (work.offered, work.free - work.start, work.accesses) == (None, 16, [])
    for work in wrong:
        assert (work.offered is None) == protect
        if protect:
            assert (work.free - work.start, work.accesses) == (16, [])
        else:
            assert work.data[DATA_START:-ICRC_BYTES] == shown(KEY_INFO)[:32] + bytes(8) + shown(KEY_INFO)[40:]


def test_a_lease_opens_to_gets_unless_a_good_key_stops_it() -> None:
    async def script(bench: Bench) -> tuple[list[bool], int]:
        bench.drive(lease_second=50)
        await lock(bench, KEY, protect=True, period=8)

        async def ask(key: int) -> bool:
            return (await bench.send(packet(cc(GET, LOG, cc_key=key)), slot=0)).offered is not None

        found = [await ask(1)]
        await bench.idle(200)
        found.append(await ask(KEY))
        await bench.idle(400)
        found.append(await ask(1))
        start = bench.now
        await bench.until(start + 400)
        found.append(await ask(1))
        return found, start

    found, _ = run(script)
    assert found == [False, True, False, True]


def test_an_adapters_agent_takes_no_cc_requests() -> None:
    work = work_of(packet(cc(GET, LOG)), ADAPTER)
    assert work.offered is None
    assert work.free == work.start, "it is dropped"


def test_other_methods_are_no_requests() -> None:
    for method in (MadMethod.GET_RESP, MadMethod.TRAP):
        work = work_of(packet(cc(method, LOG)))
        assert (work.offered, work.free) == (None, work.start)
