"""A counter has counted if it shows more than what was written to it."""

from collections import deque
from collections.abc import Container, Iterable
from itertools import count
from operator import attrgetter

from cosim.engines import counted, decisions
from cosim.engines.base import NO_TAPS
from cosim.engines.counted import COUNTERS, PortCounter
from cosim.engines.model import ModelRun
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, write, write_port
from cosim.stimulus.injection import one_a_cycle
from cosim.stimulus.run_spec import RunSpec, Stimulus
from cosim.topology.topology import Port
from wire.codes import VL15
from wire.registers import (
    Counter,
    CounterHigh,
    Detail,
    PacketCounter,
    PortRegister,
    port_address,
    vl_xmit_wait_address,
)
from wire.stimulus import Control, Operation

EXPERIMENT = check_experiment(CheckOptions(ports=2, cycles=12_000, errors=False, sim="model"))
TOPOLOGY = EXPERIMENT.topology
VLS = range(2)
BY_VL = {"VL_XMIT_WAIT", "VL15_XMIT_WAIT", "FLOW_CTL_UPDATE_ERRORS"}
EACH_VL = 0x5000_0000
"""What makes a value of two bits one of each VL's in FLOW_CTL_UPDATE_ERRORS."""


def counting(spec: RunSpec) -> frozenset[PortCounter]:
    counted.watch_anew()
    run = ModelRun(spec, Stimulus(spec), None, NO_TAPS, model=decisions.fabric_class())
    deque(run.records(spec.cycles), maxlen=0)
    return counted.counted(spec.parameters)


def writes(first: int, value: int) -> Iterable[Control]:
    """Of all counters, those of the VLs that are EXTENDED_LOW's bits too, and of the upper halves of some."""
    cycles = count(first)
    for port in TOPOLOGY.linked_ports():
        for register in (*Counter, *Detail, *PacketCounter, PortRegister.EXTENDED_LOW):
            yield write_port(TOPOLOGY, next(cycles), port, register, value)
        for vl in (*VLS, VL15):
            yield write(next(cycles), TOPOLOGY.index[port.node], vl_xmit_wait_address(port.number, vl), value)
        yield write_port(TOPOLOGY, next(cycles), port, PortRegister.FLOW_CTL_UPDATE_ERRORS, value * EACH_VL)
        for high in CounterHigh:
            yield write_port(TOPOLOGY, next(cycles), port, high, value)


def reads(first: int) -> Iterable[Control]:
    """Of all counters."""
    cycles = count(first, BUS_READ_CYCLES)
    for port in TOPOLOGY.linked_ports():
        addresses = [
            port_address(port.number, register)
            for register in (*Counter, *Detail, *PacketCounter, *CounterHigh, PortRegister.FLOW_CTL_UPDATE_ERRORS)
        ]
        for address in (*addresses, *(vl_xmit_wait_address(port.number, vl) for vl in (*VLS, VL15))):
            yield Control(next(cycles), Operation.BUS_READ, TOPOLOGY.index[port.node], (address, 0, 0, 0))


def test_what_is_written_has_not_counted():
    controls = [*writes(10, 3), *reads(1_000), *writes(3_000, 1), *reads(4_000)]
    assert counting(RunSpec(TOPOLOGY.fabric, controls, (), 6_000)) == frozenset()


def test_what_is_read_to_have_counted_has_and_errors_without_errors_have_not():
    found = counting(EXPERIMENT.spec())
    assert found >= {PortCounter(node, name) for node in ("switch", "adapter") for name in ("XMIT_PKTS", "RCV_DATA")}
    assert found >= {PortCounter("switch", name) for name in ("XMIT_WAIT", "VL_XMIT_WAIT")}
    assert not {name for _, name in found} & {"SYMBOL_ERROR", "RCV_ERRORS", "LINK_DOWNED"}
    assert found < COUNTERS
    unread = (one for one in EXPERIMENT.controls() if one.operation != Operation.BUS_READ)
    assert counting(EXPERIMENT.spec(controls=unread)) == frozenset()


def test_a_reset_takes_nothing_back_that_was_read():
    early = [one for one in EXPERIMENT.controls() if one.cycle < EXPERIMENT.end]
    resets = [Control(EXPERIMENT.end + node, Operation.RESET, node) for node in range(len(TOPOLOGY.fabric.nodes))]
    found = counting(EXPERIMENT.spec(controls=[*early, *resets]))
    assert found == counting(EXPERIMENT.spec(controls=early))
    assert found


def test_a_counter_at_its_end_counts_no_more():
    def downed(value: int) -> bool:
        ports = TOPOLOGY.linked_ports()
        written = [write_port(TOPOLOGY, 10 + at, port, Counter.LINK_DOWNED, value) for at, port in enumerate(ports)]
        cut = Control(500, Operation.LINK_DOWN, 0)
        spec = RunSpec(TOPOLOGY.fabric, [*written, cut, *reads(1_000)], (), 3_000)
        return any(name == "LINK_DOWNED" for _, name in counting(spec))

    assert downed(254)
    assert not downed(255)
    assert downed(256)  # is no value of its: it stays 0


def test_data_vls_count_together_and_vl15_by_itself():
    def of_switch(register: PortRegister, value: int) -> Control:
        return write_port(TOPOLOGY, EXPERIMENT.start, Port("S", 1), register, value)

    def waited(slots: Container[int], *others: Control) -> set[str]:
        """The counters by VL of switches that count when packets pass on some slots alone."""
        controls = sorted((*EXPERIMENT.controls(), *others), key=attrgetter("cycle"))
        packets = (packet for packet in EXPERIMENT.packets() if packet.slot in slots)
        found = counting(EXPERIMENT.spec(packets, one_a_cycle(controls)))
        return {name for node, name in found if node == "switch" and name in BY_VL}

    assert waited(VLS) == {"VL_XMIT_WAIT"}
    assert waited([len(VLS)], of_switch(PortRegister.TICK, 0)) == {"VL15_XMIT_WAIT"}
    assert waited(VLS, of_switch(PortRegister.FC_WATCHDOG, 100)) == {"VL_XMIT_WAIT", "FLOW_CTL_UPDATE_ERRORS"}
