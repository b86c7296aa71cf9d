"""Which data VL a port sends first (IBTA volume 1, section 7.6.9; docs/pipeline.md, section 7.1)."""

import pytest

from model.crossing.vl_arbitration import VlArbitration
from model.kernel import Kernel
from model.packet import DataTransmission, Packet
from wire.codes import LinkWidth
from wire.parameters import reset_cycles
from wire.registers import (
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    PortRegister,
    lft_address,
    port_address,
    vl_arbitration_address,
)
from wire.stimulus import Control, Operation
from wire.trace import Kind
from wire.trace_layout import TxData

SINK = 3
"""The adapter that gets all packets, and the switch's port to it."""
PACKET = 5
"""Blocks of each packet."""
PAYLOAD = 256
FULL = slice(20, 80)
"""Of the packets sent: all VLs have one waiting."""
SWITCH = {"lft_size": 16, "mft_size": 32, "vls": 4}
GRANT_TO_WIRE = 4
WAIT = 10_000
"""Cycles from the first packet until a list is changed."""


def lists(bench, high=(), low=(), limit=0):
    """Write the lists, (VL, weight) each, and the limit of the switch's port to the sink."""
    for offset, entries in ((VL_ARBITRATION_HIGH, high), (VL_ARBITRATION_LOW, low)):
        for place, (vl, weight) in enumerate(entries):
            bench.write(0, vl_arbitration_address(SINK, offset, place), vl << 8 | weight)
    bench.write_port(0, SINK, PortRegister.VL_HIGH_LIMIT, limit)


def narrow(bench, cycle=None):
    """The link to the sink is 1X."""
    for node, port in ((0, SINK), (SINK, 1)):
        cycle = bench.write_port(node, port, PortRegister.WIDTH, LinkWidth.X1, cycle) + 1


def offer(bench, cycle, counts):
    """Two adapters each have so many packets on these VLs, and links eight times as fast as the sink's."""
    for vl, count in counts.items():
        for source in (1, 2):
            for _ in range(count):
                bench.post(cycle, source, SINK, slot=vl, vl=vl, sl=vl, payload=PAYLOAD)


def sent(bench):
    """The VLs of the packets sent to the sink, in order, one digit each."""
    return "".join(f"{TxData.slot.read(record):x}" for record in bench.of(Kind.TX_DATA, 0, SINK))


def congested(star, ready, counts=(60, 60, 60), vls=4, **arbitration):
    """The VLs of what goes to the sink while packets wait on VL 0 and up."""
    bench = star(3, **SWITCH | {"vls": vls}, bring_up=False)
    lists(bench, **arbitration)
    narrow(bench)
    bench.bring_up()
    offer(bench, ready, dict(enumerate(counts)))
    vls = sent(bench.run(ready + 200_000))
    assert len(vls) == 2 * sum(counts), "all of them"
    return vls


def test_the_data_vls_share_a_link_as_their_weights_say(star, ready):
    low = [(0, PACKET), (1, 2 * PACKET), (2, 5 * PACKET)]
    assert congested(star, ready, low=low)[FULL] in "01122222" * 20
    assert congested(star, ready, high=low, limit=255)[FULL] in "01122222" * 20


def test_an_entry_may_send_while_something_remains_of_it_and_owes_nothing_then(star, ready):
    low = [(0, 1), (1, PACKET + 1), (2, 2 * PACKET)]
    assert congested(star, ready, low=low)[FULL] in "01122" * 20


def test_a_vl_may_have_several_entries(star, ready):
    low = [(0, PACKET), (1, PACKET), (0, PACKET), (2, PACKET)]
    assert congested(star, ready, low=low)[FULL] in "0102" * 20


def test_an_entry_without_weight_and_one_of_a_vl_that_is_not_there_are_passed_over(star, ready):
    low = [(2, 0), (0, PACKET), (4, 255), (1, PACKET), (15, 255), (2, PACKET)]
    assert congested(star, ready, low=low)[FULL] in "012" * 30


def test_without_lists_all_vls_take_turns(star, ready):
    assert congested(star, ready)[FULL] in "012" * 30


