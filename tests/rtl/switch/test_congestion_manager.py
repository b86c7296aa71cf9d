"""A congestion control manager at a host and a switch's agent (docs/management.md, section 7)."""

from __future__ import annotations

import pytest

from tests.rtl.switch.bench import SWITCH, Fabric
from tests.rtl.switch.test_pma import MAD_START, OWN, VL15_SLOT, answers, in_words, managed
from wire.congestion_control import (
    CC_CAPABILITIES,
    CC_CLASS_PORT_INFO,
    CC_MAD,
    CC_RESP_TIME,
    CONGESTION_KEY_INFO,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_ELEMENT,
    SWITCH_PORT_CONGESTION_SETTING,
    CcAttribute,
    SwitchControl,
    cc_request,
)
from wire.headers import BTH, LRH
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet, smp_packet
from wire.notice import NOTICE, details_of
from wire.port_info import PORT_INFO
from wire.registers import PortRegister, congestion_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request

pytestmark = pytest.mark.slow

DATA_START = MAD_START + 32
GET, SET = MadMethod.GET, MadMethod.SET
KEY = 0x0123_4567_89AB_CDEF
STORED = ("trap_sl", "trap_lid", "trap_p_key", "trap_qp", "trap_q_key")
PERIOD, LONG = 450, 1000
"""Cycles for a request and its answer, and to spare; for those of many words."""


def ask(fabric: Fabric, cycle: int, method: MadMethod, attribute: CcAttribute, data: Record, cc_key: int = 0) -> None:
    content = data.pack()
    request = cc_request(method, attribute, content, transaction_id=cycle, cc_key=cc_key)
    fabric.post(cycle, 0, 0, in_words(gmp_packet(request, 1, OWN).data))


def test_a_key_once_set_keeps_others_out() -> None:
    fabric, ready = managed()
    info = CONGESTION_KEY_INFO.record(cc_key=KEY, protect_bit=1, lease_period=7)
    nothing = CONGESTION_KEY_INFO.record()
    asked = [ready + PERIOD * number for number in range(4)]
    ask(fabric, asked[0], SET, CcAttribute.CONGESTION_KEY_INFO, info)
    ask(fabric, asked[1], GET, CcAttribute.CONGESTION_KEY_INFO, nothing)
    ask(fabric, asked[2], SET, CcAttribute.CONGESTION_KEY_INFO, nothing, KEY ^ 1)
    ask(fabric, asked[3], GET, CcAttribute.CONGESTION_KEY_INFO, nothing, KEY)
    end = asked[3] + PERIOD
    violations = congestion_address(CcAttribute.CONGESTION_KEY_INFO, 11)
    for cycle, value in ((end, 1 << 16), (end + 10, 0)):
        fabric.read(cycle - 1, SWITCH, violations)
        fabric.write(cycle, SWITCH, violations, value)
    fabric.read(end + 11, SWITCH, violations)
    fabric.run(end + 20)
    first, last = answers(fabric)
    assert CC_MAD.unpack(first, MAD_START).method == MadMethod.GET_RESP
    assert CONGESTION_KEY_INFO.unpack(first, DATA_START) == info
    assert CONGESTION_KEY_INFO.unpack(last, DATA_START) == info.replace(violations=2)
    assert [value >> 16 for _, value in fabric.answers[SWITCH]] == [2, 2, 0]


def test_what_a_manager_sets_is_on_the_bus() -> None:
    fabric, ready = managed()
    setting = SWITCH_CONGESTION_SETTING.record(
        control_map=SwitchControl.VICTIM_MASK | SwitchControl.THRESHOLD | SwitchControl.MARKING_RATE,
        victim_mask=0b110,
        threshold=5,
        packet_size=3,
        marking_rate=0x1234,
    )
    element = SWITCH_PORT_CONGESTION_ELEMENT.record(valid=1, threshold=9, packet_size=2, marking_rate=77)
    elements = SWITCH_PORT_CONGESTION_SETTING.record(
        **{f"element{port}": int.from_bytes(element.pack()) for port in (0, 2, 3)}
    )
    ask(fabric, ready, SET, CcAttribute.SWITCH_CONGESTION_SETTING, setting)
    ask(fabric, ready + LONG, SET, CcAttribute.SWITCH_PORT_CONGESTION_SETTING, elements)
    end = ready + 2 * LONG
    registers = [congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, word) for word in (8, 16, 25, 26)]
    registers += [port_address(port, PortRegister.CONGESTION) for port in (1, 2, 3)]
    for place, address in enumerate(registers):
        fabric.read(end + place, SWITCH, address)
    fabric.run(end + 20)
    first, second = answers(fabric)
    assert SWITCH_CONGESTION_SETTING.unpack(first, DATA_START) == setting
    shown = SWITCH_PORT_CONGESTION_SETTING.unpack(second, DATA_START)
    assert {name for name, value in shown.items() if value} == {"element2"}, "of two ports"
    assert [value for _, value in fabric.answers[SWITCH]] == [
        0b10101,
        0b110,
        5 << 28 | 3 << 16,
        0x1234,
        0,
        int.from_bytes(element.pack()),
        0,
    ]


def test_who_sets_the_trap_lid_hears_of_wrong_keys() -> None:
    fabric, ready = managed()
    port_info = PORT_INFO.pack(lid=OWN, master_sm_lid=1)
    smp = smp_request(SET, SmaAttribute.PORT_INFO, 0, port_info, transaction_id=1)
    fabric.post(ready, 0, VL15_SLOT, in_words(smp_packet(smp, 1, OWN).data))
    asked = [ready + LONG * number for number in range(1, 5)]
    everything = CC_CLASS_PORT_INFO.unpack(b"\xff" * CC_CLASS_PORT_INFO.size_bytes)
    ask(fabric, asked[0], SET, CcAttribute.CLASS_PORT_INFO, everything)
    to_host = CC_CLASS_PORT_INFO.record(trap_lid=1, trap_p_key=0x8123, trap_qp=1, trap_q_key=0x8001_0000)
    ask(fabric, asked[1], SET, CcAttribute.CLASS_PORT_INFO, to_host)
    ask(fabric, asked[2], SET, CcAttribute.CONGESTION_KEY_INFO, CONGESTION_KEY_INFO.record(cc_key=KEY))
    ask(fabric, asked[3], SET, CcAttribute.CONGESTION_KEY_INFO, CONGESTION_KEY_INFO.record(), KEY ^ 1)
    fabric.run(asked[3] + LONG)
    _, kept, named, _, trap = answers(fabric)
    of_switch = {"class_version": 2, "capability_mask": CC_CAPABILITIES, "resp_time_value": CC_RESP_TIME}
    stored = {name: CC_CLASS_PORT_INFO[name].max for name in STORED}
    assert CC_CLASS_PORT_INFO.unpack(kept, DATA_START) == CC_CLASS_PORT_INFO.record(**of_switch, **stored)
    assert CC_CLASS_PORT_INFO.unpack(named, DATA_START) == to_host.replace(**of_switch)
    assert BTH.unpack(trap, LRH.size_bytes).p_key == 0x8123
    mad = CC_MAD.unpack(trap, MAD_START)
    assert (mad.method, mad.attribute_id, mad.transaction_id) == (MadMethod.TRAP, CcAttribute.NOTICE, 1)
    details = details_of(NOTICE.unpack(trap, MAD_START + 64))
    assert details is not None
    assert (details.slid, details.method, details.cc_key) == (1, SET, KEY ^ 1)
