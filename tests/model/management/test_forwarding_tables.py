"""A switch's forwarding tables by Get and Set (docs/management.md, sections 4.1 and 4.3)."""

import pytest

from tests.model.management.agent_bench import BLOCK, START, Bench
from tests.model.management.test_switch_info import RESET, switch_info
from wire.mad import MadStatus
from wire.parameters import SwitchParameters
from wire.registers import NodeRegister, lft_address, mft_address, node_address
from wire.sma import SmaAttribute

A = SmaAttribute


def test_multicast_positions_count_port_0():
    for ports, positions in ((2, 1), (15, 1), (16, 2), (31, 2), (32, 3)):
        bench = Bench(SwitchParameters(ports=ports))
        good = [
            position
            for position in range(16)
            if bench.read(A.MULTICAST_FORWARDING_TABLE, position << 28)[0] == MadStatus.OK
        ]
        assert good == list(range(positions))


@pytest.mark.parametrize(("size", "blocks"), [(64, 1), (65, 2), (128, 2), (129, 3)])
def test_the_blocks_of_an_lft(size, blocks):
    bench = Bench(SwitchParameters(lft_size=size))
    good = [block for block in range(5) if bench.read(A.LINEAR_FORWARDING_TABLE, block)[0] == MadStatus.OK]
    assert good == list(range(blocks))


def test_a_block_of_the_lft_is_written_entry_by_entry(switch):
    switch.write(A.LINEAR_FORWARDING_TABLE, BLOCK)
    assert switch.of("write") == [
        (START + 16 + 8 * (entry // 4) + 2 + entry % 4, lft_address(entry), entry)
        for entry in range(64)  # its slots are long
    ]


def test_a_block_of_the_mft_is_written_mask_by_mask():
    bench = Bench(SwitchParameters(ports=16, mft_size=64))
    bench.write(A.MULTICAST_FORWARDING_TABLE, BLOCK, 1 << 28 | 1)
    assert bench.of("write") == [
        (START + 16 + 8 * (entry // 2) + 2 + entry % 2, mft_address(0xC020 + entry, 1), 0x0202 * entry + 1)
        for entry in range(32)
    ]


def test_of_the_last_block_only_the_lids_of_the_table_are_written(switch):
    assert switch.write(A.LINEAR_FORWARDING_TABLE, BLOCK, 1) == (MadStatus.OK, BLOCK)
    assert [address for _, address, _ in switch.of("write")] == [lft_address(lid) for lid in range(64, 100)]


def test_what_the_test_bus_writes_is_not_what_is_stored(switch):
    switch.registers[lft_address(0)] = 3
    switch.registers[node_address(NodeRegister.LINEAR_FDB_TOP)] = 3
    switch.registers[node_address(NodeRegister.LIFE_TIME)] = 3
    assert switch.read(A.LINEAR_FORWARDING_TABLE) == (MadStatus.OK, b"\xff" * 64)
    assert switch_info(switch) == RESET
