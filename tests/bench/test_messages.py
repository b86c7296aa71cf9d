"""Messages a second: what is measured has arrived, and only what is asked for is measured."""

from bench.messages import MESSAGE_FIGURES, messages
from bench.settings import Settings


def test_messages_are_measured_in_the_model(tmp_path):
    asked = ["rc_messages_per_s", "rc_bytes_per_s"]
    found = messages(Settings(quick=True), asked, tmp_path)
    assert sorted(found.readings) == sorted(asked)
    assert all(reading.least > 0 for reading in found.readings.values())
    assert found.faults == []


def test_nothing_is_measured_that_nobody_asks_for(tmp_path):
    assert messages(Settings(quick=True), ["latency_cycles"], tmp_path).readings == {}
    assert len(set(MESSAGE_FIGURES)) == 4
