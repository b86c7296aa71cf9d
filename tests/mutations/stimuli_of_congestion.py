"""Stimuli for congestion control, of a star (`star.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from star import PAIR, SMALL, START, SWITCH, TRIO, Star

from cosim.stimulus.run_spec import RunSpec
from wire.congestion_control import (
    CC_DATA_BYTES,
    CONGESTION_KEY_INFO,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_ELEMENT,
    CcAttribute,
    SwitchControl,
    cc_request,
)
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet
from wire.packet import WORD_BYTES
from wire.registers import PortRegister, congestion_address, lft_address, mft_address, port_address

__all__ = ["CONGESTION_STIMULI"]

_SWITCH_LID, _HOST_LID, _KEY = 2, 1, 0x77
_GROUP = 0xC001
_SETTING: Final = SWITCH_CONGESTION_SETTING.record(
    control_map=SwitchControl.VICTIM_MASK | SwitchControl.THRESHOLD | SwitchControl.MARKING_RATE,
    victim_mask=0b1000,
    threshold=14,
    packet_size=2,
    marking_rate=1,
)


def congestion() -> RunSpec:
    """Hosts that send more than the others take, and one that takes nothing for a while; what is logged of it."""
    star = Star(replace(TRIO, readers=2), replace(SMALL, vls=2, receive_blocks=12))
    _write(star, CcAttribute.SWITCH_CONGESTION_SETTING, _SETTING, range(8, 27))
    own = SWITCH_PORT_CONGESTION_ELEMENT.pack(valid=1, threshold=13, marking_rate=2)
    star.write(30, SWITCH, port_address(3, PortRegister.CONGESTION), int.from_bytes(own))
    star.write(30, SWITCH, mft_address(_GROUP, 0), 0b1100)
    star.stall(START + 100, 2)
    star.resume(START + 500, 2)
    for number in range(10):
        for source, target in ((1, 3), (2, 3), (3, 2), (1, 2)):
            star.post(START, source, target, (100, 44, 0)[number % 3], vl=number % 2, grh=number % 5 == 3)
        star.post(START, 1, _GROUP, 60, vl=number % 2)
    end = START + 1_000
    for place, word in enumerate((0, 1, 9, *range(10, 19))):
        star.read(end + place, SWITCH, congestion_address(CcAttribute.CONGESTION_LOG, word))
    star.read(end + 20, SWITCH, congestion_address(CcAttribute.CONGESTION_LOG, 0))
    return star.spec(end + 30)


def congested() -> RunSpec:
    """Two hosts send to the third large packets and small ones; a Marking_Rate is not set."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=24))
    element = SWITCH_PORT_CONGESTION_ELEMENT.to_int(valid=1, threshold=12, packet_size=2)
    star.write(0, SWITCH, port_address(3, PortRegister.CONGESTION), element)
    for size in (60, 60, 60, 60, 0, 60, 60):
        for source in (1, 2):
            star.post(START, source, 3, size)
    return star.spec(START + 450)


def congestion_manager() -> RunSpec:
    """Requests to a switch that gets a CC_Key; some of them have another."""
    star = Star(PAIR, SMALL)
    star.write(30, SWITCH, lft_address(_SWITCH_LID), 0)
    info = CONGESTION_KEY_INFO.record(cc_key=_KEY)
    only_threshold = _SETTING.replace(control_map=SwitchControl.THRESHOLD)
    requests = (
        (MadMethod.SET, CcAttribute.CONGESTION_KEY_INFO, info.pack(), 0),
        (MadMethod.GET, CcAttribute.CONGESTION_KEY_INFO, b"\xff" * CC_DATA_BYTES, _KEY + 1),
        (MadMethod.SET, CcAttribute.SWITCH_CONGESTION_SETTING, _SETTING.pack(), _KEY + 1),
        (MadMethod.SET, CcAttribute.SWITCH_CONGESTION_SETTING, only_threshold.pack(), _KEY),
        (MadMethod.GET, CcAttribute.CONGESTION_KEY_INFO, b"", _KEY),
        (MadMethod.GET, CcAttribute.CA_CONGESTION_SETTING, b"", _KEY),
    )
    cycle = START + 10
    for number, (method, attribute, data, key) in enumerate(requests):
        request = cc_request(method, attribute, data, transaction_id=number, cc_key=key)
        star.send(cycle, 1, gmp_packet(request, _HOST_LID, _SWITCH_LID))
        cycle += 800
    return star.spec(cycle)


def _write(star: Star, attribute: CcAttribute, record: Record, words: range) -> None:
    content = record.pack().ljust(CC_DATA_BYTES, b"\0")
    for word in words:
        value = int.from_bytes(content[WORD_BYTES * word :][:WORD_BYTES])
        star.write(0, SWITCH, congestion_address(attribute, word), value)


CONGESTION_STIMULI: Final[dict[str, Callable[[], RunSpec]]] = {
    stimulus.__name__: stimulus for stimulus in (congestion, congested, congestion_manager)
}
