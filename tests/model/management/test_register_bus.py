"""The register bus and the counters (docs/pipeline.md, sections 8.3 and 10)."""

import pytest

from wire.registers import (
    VL_ARBITRATION_LOW,
    Counter,
    Detail,
    NodeRegister,
    PortRegister,
    lft_address,
    node_address,
    port_address,
    sl_to_vl_address,
    vl_arbitration_address,
)
from wire.stimulus import Control, Operation
from wire.trace import Kind, port_source


def read(bench, node, *addresses, at=50):
    for i, address in enumerate(addresses):
        bench.controls.append(Control(at + i, Operation.BUS_READ, node, (address, 0, 0, 0)))


def test_an_answer_comes_after_four_cycles_with_what_is_visible_after_two(star):
    bench = star(2, bring_up=False)
    bench.write_port(0, 1, PortRegister.TICK, 7, 50)
    read(bench, 0, port_address(1, PortRegister.TICK), at=49)
    read(bench, 0, port_address(1, PortRegister.TICK), at=51)
    bench.run(100)
    answers = bench.of(Kind.BUS_READ, since=0)
    assert [(record.cycle, record.source, record.b) for record in answers] == [
        (53, port_source(0, 0), 0x1F),
        (55, port_source(0, 0), 7),
    ]


@pytest.mark.parametrize(
    ("register", "reset", "good", "bad"),
    [
        (PortRegister.WIDTH, 2, 1, 3),
        (PortRegister.NEIGHBOR_MTU, 4, 1, 5),
        (PortRegister.OPERATIONAL_VLS, 2, 1, 3),
        (PortRegister.FCP_THRESHOLD, 32, 0xFFF, 0x1000),
        (PortRegister.FCP_PERIOD, 48_488, (1 << 24) - 1, 0),
        (PortRegister.FC_WATCHDOG, 400_000, 1 << 20, 1 << 24),
        (PortRegister.LINK_DOWN_TIMEOUT, 2_500_000, 1, 0),
        (PortRegister.TICK, 0x1F, 0xFF, 0x100),
        (PortRegister.LOCAL_PHY_ERRORS, 15, 0, 16),
        (PortRegister.OVERRUN_ERRORS, 15, 0, 16),
        (PortRegister.VL_HIGH_LIMIT, 0, 0xFF, 0x100),
        (PortRegister.HOQ_LIFE, 31, 0, 32),
        (PortRegister.VL_STALL_COUNT, 0, 7, 8),
        (PortRegister.PARTITION, 0, 15, 16),
        *((PortRegister.LINK_WIDTH_ENABLED, 3, widths, bad) for widths in (1, 2) for bad in (0, 4, 5, 127, 254, 256)),
        (PortRegister.LINK_DOWN_DEFAULT, 2, 1, 0),
        (PortRegister.LINK_DOWN_DEFAULT, 2, 1, 3),
        (Detail.P_KEY_VIOLATIONS, 0, 0xFFFF, 0x1_0000),
        (Counter.LINK_DOWNED, 0, 0xFF, 0x100),
        (Counter.XMIT_WAIT, 0, 0xFFFF_FFFF, 0x1_0000_0000),
    ],
)
def test_a_value_that_is_not_allowed_is_ignored(star, register, reset, good, bad):
    bench = star(2, vls=2, bring_up=False)
    address = port_address(2, register)
    read(bench, 0, address, at=50)
    bench.write(0, address, good, 51)
    read(bench, 0, address, at=52)
    bench.write(0, address, bad, 53)
    read(bench, 0, address, at=54)
    bench.run(100)
    assert bench.values() == [reset, good, good]


def test_255_enables_all_widths(star):
    bench = star(2, bring_up=False)
    address = port_address(1, PortRegister.LINK_WIDTH_ENABLED)
    for i, value in enumerate((1, 255)):
        bench.write(1, address, value, 50 + 2 * i)
        read(bench, 1, address, at=51 + 2 * i)
    assert bench.run(100).values() == [1, 3]


def test_vl_high_limit_is_not_there_with_one_data_vl_and_entries_are_never_read(star):
    bench = star(2, bring_up=False)
    limit, entry = port_address(1, PortRegister.VL_HIGH_LIMIT), vl_arbitration_address(1, VL_ARBITRATION_LOW, 0)
    bench.write(0, limit, 9, 50)
    bench.write(0, entry, 0xFF, 51)
    read(bench, 0, limit, entry, at=60)
    wide = star(2, bring_up=False, vls=2)
    wide.write(0, entry, 0xFF, 51)
    read(wide, 0, entry, at=60)
    assert bench.run(100).values() == [0, 0]
    assert wide.run(100).values() == [0]


