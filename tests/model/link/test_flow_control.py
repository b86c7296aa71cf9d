"""Credits and flow control packets (docs/pipeline.md, section 6)."""

import pytest

from wire.crc import lpcrc
from wire.registers import Counter, PortRegister
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, LinkResult, Verdict
from wire.trace_layout import RxData, RxFcp, TxFcp

MTU_256 = {"mtu": 256}


def test_a_packet_without_credits_waits_and_goes_when_they_return(star, ready):
    """Room for two packets of 5 blocks at the receiver; the host stalls, then takes them."""
    bench = star(2, adapter={"receive_blocks": 12, **MTU_256}, mtu=256)
    bench.stall(ready, 2, 0b01)
    for _ in range(4):
        bench.post(ready + 10, 1, 2, payload=252)
    bench.stall(5000, 2, 0)
    bench.run(4999)
    assert len(bench.of(Kind.TX_DATA, 0, 2)) == 2
    bench.run(8000)
    sent = bench.of(Kind.TX_DATA, 0, 2)
    assert len(sent) == len(bench.delivered) == 4
    credits = [record for record in bench.of(Kind.RX_FCP, 0, 2) if record.cycle > 5000]
    # Credits in the cycle of RX_FCP, granted two later, on the wire four after that.
    assert sent[2].c == credits[0].cycle + 2 + 4


def test_a_stalled_flow_never_overruns_the_receiver(star, ready):
    bench = star(2, adapter={"receive_blocks": 7, **MTU_256}, mtu=256, buffer_blocks=7)
    for i in range(30):
        bench.post(ready + 10, 1, 2, payload=4 * (i % 60))
    bench.stall(1500, 2, 1)
    bench.stall(2500, 2, 0)
    bench.run(9000)
    assert len(bench.delivered) == 30
    assert {RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA)} == {0}


def test_initialize_announces_with_op_1_and_armed_with_op_0(star, ready):
    bench = star(2).run(ready)
    ops = [TxFcp.op.read(record) for record in bench.of(Kind.TX_FCP, 0, 1, since=0)]
    # Once in Armed, and once more as the other end's first Op 0 has come.
    assert ops == [1, 0, 0]
    first = bench.of(Kind.TX_FCP, 0, 1, since=0)[0]
    # Initialize visible at 1, flags at 2, granted at 2, row 1 on the wire 5 later.
    assert first.cycle == 7
    assert TxFcp.fccl.read(first) == 512


def test_an_idle_link_repeats_its_credits_every_period(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.FCP_PERIOD, 500, ready)
    bench.run(4000)
    sent = [record.cycle for record in bench.of(Kind.TX_FCP, 0, 1)]
    # Visible at 1002, due at 1502 + i * 500, flags one later, granted at once, row 1 at g + 5.
    assert sent == [ready + 2 + 500 * i + 1 + 5 for i in range(1, 6)]


def test_blocks_beyond_the_credit_window_are_announced_as_others_are_taken(star, ready):
    """Of 3000 blocks 2048 are announced; a packet takes 5, and 2048 beyond it are still free."""
    bench = star(2, mtu=256, adapter={"receive_blocks": 3000, **MTU_256})
    bench.stall(ready, 2, 1)
    bench.post(ready + 10, 1, 2, payload=252)
    bench.run(2000)
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    (announced,) = bench.of(Kind.TX_FCP, 2)
    header = sent.c + 1 + 1
    # ABR visible three later, flags at four, granted then, row 1 on the wire 5 later.
    assert (announced.cycle, TxFcp.fccl.read(announced)) == (header + 3 + 1 + 5, 2048 + 5)


def test_a_lost_flow_control_packet_heals_with_the_next(star, ready):
    bench = star(2, adapter={"receive_blocks": 7, **MTU_256}, mtu=256)
    bench.write_port(2, 1, PortRegister.FCP_PERIOD, 1000, ready)
    bench.post(ready + 10, 1, 2, payload=252)
    bench.post(ready + 10, 1, 2, payload=252)
    bench.inject(ready + 30, 1, 1, Injection(Trigger.LINK, first=1, last=1, flip=1 << 20))
    bench.run(4000)
    results = [RxFcp.result.read(record) for record in bench.of(Kind.RX_FCP, 0, 2)]
    assert LinkResult.LPCRC in results
    assert len(bench.delivered) == 2
    lost, healed = bench.of(Kind.TX_DATA, 0, 2)
    assert healed.c > ready + 1000
    assert lost.c < ready + 100


