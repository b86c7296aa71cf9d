"""Injected errors: what each does to the rows of a link, and that there is one operation a cycle."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.injection import RANDOM_KINDS, link_error, one_a_cycle, random_controls, scenario_controls
from wire.flow_control import FlowControlPacket
from wire.packet import build_ud_send
from wire.registers import LFT_PAGE, SL_TO_VL_PAGE, PortRegister, place_of_address
from wire.stimulus import Control, Injection, Operation, Trigger, injection_target
from wire.symbols import Control as Symbol
from wire.symbols import Row, deframe, frame_data_packet, frame_link_packet

_LIMITS = (PortRegister.NEIGHBOR_MTU, PortRegister.OPERATIONAL_VLS)
_TABLES = {LFT_PAGE: 8, **dict.fromkeys(range(SL_TO_VL_PAGE, SL_TO_VL_PAGE + 64), 4)}
"""Bits of their entries, by page."""


def through(rows: list[Row], injection: Injection) -> list[Row]:
    """Rows of one packet after an injection (docs/pipeline.md, 2.1)."""
    out = []
    for number, row in enumerate(rows):
        at_end = number == len(rows) - 1
        hit = at_end if injection.at_end else injection.first <= number <= injection.last
        word = row.k << 32 | row.data
        if hit:
            word = word & injection.keep ^ injection.flip
        out.append(Row(word & 0xFFFF_FFFF, word >> 32))
    return out


@pytest.fixture
def packet() -> list[Row]:
    built = build_ud_send(slid=1, dlid=2, dest_qp=3, src_qp=4, q_key=5, payload=bytes(range(100)))
    return frame_data_packet(built.wire)


def test_a_flipped_bit_is_one_flipped_bit(packet):
    changed = through(packet, link_error("bit_flip", row=5, bit=0))
    assert changed[5].data == packet[5].data ^ 0x8000_0000
    assert [row for number, row in enumerate(changed) if number != 5] == packet[:5] + packet[6:]


def test_ebp_marks_a_packet_bad_and_changes_nothing_else(packet):
    (before,), (after,) = deframe(packet), deframe(through(packet, link_error("ebp")))
    assert (before.good, after.good) == (True, False)
    assert before.body == after.body


def test_a_truncated_packet_has_no_end(packet):
    with pytest.raises(ValueError, match="end inside the packet"):
        list(deframe(through(packet, link_error("truncate", row=4))))


def test_a_lost_packet_is_idle_data(packet):
    assert list(deframe(through(packet, link_error("lost_packet")))) == []


def test_a_lost_flow_control_packet_is_idle_data():
    rows = frame_link_packet(FlowControlPacket(op=0, fctbs=1, vl=0, fccl=2).encode())
    injection = link_error("lost_flow_control")
    assert injection.trigger == Trigger.LINK
    assert list(deframe(through(rows, injection))) == []


def test_a_stray_symbol_is_a_control_symbol_outside_packets():
    injection = link_error("stray_symbol")
    assert injection.trigger == Trigger.IDLE
    (row,) = through([Row(0x5A5A5A5A, 0)], injection)
    assert row == Row(Symbol.COM << 16, 0b0100)


def test_operations_that_collide_move_to_the_next_free_cycle():
    given = [Control(cycle, Operation.LINK_UP, target) for target, cycle in enumerate((5, 5, 5, 6, 20))]
    moved = list(one_a_cycle(iter(given)))
    assert [(control.cycle, control.target) for control in moved] == [(5, 0), (6, 1), (7, 2), (8, 3), (20, 4)]


SCENARIO = """
cycles = 1000
[hosts.A]
vls = 2
[hosts.B]
vls = 2
[[links]]
ends = ["A", "B"]
[[stalls]]
host = "B"
from = 10
to = 30
vls = [0, 15]
[[stalls]]
host = "B"
from = 20
to = 40
vls = [1]
[[errors]]
kind = "link_down"
from = "B"
at = 50
[[errors]]
kind = "ebp"
from = "B"
at = 20
"""


def test_stalls_and_errors_of_a_scenario_become_operations():
    scenario = parse_scenario(SCENARIO, "x.toml")
    controls = list(scenario_controls(scenario, scenario.topology, 100))
    assert [(control.cycle, control.operation, control.target, control.args[0]) for control in controls] == [
        (110, Operation.RECV_STALL, 1, 0b101),
        (120, Operation.RECV_STALL, 1, 0b111),
        (121, Operation.INJECT, injection_target(0, 1), link_error("ebp").args()[0]),
        (130, Operation.RECV_STALL, 1, 0b010),
        (140, Operation.RECV_STALL, 1, 0b000),
        (150, Operation.LINK_DOWN, 0, 0),
    ]


def test_random_errors_are_of_every_kind_and_counted():
    experiment = check_experiment(CheckOptions(cycles=20_000))
    counted: Counter[str] = Counter()
    controls = list(random_controls(experiment.topology, 1, 0, 1_000_000, errors=True, injected=counted))
    assert set(counted) == set(RANDOM_KINDS)
    operations = Counter(control.operation for control in controls)
    others = (
        "link_down",
        "width",
        "reset",
        "port_down",
        "register_slip",
        "counter_write",
        "setting",
        "refused_write",
        "time_limit",
        "partition",
        "multicast",
    )
    assert operations[Operation.INJECT] == sum(counted.values()) - sum(counted[kind] for kind in others)
    assert operations[Operation.LINK_DOWN] == operations[Operation.LINK_UP] >= counted["link_down"]
    assert operations[Operation.RESET] == counted["reset"]
    cycles = [control.cycle for control in controls]
    assert all(later > earlier for earlier, later in pairwise(cycles))


def test_a_register_that_slipped_is_right_again_afterwards():
    topology = replace(check_experiment(CheckOptions(ports=3, vls=4, mtu=1024, cycles=30_000)).topology, groups={})
    values = {(w.target, w.args[0]): w.args[1] for w in bus_bring_up(topology).controls}
    slipped, slips = set(), 0
    # A seed without congestion control, which writes much else.
    for one in random_controls(topology, 3, 0, 1_000_000, errors=True, reset_share=0):
        address, value = (one.target, one.args[0]), one.args[1]
        page, offset = place_of_address(one.args[0])
        is_limit = 0 < page <= 64 and offset in _LIMITS
        if one.operation != Operation.BUS_WRITE or address not in values or not (is_limit or page in _TABLES):
            continue
        if not (1 <= value <= values[address] if is_limit else value < 1 << _TABLES[page]):
            continue  # what nothing takes
        if address in slipped:
            assert value == values[address]
            slipped.remove(address)
        else:
            slipped.add(address)
            slips += 1
    assert not slipped
    assert slips > 20


def test_without_errors_hosts_still_pause_counters_are_read_and_arbitration_changes():
    experiment = check_experiment(CheckOptions(cycles=20_000))
    controls = list(random_controls(experiment.topology, 1, 0, 100_000, errors=False))
    assert {control.operation for control in controls} == {
        Operation.RECV_STALL,
        Operation.BUS_READ,
        Operation.BUS_WRITE,
    }


def test_the_same_seed_gives_the_same_operations():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology

    def drawn(seed: int) -> list[Control]:
        return list(random_controls(topology, seed, 0, 50_000, errors=True))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_in_some_runs_links_are_left_alone_and_all_else_goes_on():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology
    on_links = {Operation.INJECT, Operation.LINK_DOWN, Operation.RESET}
    drawn: list[Counter[str]] = []
    for seed in range(10):
        given: Counter[str] = Counter()
        controls = list(random_controls(topology, seed, 0, 30_000, errors=True, injected=given))
        is_calm = on_links.isdisjoint(control.operation for control in controls)
        assert given["refused_write"]
        assert given["register_slip"]
        if is_calm:
            drawn.append(given)
    assert 1 <= len(drawn) <= 6
    assert all(not given["port_down"] for given in drawn)


def test_some_ports_are_read_many_times_in_a_row():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology
    controls = list(random_controls(topology, 1, 0, 100_000, errors=False))
    reads = [(one.cycle, one.target, one.args[0] >> 16) for one in controls if one.operation == Operation.BUS_READ]
    spans = [
        (last[0] - first[0], {one[1:] for one in reads[at : at + 8]})
        for at, (first, last) in enumerate(zip(reads, reads[7:], strict=False))
    ]
    assert any(cycles < 40 and len(ports) == 1 for cycles, ports in spans)
