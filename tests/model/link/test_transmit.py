"""Sending: reads, refusals, early ends and waiting (docs/pipeline.md, sections 8.1 to 8.3)."""

import pytest

from wire.codes import VL15, PortState
from wire.registers import Counter, PortRegister, mft_address
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData, RxFcp, Scrap, TxData, TxFcp

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (PortState(code) for code in range(1, 6))


def test_in_down_all_packets_are_swallowed(star, ready):
    bench = star(2)
    bench.link(ready, 1, False)
    bench.write_port(0, 2, PortRegister.STATE, DOWN, ready + 10)
    bench.post(ready + 100, 1, 2, payload=252)
    bench.run(2000)
    assert bench.states(0, 2, since=ready)[-1] == (ready + 12, DOWN)
    assert len(bench.of(Kind.TX_DISCARD, 0, 2)) == 1


def test_in_activedefer_packets_wait(star, ready):
    bench = star(2)
    bench.link(ready, 1, False)
    bench.post(ready + 100, 1, 2, payload=252)
    bench.link(ready + 900, 1, True)
    bench.run(3000)
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    # Active at 902, seen by the matching two later, on the wire four after that.
    assert sent.c == ready + 902 + 2 + 4
    assert len(bench.delivered) == 1


def test_a_row_is_refused_by_the_state_in_its_own_cycle_alone(star, ready):
    """A 1X flow control packet: Down for one cycle, around that of row 1 in the stage."""

    def sent(down):
        bench = star(2)
        bench.write_port(0, 1, PortRegister.WIDTH, 1, ready)
        bench.write_port(1, 1, PortRegister.WIDTH, 1, ready + 1)
        bench.write_port(0, 1, PortRegister.FCP_PERIOD, 200, ready + 2)
        if down:
            bench.write_port(0, 1, PortRegister.STATE, DOWN, down - 2)
        return [record.cycle for record in bench.run(ready + 300).of(Kind.TX_FCP, 0) if record.a == 0]

    (undisturbed,) = sent(None)
    in_stage = undisturbed - 1
    assert [sent(in_stage + shift) == [undisturbed] for shift in (-3, -1, 0, 1)] == [True, True, False, True]


@pytest.mark.parametrize("down", range(-1, 5))
def test_a_packet_refused_at_row_0_leaves_nothing_in_the_blocks_sent(star, ready, down):
    """Down about the grant, Initialize next, Armed next: FCTBS begins at 0 again."""
    granted = ready + 101

    def run(*states):
        bench = star(2)
        bench.post(ready, 1, 2, payload=252)
        for shift, state in enumerate(states):
            bench.write_port(1, 1, PortRegister.STATE, state, granted + down - 2 + 2 * shift)
        bench.write_port(1, 1, PortRegister.FCP_PERIOD, 300, ready + 300)
        return bench.run(3000)

    (sent,) = run().of(Kind.TX_DATA, 1)
    granted = sent.c - 4
    bench = run(DOWN, ARMED)
    assert bench.states(1, since=ready) == [
        (granted + down, DOWN),
        (granted + down + 1, INITIALIZE),
        (granted + down + 2, ARMED),
    ]
    (refused,) = bench.of(Kind.TX_DISCARD, 1)
    assert (refused.cycle, len(bench.of(Kind.TX_DATA, 1))) == (sent.cycle, 0)
    announced = [TxFcp.fctbs.read(record) for record in bench.of(Kind.TX_FCP, 1)]
    assert len(announced) > 3
    assert set(announced) == {0}


