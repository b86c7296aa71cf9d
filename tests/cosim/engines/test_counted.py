"""A counter has counted if it shows more than what was written to it."""

from collections import deque
from collections.abc import Iterable
from itertools import count

from cosim.engines import counted, decisions
from cosim.engines.base import NO_TAPS
from cosim.engines.counted import COUNTERS, PortCounter
from cosim.engines.model import ModelRun
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, write_port
from cosim.stimulus.run_spec import RunSpec, Stimulus
from wire.registers import Counter, CounterHigh, Detail, PacketCounter, PortRegister, port_address
from wire.stimulus import Control, Operation

EXPERIMENT = check_experiment(CheckOptions(ports=2, cycles=12_000, errors=False, sim="model"))
TOPOLOGY = EXPERIMENT.topology


def counting(spec: RunSpec) -> frozenset[PortCounter]:
    counted.watch_anew()
    run = ModelRun(spec, Stimulus(spec), None, NO_TAPS, model=decisions.fabric_class())
    deque(run.records(spec.cycles), maxlen=0)
    return counted.counted(spec.parameters)


def writes(first: int, value: int) -> Iterable[Control]:
    """Of all counters, and of the upper halves of some."""
    cycles = count(first)
    for port in TOPOLOGY.linked_ports():
        for register in (*Counter, *Detail, *PacketCounter, PortRegister.EXTENDED_LOW):
            yield write_port(TOPOLOGY, next(cycles), port, register, value)
        for high in CounterHigh:
            yield write_port(TOPOLOGY, next(cycles), port, high, value)


def reads(first: int) -> Iterable[Control]:
    """Of all counters."""
    cycles = count(first, BUS_READ_CYCLES)
    for port in TOPOLOGY.linked_ports():
        for register in (*Counter, *Detail, *PacketCounter, *CounterHigh):
            address = port_address(port.number, register)
            yield Control(next(cycles), Operation.BUS_READ, TOPOLOGY.index[port.node], (address, 0, 0, 0))


def test_what_is_written_has_not_counted():
    controls = [*writes(10, 3), *reads(1_000), *writes(3_000, 1), *reads(4_000)]
    assert counting(RunSpec(TOPOLOGY.fabric, controls, (), 6_000)) == frozenset()


def test_what_is_read_to_have_counted_has_and_errors_without_errors_have_not():
    found = counting(EXPERIMENT.spec())
    assert found >= {PortCounter(node, name) for node in ("switch", "adapter") for name in ("XMIT_PKTS", "RCV_DATA")}
    assert PortCounter("switch", "XMIT_WAIT") in found
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
