"""Bring-up: what a Subnet Manager would write, in an order that takes every link to Active."""

from dataclasses import replace
from itertools import pairwise

import pytest

from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Host, Link, Switch
from cosim.stimulus.bus_bring_up import FCP_PERIOD_AT_RESET, bus_bring_up, initial_exchange, read_counters
from cosim.topology.topology import Port, Topology
from wire.codes import PortState
from wire.parameters import MAX_FLIGHT
from wire.registers import (
    Counter,
    Detail,
    NodeRegister,
    PartitionCheck,
    PortRegister,
    lft_address,
    node_address,
    p_key_address,
    port_address,
    sl_to_vl_address,
    vl_xmit_wait_address,
)
from wire.stimulus import Operation

PARTITION = PortRegister.PARTITION


def star(hosts: int, vls: int = 1, host_vls: int | None = None, **link) -> Topology:
    return Scenario(
        cycles=1,
        switches={"S": Switch(ports=max(2, hosts), vls=vls)},
        hosts={f"h{number}": Host(vls=host_vls or vls) for number in range(hosts)},
        links=tuple(Link(ends=(f"S[{number + 1}]", f"h{number}"), **link) for number in range(hosts)),
    ).topology


def writes(topology: Topology, settings=None) -> dict[tuple[int, int], tuple[int, int]]:
    """(node, address) to (cycle, value) of the last write."""
    controls = bus_bring_up(topology, settings).controls
    assert all(control.operation == Operation.BUS_WRITE for control in controls)
    return {(control.target, control.args[0]): (control.cycle, control.args[1]) for control in controls}


def states(topology: Topology, state: PortState) -> list[int]:
    """The cycles in which a state is written, by linked port."""
    cycles = {}
    for control in bus_bring_up(topology).controls:
        for port in topology.linked_ports():
            if (control.target, *control.args[:2]) == (
                topology.index[port.node],
                port_address(port.number, PortRegister.STATE),
                state,
            ):
                cycles[port] = control.cycle
    return [cycles[port] for port in topology.linked_ports()]


def test_one_operation_is_given_in_a_cycle():
    cycles = [control.cycle for control in bus_bring_up(star(8)).controls]
    assert cycles == sorted(set(cycles))


def test_every_host_gets_its_lid_and_every_switch_the_way_to_it():
    written = writes(star(3))
    for number in range(3):
        assert written[1 + number, node_address(NodeRegister.LID)][1] == number + 1
        assert written[0, lft_address(number + 1)][1] == number + 1
    assert written[0, node_address(NodeRegister.LINEAR_FDB_TOP)][1] == 3


def test_the_widths_of_both_ends_are_written_where_they_are_not_4x():
    written = writes(star(2, width="1X"))
    assert {written[node, port_address(1, PortRegister.WIDTH)][1] for node in (0, 1, 2)} == {1}
    assert (0, port_address(1, PortRegister.WIDTH)) not in writes(star(2))


@pytest.mark.parametrize("vls", [1, 8])
def test_nothing_is_written_while_the_first_flow_control_packets_cross(vls):
    """A change of width would cut them short, which is an error at the other end."""
    flight = 100
    first = bus_bring_up(star(2, vls=vls, width="1X", flight_cycles=flight)).controls[0].cycle
    assert first > flight + 2 * vls


def test_an_sl_maps_to_a_vl_that_the_next_link_has():
    topology = star(2, vls=8, host_vls=2)
    written = writes(topology)
    assert written[0, sl_to_vl_address(1, 2, 2)][1] == 0
    assert (0, sl_to_vl_address(1, 2, 1)) not in written
    assert written[0, port_address(1, PortRegister.OPERATIONAL_VLS)][1] == 2


@pytest.mark.parametrize("flight", [1, 100, 4096, MAX_FLIGHT])
def test_both_ends_are_armed_together_and_activated_once_flow_control_has_crossed(flight):
    topology = star(2, width="1X", flight_cycles=flight)
    armed, active = states(topology, PortState.ARMED), states(topology, PortState.ACTIVE)
    assert armed[1] - armed[0] == armed[3] - armed[2] == 1
    crossing = initial_exchange(topology, Port("S", 1))
    assert crossing > flight
    # Op 1 packets of Initialize have arrived before the far end is armed.
    assert min(armed) > crossing
    assert min(active) - max(armed) >= crossing
    assert bus_bring_up(topology).start > max(active)


