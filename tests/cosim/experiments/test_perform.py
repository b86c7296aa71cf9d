"""An experiment before observers: its stimulus is drawn once, whoever takes it, and only what is apart is held."""

import gc
from collections import Counter
from dataclasses import replace

import pytest

from cosim.analysis.observer import Observer
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.perform import observed, perform
from cosim.scenario.scenario import Scenario
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.packet import Packet
from tests.cosim.loads import jam_under_load
from tests.cosim.recorder import Recorder
from wire.trace import Kind


class Counted:
    """An experiment that counts how often its stimulus is made, and how many of its packets are held at once."""

    def __init__(self, scenario: Scenario) -> None:
        inner = scenario_experiment(scenario)
        self.made: Counter[str] = Counter()
        self.drawn = 0

        def packets():
            self.made["packets"] += 1
            for packet in inner.packets():
                self.drawn += 1
                yield packet

        def controls():
            self.made["controls"] += 1
            yield from inner.controls()

        self.experiment: Experiment = replace(inner, packets=packets, controls=controls)


def uniform(cycles: int) -> Counted:
    return Counted(uniform_load(2, cycles=cycles, size=64, rate=0.9))


class Lag(Observer):
    """How many packets have been drawn and are not offered yet, at most."""

    def __init__(self, counted: Counted) -> None:
        self.counted = counted
        self.offered = 0
        self.most = 0

    def offer(self, packet: Packet) -> None:
        self.most = max(self.most, self.counted.drawn - self.offered)
        self.offered += 1


def test_the_stimulus_is_drawn_once_for_the_engine_and_all_observers(tmp_path):
    counted, first, second = uniform(5_000), Recorder(), Recorder()
    assert perform(counted.experiment, "model", tmp_path, [first, second]) is None
    assert counted.made == {"packets": 1, "controls": 1}
    assert first.packets == second.packets
    assert len(first.packets) == counted.drawn > 100
    assert first.finished
    assert len(first.deliveries) == sum(record.kind == Kind.DELIVER for record in first.records)


@pytest.mark.slow
def test_the_stimulus_is_drawn_once_for_rtl_and_model_too(tmp_path):
    counted, seen = Counted(jam_under_load(5_000, size=(0, 256), rate=0.9)), Recorder()
    assert perform(counted.experiment, "verilator", tmp_path, [seen]).difference is None
    assert counted.made == {"packets": 1, "controls": 1}
    assert len(seen.packets) == counted.drawn > 50


def test_packets_that_all_have_taken_are_not_held(tmp_path):
    """What is held of a run is what the engine has taken and the observers have not, however long it is."""

    class Held(Observer):
        most = 0

        def finish(self) -> None:
            gc.collect()
            self.most = sum(isinstance(one, Packet) for one in gc.get_objects())

    lags, held = [], []
    for cycles in (5_000, 20_000):
        counted = uniform(cycles)
        lag, one = Lag(counted), Held()
        perform(counted.experiment, "model", tmp_path, [one, lag])
        assert lag.offered == counted.drawn > 50
        lags.append(lag.most)
        held.append(one.most)
    assert lags[1] <= lags[0] + 4
    assert held[1] <= held[0] + 4


def test_a_run_may_be_left_before_its_end(tmp_path):
    counted, seen = uniform(20_000), Recorder()
    with observed(counted.experiment, "model", tmp_path, [seen]) as records:
        for record in records:
            if record.cycle > 5_000:
                break
    assert seen.records[-1] == record
    assert len(seen.packets) == counted.drawn, "those never sent are offered at the end"