def test_only_a_change_beyond_the_threshold_goes_before_data(star, ready):
    """Adapter 2 sends back to back, and receives: its announcements wait for the gaps, or do not."""
    gaps = {}
    for threshold in (4095, 0):
        bench = star(2)
        bench.write_port(2, 1, PortRegister.FCP_THRESHOLD, threshold, ready)
        for i in range(10):
            bench.post(ready + 10, 1, 2, payload=252, seed=i)
            bench.post(ready + 10, 2, 1, payload=252, seed=i)
        bench.run(3000)
        starts = [record.c for record in bench.of(Kind.TX_DATA, 2)]
        gaps[threshold] = starts[-1] - starts[0]
    assert gaps[4095] < gaps[0]


def test_the_watchdog_counts_a_silent_link_in_linkerrorrecovery(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.FC_WATCHDOG, 300, ready)  # visible at 1002
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, ready + 299)  # as visible at 1301
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, ready + 300)
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, ready + 600)
    bench.run(2000)
    assert bench.values() == [0, 1, 2]


UPDATE_ERRORS = PortRegister.FLOW_CTL_UPDATE_ERRORS


def of_vls(*counts):
    """FLOW_CTL_UPDATE_ERRORS of the first VLs."""
    return sum(count << 30 - 2 * vl for vl, count in enumerate(counts))


def test_expiries_count_for_the_operational_vls_and_stop_at_3(star, ready):
    """Two of four. LinkErrorRecovery counts them all."""
    bench = star(2, vls=4)
    for node, port in ((0, 1), (1, 1)):
        bench.write_port(node, port, PortRegister.OPERATIONAL_VLS, 2, 200 + node)
    bench.write_port(0, 1, PortRegister.FC_WATCHDOG, 300, ready)  # visible at 1002
    for expiry in range(1, 5):
        bench.read_port(0, 1, UPDATE_ERRORS, ready + 300 * expiry - 1)  # as visible in the cycle before the expiry
        bench.read_port(0, 1, UPDATE_ERRORS, ready + 300 * expiry)
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, ready + 1201)
    bench.run(ready + 1300)
    assert bench.values() == [*(of_vls(count, count) for count in (0, 1, 1, 2, 2, 3, 3, 3)), 8]


def test_a_write_of_update_errors_is_of_the_vls_that_extended_low_names_a_cycle_before(star):
    """And of those that there are."""
    bench = star(2, vls=4, bring_up=False)
    low = PortRegister.EXTENDED_LOW
    bench.write_port(0, 1, low, 0xFFFF_FFFF, 50)
    bench.write_port(0, 1, UPDATE_ERRORS, 0xFFFF_FFFF, 51)
    bench.read_port(0, 1, UPDATE_ERRORS, 52)
    bench.write_port(0, 1, low, 0b010, 60)
    bench.write_port(0, 1, UPDATE_ERRORS, of_vls(1, 2, 0, 1), 61)
    bench.write_port(0, 1, low, 0b1111, 62)  # too late
    bench.read_port(0, 1, UPDATE_ERRORS, 63)
    bench.read_port(0, 2, UPDATE_ERRORS, 66)
    bench.run(100)
    assert bench.values() == [of_vls(3, 3, 3, 3), of_vls(3, 2, 3, 3), 0]


@pytest.mark.parametrize("late", [-1, 0, 1])
def test_an_expiry_in_the_cycle_of_a_write_of_update_errors_is_lost(star, ready, late):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.EXTENDED_LOW, 1, ready - 10)
    bench.write_port(0, 1, PortRegister.FC_WATCHDOG, 300, ready)  # visible at 1002: expires at 1302
    bench.write_port(0, 1, UPDATE_ERRORS, of_vls(1), ready + 300 + late)
    bench.read_port(0, 1, UPDATE_ERRORS, ready + 310)
    bench.run(ready + 400)
    assert bench.values() == [of_vls(2 if late < 0 else 1)]


