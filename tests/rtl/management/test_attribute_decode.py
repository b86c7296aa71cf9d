"""Which attributes, methods and modifiers there are (docs/management.md, section 4.1)."""

from typing import Any

import pytest

from tests.rtl.management.agent_bench import Bench, request
from tests.rtl.management.sma_bench import (
    ADAPTER,
    GET,
    INVALID,
    OK,
    SET,
    SWITCH,
    UNSUPPORTED,
    VERSION,
    Asked,
    answers,
    arbitration,
    mft,
    p_key,
    padded,
    pair,
)
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_tables import SL_TO_VL_MAPPING_TABLE
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO

ALLOWED_IN_SWITCH = {
    SmaAttribute.PORT_INFO: [0, 3, 0x8000_0003],
    SmaAttribute.P_KEY_TABLE: [p_key(0), p_key(3)],
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: [pair(0, 3), pair(3, 0)],
    SmaAttribute.VL_ARBITRATION_TABLE: [arbitration(1, 3), arbitration(3, 1)],
    SmaAttribute.LINEAR_FORWARDING_TABLE: [0, 1],
    SmaAttribute.MULTICAST_FORWARDING_TABLE: [mft(0, 0), mft(0, 1)],
    SmaAttribute.LED_INFO: [1, 3],
}
NOT_ALLOWED_IN_SWITCH = {
    SmaAttribute.NODE_DESCRIPTION: [1, 1 << 31],
    SmaAttribute.NODE_INFO: [1, 1 << 31],
    SmaAttribute.SWITCH_INFO: [1, 1 << 31],
    SmaAttribute.GUID_INFO: [1, 1 << 31],
    SmaAttribute.VENDOR_DIAG: [1],
    SmaAttribute.PORT_INFO: [4, 255, 0x100, 0x4000_0000],
    SmaAttribute.P_KEY_TABLE: [p_key(4), p_key(0, block=1), p_key(0x8000)],
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: [pair(4, 0), pair(0, 4), 1 << 16, 1 << 31],
    SmaAttribute.VL_ARBITRATION_TABLE: [
        *(arbitration(block, 1) for block in (0, 2, 4, 0x101)),
        *(arbitration(1, port) for port in (0, 4, 0x8001)),
    ],
    SmaAttribute.LINEAR_FORWARDING_TABLE: [2, 1 << 31],
    SmaAttribute.MULTICAST_FORWARDING_TABLE: [mft(1, 0), mft(0, 2), mft(0, 1 << 27)],
    SmaAttribute.LED_INFO: [0, 4, 1 << 31],
}
ALLOWED_IN_ADAPTER = {SmaAttribute.PORT_INFO: [0, 1, 0x8000_0001]}
NOT_ALLOWED_IN_ADAPTER = {
    SmaAttribute.NODE_INFO: [1],
    SmaAttribute.PORT_INFO: [2],
    SmaAttribute.P_KEY_TABLE: [p_key(0, block=1), p_key(9, block=1)],
    SmaAttribute.VL_ARBITRATION_TABLE: [arbitration(0, 1), arbitration(2, 1)],
    SmaAttribute.LED_INFO: [2],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "allowed", "not_allowed"),
    [(SWITCH, ALLOWED_IN_SWITCH, NOT_ALLOWED_IN_SWITCH), (ADAPTER, ALLOWED_IN_ADAPTER, NOT_ALLOWED_IN_ADAPTER)],
    ids=["switch", "adapter"],
)
def test_modifiers(
    parameters: NodeParameters, allowed: dict[int, list[int]], not_allowed: dict[int, list[int]]
) -> None:
    given = b"\x5a" * 64
    cases = [(attribute, modifier, OK) for attribute, modifiers in allowed.items() for modifier in modifiers]
    cases += [(attribute, modifier, INVALID) for attribute, modifiers in not_allowed.items() for modifier in modifiers]
    works = answers(parameters, [(GET, attribute, modifier, given) for attribute, modifier, _ in cases])
    for (attribute, modifier, status), work in zip(cases, works, strict=True):
        assert work.status == status, (attribute, hex(modifier))
        assert work.answered
        if status is INVALID:
            assert (work.attribute, work.accesses) == (given, [])


NOT_OF_ADAPTERS = (
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
)
UNKNOWN = (
    SmaAttribute.NOTICE,
    SmaAttribute.RANDOM_FORWARDING_TABLE,
    SmaAttribute.LINK_SPEED_WIDTH_PAIRS_TABLE,
    0,
    0x110,
)
READ_ONLY = (SmaAttribute.NODE_DESCRIPTION, SmaAttribute.NODE_INFO, SmaAttribute.VENDOR_DIAG)


@pytest.mark.parametrize(
    ("parameters", "unsupported"),
    [(SWITCH, (*UNKNOWN, SmaAttribute.SM_INFO)), (ADAPTER, (*UNKNOWN, *NOT_OF_ADAPTERS))],
    ids=["switch", "adapter"],
)
def test_attributes_and_methods_that_are_not_supported(parameters: NodeParameters, unsupported: Any) -> None:
    given = b"\x5a" * 64
    asked = [(GET, attribute, 0, given) for attribute in unsupported]
    asked += [(SET, attribute, 0, given) for attribute in (*unsupported, *READ_ONLY)]
    asked += [(SET, SmaAttribute.NODE_INFO, 1, given)]
    for work in answers(parameters, asked):
        assert (work.status, work.attribute, work.answered, work.accesses) == (UNSUPPORTED, given, True, [])


def test_another_class_version_is_not_supported_whatever_is_asked() -> None:
    bench = Bench(SWITCH)
    given = b"\xff" * 64

    async def script(bench: Bench) -> None:
        for attribute in (SmaAttribute.SWITCH_INFO, SmaAttribute.SM_INFO):
            work = await bench.smp(request(SET, attribute, 3, given, class_version=2))
            assert (work.status, work.attribute, work.answered, work.accesses) == (VERSION, given, True, [])
        work = await bench.get(SmaAttribute.SWITCH_INFO)
        assert SWITCH_INFO.unpack(work.attribute).default_port == 0

    bench.run(script)


def test_the_last_port_of_the_largest_switch() -> None:
    table = SL_TO_VL_MAPPING_TABLE.pack(15 - sl for sl in range(16))
    masks = MULTICAST_FORWARDING_TABLE.pack(range(100, 132))
    asked: list[Asked] = [
        (SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(64, 64), table),
        (SET, SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(4, 7), masks),
        (GET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(64, 64), b""),
        (GET, SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(4, 7), b""),
        (GET, SmaAttribute.LED_INFO, 64, b""),
    ]
    works = answers(SwitchParameters(ports=64), asked, arrival=64)
    assert [work.attribute for work in works] == [*[padded(table), padded(masks)] * 2, bytes(64)]
    assert all(work.outputs == (63,) for work in works)