def test_the_life_time_of_a_switch_has_five_bits(star):
    bench = star(2, bring_up=False)
    address = node_address(NodeRegister.LIFE_TIME)
    for i, value in enumerate((0, 32)):
        read(bench, 0, address, at=50 + 2 * i)
        bench.write(0, address, value, 51 + 2 * i)
    read(bench, 0, address, at=54)
    bench.run(100)
    assert bench.values() == [31, 0, 0]


@pytest.mark.parametrize(
    ("register", "reset", "good", "bad"),
    [
        (NodeRegister.MULTICAST_FDB_TOP, 0, 0xC0FF, 0x1_0000),
        (NodeRegister.DEFAULT_MULTICAST_PRIMARY, 255, 7, 256),
        (NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY, 255, 0, 256),
    ],
)
def test_multicast_registers_of_a_switch(star, register, reset, good, bad):
    bench = star(2, bring_up=False)
    address = node_address(register)
    read(bench, 0, address, at=50)
    bench.write(0, address, good, 51)
    read(bench, 0, address, at=52)
    bench.write(0, address, bad, 53)
    read(bench, 0, address, at=54)
    bench.write(1, address, good, 55)
    read(bench, 1, address, at=60)
    bench.run(100)
    assert bench.values() == [reset, good, good, 0]


@pytest.mark.parametrize("node", [0, 1])
def test_lease_second_is_250_million_cycles_of_4_ns_and_never_0(star, node):
    bench = star(2, bring_up=False)
    address = node_address(NodeRegister.LEASE_SECOND)
    for i, value in enumerate((0xFFFF_FFFF, 0)):
        read(bench, node, address, at=50 + 2 * i)
        bench.write(node, address, value, 51 + 2 * i)
    read(bench, node, address, at=54)
    bench.run(100)
    assert bench.values() == [250_000_000, 0xFFFF_FFFF, 0xFFFF_FFFF]


def test_physical_state_reads_linkup_or_polling_unless_the_port_is_asleep_or_disabled(star):
    """Written Sleep and Disabled; 0 and 4 are no states to write. The neighbour's link is down meanwhile."""
    bench = star(2, bring_up=False)
    address = port_address(1, PortRegister.PHYSICAL_STATE)
    for i, value in enumerate((1, 0, 3, 4, 2, 2)):
        read(bench, 0, address, at=50 + 10 * i)
        read(bench, 1, address, at=52 + 10 * i)
        bench.write(0, address, value, 54 + 10 * i)
    bench.run(200)
    own, neighbours = bench.values()[::2], bench.values()[1::2]
    assert own == [5, 1, 1, 3, 3, 5]
    assert neighbours == [5, 2, 2, 2, 2, 5]


def test_an_active_port_whose_link_is_gone_reads_linkerrorrecovery_until_it_is_down(star, ready):
    bench = star(2)
    bench.write(0, port_address(2, PortRegister.LINK_DOWN_TIMEOUT), 20, ready)
    bench.link(ready + 100, 1, False)
    for at in (98, 99, 117, 118, 119, 120):
        read(bench, 0, port_address(2, PortRegister.PHYSICAL_STATE), at=ready + at)
    bench.run(ready + 200)
    assert bench.values() == [5, 6, 6, 6, 6, 2]


def test_tables_and_node_registers_read_what_was_written(star):
    bench = star(2, vls=2, bring_up=False, lft_size=16)
    addresses = [
        node_address(NodeRegister.NUM_PORTS),
        node_address(NodeRegister.LINEAR_FDB_TOP),
        lft_address(1),
        lft_address(5),
        lft_address(16),
        sl_to_vl_address(1, 2, 3),
        sl_to_vl_address(3, 1, 1),
        0x123456,
    ]
    read(bench, 0, *addresses)
    bench.run(100)
    assert bench.values() == [2, 15, 1, 255, 0, 1, 0, 0]


def test_an_lft_entry_counts_for_headers_from_the_cycle_in_which_it_is_visible(star, ready):
    for given_before, delivered in ((2, 1), (1, 0)):
        bench = star(2)
        row_1 = ready + 1 + 11 + 2 + 1 + 4 + 1 + 1  # h of the packet's header
        bench.write(0, lft_address(2), 255, ready)
        bench.write(0, lft_address(2), 2, row_1 - given_before)
        bench.post(ready, 1, 2, payload=12)
        bench.run(2000)
        assert len(bench.delivered) == delivered