def test_a_flow_control_packet_granted_in_the_cycle_of_down_passes_in_initialize(star, ready):
    """Its row 0 is in the stage three cycles later; the next packet is granted in between."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.FCP_PERIOD, 200, ready)
    granted = ready + 2 + 200 + 1
    bench.write_port(0, 1, PortRegister.STATE, DOWN, granted - 2)
    bench.run(ready + 220)
    assert bench.states(0, since=ready) == [(granted, DOWN), (granted + 1, INITIALIZE)]
    sent = [(record.cycle, TxFcp.op.read(record)) for record in bench.of(Kind.TX_FCP, 0)]
    received = [(record.cycle, RxFcp.op.read(record)) for record in bench.of(Kind.RX_FCP, 1)]
    assert sent[:2] == [(granted + 5, 0), (granted + 7, 1)]
    assert received[:2] == [(granted + 5 + 3, 0), (granted + 7 + 3, 1)]


@pytest.mark.parametrize("narrow", [{1}, {2}, {1, 2}])
def test_a_1x_link_sends_a_row_in_every_fourth_cycle(star, ready, narrow):
    bench = star(2)
    for port in sorted(narrow):
        bench.write_port(0, port, PortRegister.WIDTH, 1, ready - 20 + 2 * port)
        bench.write_port(port, 1, PortRegister.WIDTH, 1, ready - 19 + 2 * port)
    bench.post(ready, 1, 2, payload=256)
    bench.run(4000)
    n = len(bench.words(1, 2, payload=256))
    for node, port, width in ((1, 1, 1), (0, 2, 2)):
        (record,) = bench.of(Kind.TX_DATA, node, port)
        pitch = 4 if width in narrow else 1
        assert record.cycle - record.c == pitch * n
        assert pitch == 1 or record.c % 4 == 0
    (delivery,) = bench.delivered
    assert delivery.data == b"".join(word.to_bytes(4, "big") for word in bench.words(1, 2, payload=256))


def test_an_early_end_frees_the_output_for_the_next_packet(star, ready):
    """The row after row 20 is destroyed on entry: cut there, sent with EBP as row 20."""
    bench = star(2)
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, first=20, last=20, flip=8 << 32))
    bench.post(ready + 10, 1, 2, payload=256)
    bench.post(ready + 10, 1, 2, payload=256, seed=1)
    bench.read_port(2, 1, Counter.RCV_REMOTE_PHYSICAL_ERRORS, 2900)
    bench.read_port(0, 1, Counter.SYMBOL_ERROR, 2901)
    bench.run(3000)
    first, second = bench.of(Kind.TX_DATA, 0, 2)
    assert (TxData.marked_bad.read(first), TxData.end_row.read(first)) == (1, 20)
    assert TxData.marked_bad.read(second) == 0
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 1)] == [Verdict.PHYSICAL, Verdict.GOOD]
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 2)] == [Verdict.REMOTE, Verdict.GOOD]
    assert len(bench.delivered) == 1
    assert bench.values() == [1, 1]


def test_a_packet_known_to_be_bad_before_its_grant_is_scrapped(star, ready):
    """Adapter 2's port takes a long packet from adapter 3; adapter 1's bad one waits meanwhile."""
    bench = star(3)
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, first=5, last=5, flip=1))
    bench.post(ready + 10, 3, 2, payload=2048)
    bench.post(ready + 700, 1, 2, payload=64)
    bench.run(3000)
    (scrap,) = bench.of(Kind.SCRAP, 0, 2)
    assert Scrap.input.read(scrap) == 0
    assert [TxData.input.read(record) for record in bench.of(Kind.TX_DATA, 0, 2)] == [2]


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 20, 0])
def test_blocks_of_an_early_end_return_when_its_last_row_has_been_read(star, ready, cut):
    """EBP takes the place of row n - cut; 0 is an undamaged packet."""
    bench = star(2)
    bench.write_port(0, 1, PortRegister.FCP_THRESHOLD, 0, ready)
    n = len(bench.words(1, 2, payload=256))
    if cut:
        row = n - cut
        injection = Injection(Trigger.DATA, first=row, last=row, keep=0xF_FFFF_FF00, flip=1 << 32 | 0xFE)
        bench.inject(ready + 1, 0, 1, injection)
    bench.post(ready + 10, 1, 2, payload=256)
    bench.run(2000)
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    (announced,) = [record for record in bench.of(Kind.TX_FCP, 0, 1) if record.cycle > sent.c]
    first_read = sent.c - 3
    asked = first_read + n - cut + 2 if cut else first_read + n + 1
    # Free one later, flags one later, granted at once, row 1 on the wire 5 later.
    assert announced.cycle == asked + 1 + 1 + 5


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 20, 0])
def test_an_output_is_available_once_the_last_row_is_read(star, ready, cut):
    bench = star(3)
    n = len(bench.words(1, 2, payload=256))
    if cut:
        row = n - cut
        injection = Injection(Trigger.DATA, first=row, last=row, keep=0xF_FFFF_FF00, flip=1 << 32 | 0xFE)
        bench.inject(ready, 0, 1, injection)
    bench.post(ready + 10, 1, 2, payload=256)
    bench.post(ready + 14, 3, 2, payload=256)
    bench.run(2000)
    first, second = bench.of(Kind.TX_DATA, 0, 2)
    available = first.c - 3 + (min(n, n - cut + 3) if cut else n)
    assert second.c == available + 4


def test_an_output_that_scraps_waits_again_from_the_cycle_of_its_scrap_on(star, ready):
    """Ticks of one cycle. Behind the first packet are a bad one, and one that has no credits."""
    bench = star(3, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.stall(ready, 2, 1)
    bench.write_port(0, 2, PortRegister.TICK, 0, ready + 1)
    bench.inject(ready + 2, 0, 1, Injection(Trigger.DATA, first=5, last=5, flip=1))
    bench.post(ready + 100, 3, 2, payload=252)
    bench.post(ready + 101, 3, 2, payload=252)
    bench.post(ready + 180, 1, 2, payload=64)
    bench.read_port(0, 2, Counter.XMIT_WAIT, 1800 - 2)
    bench.run(2000)
    (scrap,) = bench.of(Kind.SCRAP, 0, 2)
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    assert scrap.cycle == sent.c - 3 + TxData.end_row.read(sent) + 3
    # The cycle in which the first packet was granted counts too: it was a visible head.
    assert bench.values() == [1 + 1800 - scrap.cycle]


def test_an_output_that_scraps_is_available_in_the_cycle_after_its_scrap(star, ready):
    """Behind the first packet are a bad one and a good one, from two hosts."""
    bench = star(4)
    bench.inject(ready + 2, 0, 1, Injection(Trigger.DATA, first=5, last=5, flip=1))
    bench.post(ready + 100, 4, 2, payload=256)
    bench.post(ready + 170, 1, 2, payload=64)
    bench.post(ready + 170, 3, 2, payload=64)
    bench.run(2000)
    (scrap,) = bench.of(Kind.SCRAP, 0, 2)
    first, second = bench.of(Kind.TX_DATA, 0, 2)
    last_read = first.cycle - 3
    assert (scrap.cycle, second.c) == (last_read + 3, last_read + 4 + 4)


def test_an_output_does_not_wait_in_the_cycle_after_an_offer(star, ready):
    """Ticks of one cycle. A packet goes to three ports, two at a time."""
    bench = star(4, mft_size=32)
    bench.write(0, mft_address(0xC000, 0), 0b11100)
    for port in (2, 3, 4):
        bench.write_port(0, port, PortRegister.TICK, 0, ready + port)
        bench.read_port(0, port, Counter.XMIT_WAIT, 1800 + port)
    bench.post(ready + 100, 1, 0xC000, payload=256)
    bench.run(2000)
    at_once, second, third = (bench.of(Kind.TX_DATA, 0, port)[0].c for port in (2, 3, 4))
    # Each head has been visible since the first was granted, and all have been offered every two cycles until both
    # readers had a packet: the second twice, the third twice and when a reader was free.
    waits = [1, second - at_once, third - at_once - 1]
    assert second - at_once == 2
    assert bench.values() == waits


@pytest.mark.parametrize("active", range(-2, 4))
def test_an_output_waits_as_soon_as_it_is_active_but_for_the_cycle_after_an_offer(star, ready, active):
    """Ticks of one cycle. Two VL15 packets are for ports in ActiveDefer; a slow one keeps their input's only reader."""

    def run(up):
        bench = star(4, readers=1)
        for node, port, cycle in ((0, 4, ready - 20), (4, 1, ready - 19)):
            bench.write_port(node, port, PortRegister.WIDTH, 1, cycle)
        bench.write_port(0, 3, PortRegister.TICK, 0, ready + 1)
        for link in (1, 2):
            bench.link(ready + link + 1, link, False)
        bench.post(ready + 10, 1, 4, payload=256)
        for target in (2, 3):
            bench.post(ready + 10, 1, target, slot=1, vl=VL15, payload=256)
        bench.link(up, 2, True)
        bench.read_port(0, 3, Counter.XMIT_WAIT, 1800 - 2)
        return bench.run(2000)

    (discarded,) = run(1700).of(Kind.TX_DISCARD, 0, 2)
    offered = discarded.cycle - 4  # by both ports
    bench = run(offered + active - 2)
    assert bench.states(0, 3, since=ready)[-1] == (offered + active, ACTIVE)
    gone = bench.of(Kind.TX_DISCARD, 0, 3) if active > 2 else bench.of(Kind.TX_DATA, 0, 3)
    granted = offered + 4
    assert [record.c if active <= 2 else record.cycle for record in gone] == [granted + 4]
    assert bench.values() == [len({*range(offered + active, granted + 1)} - {offered + 1})]


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("pitch", [1, 4])
@pytest.mark.parametrize("posted", [300, 356, 375, 377])
def test_an_output_waits_again_two_cycles_after_the_last_read_of_an_early_end(star, ready, cut, pitch, posted):
    """Ticks of one cycle. EBP takes the place of row n - cut of a packet; another has no credits."""
    bench = star(3, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.stall(ready - 20, 2, 1)
    if pitch != 1:
        bench.write_port(0, 2, PortRegister.WIDTH, 1, ready - 19)
        bench.write_port(2, 1, PortRegister.WIDTH, 1, ready - 18)
    bench.post(ready, 3, 2, payload=252)  # 5 of the 7 blocks of the stalled host
    bench.write_port(0, 2, PortRegister.TICK, 0, ready + 380)
    bench.write_port(0, 2, Counter.XMIT_WAIT, 0, ready + 381)
    row = len(bench.words(1, 2, payload=64)) - cut
    injection = Injection(Trigger.DATA, first=row, last=row, keep=0xF_FFFF_FF00, flip=1 << 32 | 0xFE)
    bench.inject(ready + 382, 2, 1, injection)
    bench.post(ready + 400, 3, 2, payload=64)
    bench.post(ready + posted, 1, 2, payload=252)
    bench.read_port(0, 2, Counter.XMIT_WAIT, 1800 - 2)
    bench.run(1900)
    early = bench.of(Kind.TX_DATA, 0, 2)[1]
    assert TxData.end_row.read(early) == row
    granted = early.c - 4
    # A head is visible five cycles after its row 0 is on its host's wires.
    shown, waits = (bench.of(Kind.TX_DATA, node)[-1].c + 5 for node in (3, 1))
    heads = {*range(shown, granted + 1), *range(max(waits, ready + 383), 1800)}
    busy = range(granted + 1, granted + 1 + pitch * row + 2)
    assert bench.values() == [len(heads.difference(busy))]