def test_a_watchdog_that_expires_as_its_length_is_written_counts(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.FC_WATCHDOG, 1, ready)  # visible at 1002
    bench.write_port(0, 1, PortRegister.FC_WATCHDOG, 300, ready + 5)  # visible at 1007
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, ready + 10)
    bench.run(ready + 20)
    assert bench.values() == [5]


def test_regular_flow_control_keeps_the_watchdog_quiet(star, ready):
    bench = star(2)
    bench.write_port(1, 1, PortRegister.FCP_PERIOD, 250, ready - 100)
    bench.write_port(0, 1, PortRegister.FC_WATCHDOG, 300, ready)
    bench.read_port(0, 1, Counter.LINK_ERROR_RECOVERY, 5000)
    bench.run(5100)
    assert bench.values() == [0]


def test_a_link_packet_for_a_vl_that_is_not_operational_is_an_error_once_armed(star, ready):
    bench = star(2, vls=2)
    bench.write_port(0, 1, PortRegister.OPERATIONAL_VLS, 1, ready)
    bench.write_port(1, 1, PortRegister.FCP_PERIOD, 100, ready + 1)
    bench.read_port(0, 1, Counter.RCV_ERRORS, ready + 198)
    bench.run(ready + 210)
    results = [RxFcp.result.read(record) for record in bench.of(Kind.RX_FCP, 0, 1)]
    assert results == [LinkResult.GOOD, LinkResult.VL]
    assert bench.values() == [1]


def test_vls_take_turns(star, ready):
    bench = star(2, vls=4)
    for vl in range(4):
        for i in range(3):
            bench.post(ready, 1, 2, slot=vl, sl=vl, payload=252, seed=i)
    bench.run(4000)
    assert [delivery.slot for delivery in bench.delivered] == [0, 1, 2, 3] * 3


@pytest.fixture
def overrun(star, ready):
    """Forged credits (FCCL 7 becomes 71, with the right LPCRC) let a sender overrun a full buffer, in each period."""
    bench = star(2, mtu=256, adapter={"mtu": 256, "receive_blocks": 7})
    bench.write_port(2, 1, PortRegister.OVERRUN_ERRORS, 2, ready)
    bench.write_port(2, 1, PortRegister.FCP_PERIOD, 1000, ready + 1)  # periods begin at 1003 + 1000 i
    bench.stall(ready + 2, 2, 0b11)
    forged = 64
    lpcrc_change = int.from_bytes(lpcrc(bytes(4)), "big") ^ int.from_bytes(lpcrc(bytes([0, 0, 0, forged])), "big")
    flip = forged << 24 | lpcrc_change << 8
    for i in range(4):
        bench.inject(ready + 900 + 1000 * i, 1, 1, Injection(Trigger.LINK, first=1, last=1, flip=flip))
        bench.post(ready + 100 + 1000 * i, 1, 2, payload=252)
    return bench


def test_overruns_in_consecutive_periods_are_excessive(overrun, ready):
    bench = overrun
    for i in range(4):
        bench.read_port(2, 1, Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, ready + 900 + 1000 * i + 50)
    bench.read_port(2, 1, Counter.RCV_ERRORS, 6000)
    bench.run(6100)
    verdicts = [(record.cycle // 1000, RxData.verdict.read(record)) for record in bench.of(Kind.RX_DATA, 2)]
    assert verdicts == [(1, Verdict.GOOD), (2, Verdict.OVERRUN), (3, Verdict.OVERRUN), (4, Verdict.OVERRUN)]
    # Periods 2 and 3 had overruns: counted at the end of period 3. Then it takes two more.
    assert bench.values() == [0, 0, 0, 1, 3]


@pytest.mark.parametrize(("given", "counted"), [(4001, 0), (4002, 1)])
def test_a_period_is_judged_by_the_limit_visible_in_the_cycle_in_which_the_next_begins(overrun, given, counted):
    """Periods 2 and 3 have overruns, and period 4 begins at 4003."""
    bench = overrun
    bench.write_port(2, 1, PortRegister.OVERRUN_ERRORS, 0, given)
    bench.read_port(2, 1, Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, 4100)
    bench.run(4200)
    assert bench.values() == [counted]