def test_no_periodic_op_1_packet_is_under_way_when_a_port_is_armed():
    """A long configuration that would end right before the period of Initialize."""
    for hosts in (8, 48, 63):
        topology = star(hosts, vls=8, host_vls=4, flight_cycles=2000)
        armed = states(topology, PortState.ARMED)
        crossing = initial_exchange(topology, Port("S", 1))
        for period in range(1, 1_000_000, FCP_PERIOD_AT_RESET):
            assert not period - 2 <= max(armed) or not min(armed) <= period + crossing


def test_switch_ports_check_by_the_p_keys_of_the_hosts_at_them():
    topology = replace(star(3), p_keys={"h0": (0xFFFF, 0x8001), "h1": ()})
    written = writes(topology)
    both = PartitionCheck.INBOUND | PartitionCheck.OUTBOUND
    assert [written[0, p_key_address(1, entry)][1] for entry in (0, 1)] == [0xFFFF, 0x8001]
    # 0xFFFF is there at reset.
    assert written[0, p_key_address(2, 0)][1] == 0
    assert {port: value for port in (1, 2) for value in [written[0, port_address(port, PARTITION)][1]]} == {
        1: both,
        2: both,
    }
    unchecked = writes(star(3))
    assert unchecked.keys() == {place for place in written if place[1] & 0xFFFF != PARTITION} - {
        (0, p_key_address(*place)) for place in ((1, 0), (1, 1), (2, 0))
    }


def test_no_p_key_waits_for_its_turn():
    """What one switch's ports are given takes effect ten cycles after one another."""
    p_keys = {f"h{number}": tuple(range(0x8001, 0x8021)) for number in range(4)}
    brought_up = bus_bring_up(replace(star(4), p_keys=p_keys))
    keys = {p_key_address(port, entry) for port in range(1, 5) for entry in range(32)}
    given = [control.cycle for control in brought_up.controls if control.args[0] in keys]
    assert len(given) == len(keys)
    assert min(later - earlier for earlier, later in pairwise(given)) == 10
    assert given[-1] + 13 < brought_up.start
    cycles = [control.cycle for control in brought_up.controls]
    assert cycles == sorted(set(cycles))


def test_settings_are_written_after_the_links_are_active():
    topology = star(2)
    written = writes(topology, {Port("S", 2): {PortRegister.TICK: 7}})
    cycle, value = written[0, port_address(2, PortRegister.TICK)]
    assert value == 7
    assert cycle > max(states(topology, PortState.ACTIVE))


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_no_port_has_its_counters_read_in_successive_cycles(hosts):
    """For then they may lose what is counted; with more links than one there is a read in each cycle while all last."""
    topology = star(hosts, vls=2, host_vls=1)
    times: dict[tuple[int, int], list[int]] = {}
    for read in read_counters(topology, 100, details=True):
        times.setdefault((read.target, read.args[0] >> 16), []).append(read.cycle)
    assert len(times) == 2 * hosts
    assert all(later - sooner >= 2 for cycles in times.values() for sooner, later in pairwise(cycles))


def test_every_counter_of_every_linked_port_is_read():
    """And, with details, those by VL: of the VLs that there are, and of VL15."""
    topology = star(2, vls=2)
    assert len(read_counters(topology, 100)) == 4 * len(Counter)
    reads = read_counters(topology, 100, details=True)
    assert [control.cycle for control in reads] == list(range(100, 100 + len(reads)))
    assert sorted((control.target, control.args[0]) for control in reads) == sorted(
        (topology.index[port.node], address)
        for port in topology.linked_ports()
        for address in (
            *(port_address(port.number, counter) for counter in (*Counter, *Detail)),
            port_address(port.number, PortRegister.FLOW_CTL_UPDATE_ERRORS),
            *(vl_xmit_wait_address(port.number, vl) for vl in (0, 1, 15)),
        )
    )