def test_what_follows_at_once_after_a_packet_that_is_not_sent_goes_by_the_turn_before_it(star, ready):
    """A packet of VL 1 is on a slow link; behind it are two of VL 0, the first too long, and one of VL 1."""
    bench = star(5, **SWITCH | {"vls": 2}, bring_up=False)
    narrow(bench)
    bench.bring_up()
    bench.write_port(0, SINK, PortRegister.NEIGHBOR_MTU, 1, ready)
    for late, source, vl, payload in ((0, 5, 1, 256), (0, 1, 0, 512), (150, 2, 0, 64), (150, 4, 1, 64)):
        bench.post(ready + 50 + late, source, SINK, slot=vl, vl=vl, sl=vl, payload=payload)
    bench.run(4000)
    (discarded,) = bench.of(Kind.TX_DISCARD, 0, SINK)
    _, second, third = bench.of(Kind.TX_DATA, 0, SINK)
    grant = discarded.cycle - GRANT_TO_WIRE
    assert second.c == grant + 4 + GRANT_TO_WIRE
    assert [TxData.slot.read(record) for record in (second, third)] == [0, 1]


def test_a_vl_in_neither_list_sends_when_no_other_can(star, ready):
    vls = congested(star, ready, counts=(60, 20, 60), high=[(0, 255)], low=[(1, 255)], limit=255)
    assert "2" not in vls[FULL]
    assert vls.endswith("2" * 100)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_the_low_list_waits_for_what_the_limit_says_in_4096_bytes_and_no_longer(star, ready, limit):
    """The packet that reaches the limit may overdraw it."""
    high = max(1, -(-64 * limit // PACKET))
    vls = congested(star, ready, counts=(100, 60, 0), high=[(0, 255)], low=[(1, 255)], limit=limit)
    assert vls[FULL] in ("0" * high + "1") * 60


def test_without_a_limit_the_low_list_waits_as_long_as_the_high_one_can_send(star, ready):
    vls = congested(star, ready, counts=(60, 60, 0), high=[(0, 255)], low=[(1, 255)], limit=255)
    assert "1" not in vls[FULL]
    assert vls.endswith("1" * 100)


def test_the_high_list_sends_on_beyond_its_limit_when_the_low_one_has_nothing(star, ready):
    vls = congested(star, ready, counts=(60, 0, 60), high=[(0, PACKET), (2, PACKET)], low=[(1, 255)])
    assert vls[FULL] in "02" * 40


def test_where_both_lists_have_a_vl_it_sends_in_the_turns_of_either(star, ready):
    vls = congested(star, ready, high=[(0, 255)], low=[(0, PACKET), (1, PACKET), (2, PACKET)])
    assert vls[FULL] in "000102" * 20


def test_fifteen_data_vls_share_a_link(star, ready):
    low = [(vl, PACKET) for vl in range(15)] + [(14, PACKET)]
    vls = congested(star, ready, counts=[20] * 15, vls=15, low=low)
    assert vls[50:250] in "0123456789abcdee" * 20


# What is visible when.


def sent_late(star, ready, change=None, **arbitration):
    """(Grant, VL) of what is sent when two VLs have waited for long; CHANGE is a write: address, value, cycle."""
    bench = star(3, **SWITCH, bring_up=False)
    lists(bench, **arbitration)
    narrow(bench)
    bench.bring_up()
    if change:
        bench.write(0, *change)
    offer(bench, ready, {0: 60, 1: 60})
    packets = bench.run(ready + 2 * WAIT).of(Kind.TX_DATA, 0, SINK, since=ready + WAIT)
    return [(TxData.first_cycle.read(record) - GRANT_TO_WIRE, TxData.slot.read(record)) for record in packets]


def with_change(star, ready, address, value, given, **arbitration):
    """The VLs of a packet of VL 1, or in its place, and of the next; GIVEN is when a write is, from its grant on."""
    grant = next(grant for grant, vl in sent_late(star, ready, **arbitration) if vl == 1)
    changed = sent_late(star, ready, (address, value, grant + given), **arbitration)
    return [vl for at, vl in changed if at >= grant]


@pytest.mark.parametrize(("given", "first"), [(-4, [0, 0]), (-3, [1, 0, 0])])
def test_an_entry_counts_for_grants_from_two_cycles_after_it_is_visible_on(star, ready, given, first):
    address = vl_arbitration_address(SINK, VL_ARBITRATION_HIGH, 3)
    both = [(0, PACKET), (1, PACKET)]
    vls = with_change(star, ready, address, PACKET, given, low=both, limit=255)
    assert vls[: len(first)] == first


@pytest.mark.parametrize(("given", "first"), [(1, [1, 1, 0]), (2, [1, 0, 1, 1])])
def test_a_packet_is_taken_from_the_weight_visible_three_cycles_after_its_grant(star, ready, given, first):
    address = vl_arbitration_address(SINK, VL_ARBITRATION_LOW, 1)
    vls = with_change(star, ready, address, 1 << 8 | 2 * PACKET, given, low=[(0, PACKET), (1, PACKET)])
    assert vls[: len(first)] == first


@pytest.mark.parametrize(("given", "first"), [(1, [1, 0, 0, 0]), (2, [1, 0, 1, 0, 0])])
def test_the_limit_counts_as_visible_three_cycles_after_the_grant(star, ready, given, first):
    address = port_address(SINK, PortRegister.VL_HIGH_LIMIT)
    vls = with_change(star, ready, address, 1, given, high=[(0, PACKET)], low=[(1, PACKET)])
    assert vls[: len(first)] == first


# The arbitration alone, where VLs may have nothing to send.


class Alone:
    """VL 0 and 1 at an output."""

    def __init__(self, **lists):
        self.kernel = Kernel()
        self.arbitration = VlArbitration(self.kernel, 2)
        for name, entries in lists.items():
            for place, (vl, weight) in enumerate(entries):
                self.arbitration.write(getattr(self.arbitration, name), place, vl, weight)
        list(self.kernel.run(10))

    def order(self):
        return self.arbitration.order([0, 1])

    def send(self, vl, blocks=PACKET, refused=-1):
        """A packet is granted, of which rows from REFUSED on may be refused. Returns the order that follows."""
        self.order()
        packet = Packet()
        packet.slot, packet.need, packet.n, packet.output = vl, blocks, 16 * blocks - 2, 0
        now = self.kernel.now
        sending = DataTransmission(packet, now, vl, 1, 1)
        self.arbitration.granted(sending)
        sending.refused = refused
        list(self.kernel.run(now + 6))
        return self.order()


@pytest.mark.parametrize(("refused", "following"), [(-1, [1, 0]), (0, [0, 1]), (1, [1, 0])])
def test_a_packet_of_which_nothing_is_sent_takes_nothing_from_its_entry(refused, following):
    alone = Alone(low=[(0, PACKET), (1, PACKET)])
    assert alone.order() == [0, 1]
    assert alone.send(0, refused=refused) == following


def test_an_entry_is_new_when_no_other_vl_took_its_turn():
    alone = Alone(low=[(0, 2 * PACKET), (1, PACKET)])
    assert [alone.send(0) for _ in range(4)] == [[0, 1], [1, 0]] * 2


def test_the_allowance_is_new_when_the_low_list_did_not_take_its_turn():
    alone = Alone(high=[(0, 255)], low=[(1, 255)])
    alone.arbitration.high_limit = 1
    assert [alone.send(0, 40) for _ in range(5)] == [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]


def test_what_is_spent_does_not_matter_without_a_limit():
    alone = Alone(high=[(0, 255)], low=[(1, 255)])
    assert alone.send(0) == [1, 0]
    alone.arbitration.high_limit = 255
    assert alone.send(0) == [0, 1]


def test_reset_empties_the_lists(star, ready):
    bench = star(3, **SWITCH)
    lists(bench, high=[(0, 255)], low=[(1, 255)], limit=255)
    over = ready + reset_cycles(bench.parameters.nodes["sw"]) + 2
    bench.controls.append(Control(ready, Operation.RESET, 0))
    for lid in (1, 2, 3):
        bench.write(0, lft_address(lid), lid, over + lid)
    narrow(bench, over + 10)
    bench.bring_up(over)
    bench.read_port(0, SINK, PortRegister.VL_HIGH_LIMIT, over + 999)
    offer(bench, over + 1000, {0: 60, 1: 60, 2: 60})
    bench.run(over + 50_000)
    assert bench.values() == [0]
    assert len(sent(bench)[FULL]) == 60
    assert sent(bench)[FULL] in "012" * 30
