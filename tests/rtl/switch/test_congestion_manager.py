"""A congestion control manager at a host and a switch's agent (docs/management.md, section 7)."""

from __future__ import annotations

import pytest

from tests.rtl.switch.bench import SWITCH, Fabric
from tests.rtl.switch.test_pma import MAD_START, OWN, answers, in_words, managed
from wire.congestion_control import (
    CC_MAD,
    CONGESTION_KEY_INFO,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_ELEMENT,
    SWITCH_PORT_CONGESTION_SETTING,
    CcAttribute,
    SwitchControl,
    cc_request,
)
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet
from wire.registers import PortRegister, congestion_address, port_address

pytestmark = pytest.mark.slow

DATA_START = MAD_START + 32
GET, SET = MadMethod.GET, MadMethod.SET
KEY = 0x0123_4567_89AB_CDEF
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
