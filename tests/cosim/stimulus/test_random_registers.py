"""Bus accesses at random: links watched for a while, ports without a link."""

from collections import Counter
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_registers import random_brief_settings, random_register_accesses, random_unplugged_settings
from wire.codes import VL15
from wire.registers import (
    VL_XMIT_WAIT,
    CounterHigh,
    Detail,
    PacketCounter,
    PortRegister,
    place_of_address,
    port_address,
)
from wire.registers import Counter as Counters
from wire.stimulus import Control, Operation


def test_some_links_are_watched_for_about_as_long_as_their_other_end_takes_between_flow_control_packets():
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    controls = list(random_brief_settings(topology, Random(1), 0, 200_000, Counter()))
    cycles = [control.cycle for control in controls]
    assert cycles == sorted(cycles)

    def register(control: Control) -> int:
        port = next(
            one
            for one in topology.linked_ports()
            if topology.index[one.node] == control.target and control.args[0] >> 16 == one.number
        )
        return control.args[0] - port_address(port.number, 0)

    watches = {c.cycle: c.args[1] for c in controls if register(c) == PortRegister.FC_WATCHDOG}
    periods = {c.cycle: c.args[1] for c in controls if register(c) == PortRegister.FCP_PERIOD}
    behind = [watches[cycle] - period for cycle, period in periods.items()]
    assert sum(0 <= cycles <= 60 for cycles in behind) > 5


def test_ports_without_a_link_get_values_too():
    star = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    assert not list(random_unplugged_settings(star, Random(1), 0, 100_000, Counter()))
    topology = check_experiment(CheckOptions(fabric="random", vls=4, seed=11, cycles=30_000, sim="model")).topology
    written = {
        control.args[0] & 0xFFFF for control in random_unplugged_settings(topology, Random(1), 0, 200_000, Counter())
    }
    assert written >= {PortRegister.STATE, PortRegister.WIDTH, PortRegister.PHYSICAL_STATE}
    assert written >= {PortRegister.LINK_WIDTH_ENABLED, PortRegister.LINK_DOWN_DEFAULT}


def test_widths_and_states_without_a_link_are_written_that_there_are_not():
    topology = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
    written: dict[int, set[int]] = {PortRegister.LINK_WIDTH_ENABLED: set(), PortRegister.LINK_DOWN_DEFAULT: set()}
    for control in random_register_accesses(topology, Random(1), 0, 4_000_000, Counter()):
        page, offset = place_of_address(control.args[0])
        if control.operation == Operation.BUS_WRITE and 0 < page <= 3 and offset in written:
            written[offset].add(control.args[1])
    widths, states = written.values()
    assert not widths & {1, 2, 3, 255}
    assert not states & {1, 2}
    assert widths >= {0, 4, 127, 254, 511}
    assert states >= {0, 3}
    assert max(widths) > 1 << 16 < max(states)


def test_accesses_are_tried_at_every_offset_of_a_port_where_nothing_is_and_a_bit_away_from_what_is():
    topology = check_experiment(CheckOptions(ports=3, vls=2, cycles=20_000, sim="model")).topology
    tried: dict[int, set[int]] = {Operation.BUS_READ: set(), Operation.BUS_WRITE: set()}
    for control in random_register_accesses(topology, Random(1), 0, 40_000_000, Counter()):
        page, offset = place_of_address(control.args[0])
        if 0 < page <= 3:
            tried[control.operation].add(offset)
    of_ports = {*PortRegister, *Counters, *Detail, *PacketCounter, *CounterHigh}
    of_ports |= {VL_XMIT_WAIT + vl for vl in (0, 1, VL15)}
    nothing = {*range(0x80)} - of_ports
    assert len(nothing) > 40
    assert set.union(*tried.values()) >= nothing
    for offsets in tried.values():
        assert len(offsets & nothing) > 40
        assert {offset & 0xFF for offset in offsets if offset >= 0x100} >= {PortRegister.STATE, Detail.P_KEY_VIOLATIONS}
        assert all(any(offset & 1 << bit for offset in offsets) for bit in range(8, 16))
