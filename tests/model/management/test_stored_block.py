"""Blocks that are stored and read back (docs/management.md, section 4.1)."""

import pytest

from tests.model.management.agent_bench import BLOCK
from wire.mad import MadStatus
from wire.port_tables import P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE
from wire.sma import SMA_ATTRIBUTES, SmaAttribute

A = SmaAttribute


def padded(data):
    return data.ljust(64, b"\0")


DEFAULT_P_KEYS = P_KEY_TABLE.pack([0xFFFF])


@pytest.mark.parametrize(
    ("attribute", "modifiers", "reset"),
    [
        (A.P_KEY_TABLE, [port << 16 for port in range(5)], DEFAULT_P_KEYS),
        (
            A.SL_TO_VL_MAPPING_TABLE,
            [0, 1, 4, 0x100, 0x104, 0x404, 0x203, 0x302],
            padded(SL_TO_VL_MAPPING_TABLE.pack([0, 1] * 8)),
        ),
        (A.VL_ARBITRATION_TABLE, [block << 16 | port for block in (1, 3) for port in (1, 2, 4)], bytes(64)),
        (A.LINEAR_FORWARDING_TABLE, [0, 1], b"\xff" * 64),
        (A.MULTICAST_FORWARDING_TABLE, [0, 1], bytes(64)),
        (A.LED_INFO, [1, 2, 3, 4], bytes(64)),
    ],
)
def test_each_block_of_a_switch_keeps_what_is_set(switch, attribute, modifiers, reset):
    size = SMA_ATTRIBUTES[attribute].format.size_bytes
    stored = {}
    for modifier in modifiers:
        assert switch.read(attribute, modifier) == (MadStatus.OK, reset)
    for at, modifier in enumerate(modifiers):
        data = bytes((i * 7 + at * 13 + 128) & 0xFF for i in range(64))
        stored[modifier] = bytes([0x80, 0, 0, 0]) if attribute == A.LED_INFO else data[:size]
        if attribute == A.LED_INFO and at % 2:
            data, stored[modifier] = bytes(64), bytes(4)
        assert switch.write(attribute, data, modifier) == (MadStatus.OK, padded(stored[modifier]))
    for modifier in modifiers:
        assert switch.read(attribute, modifier) == (MadStatus.OK, padded(stored[modifier]))


@pytest.mark.parametrize(
    ("attribute", "modifiers"),
    [
        (A.P_KEY_TABLE, [1, 5 << 16, 1 << 16 | 1, 0x8000_0000]),
        (A.SL_TO_VL_MAPPING_TABLE, [5, 0x500, 0x505, 1 << 16, 1 << 31]),
        (A.VL_ARBITRATION_TABLE, [0, 1, 1 << 16, 1 << 16 | 5, 2 << 16 | 1, 4 << 16 | 1, 5 << 16 | 1, 3 << 16]),
        (A.LINEAR_FORWARDING_TABLE, [2, 1 << 16, 1 << 31]),
        (A.MULTICAST_FORWARDING_TABLE, [2, 1 << 28, 1 << 16]),
        (A.LED_INFO, [0, 5, 1 << 16 | 1]),
        (A.PORT_INFO, [5, 1 << 30, 1 << 31 | 5]),
    ],
)
def test_a_modifier_that_is_not_allowed_is_answered_so(switch, attribute, modifiers):
    for modifier in modifiers:
        assert switch.read(attribute, modifier)[0] == MadStatus.INVALID_ATTRIBUTE_VALUE, hex(modifier)
        assert switch.write(attribute, BLOCK, modifier) == (MadStatus.INVALID_ATTRIBUTE_VALUE, BLOCK)
    assert not switch.of("write")
