"""Records of a fabric that is served as events: as the story of the same run has them, whenever one looks on."""

import numpy as np
import pytest

from cosim.analysis.event_table import EVENT_NAMES
from cosim.analysis.observer import Observer
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.scenario_file import load_scenario
from ironband.page.live_columns import RECORD_TYPE, live_columns
from ironband.page.recording import record, run_head
from ironband.progress import text_console
from wire.trace import RECORD


class Keeping(Observer):
    def __init__(self):
        self.packed = b""

    def observe(self, record):
        self.packed += RECORD.pack(*record)


def seen(path, work_dir):
    """The head of a scenario, what the story tells of it, and its records."""
    scenario = load_scenario(str(path))
    _head, table = record(scenario, "bus", "model", text_console(None))
    experiment, keeping = scenario_experiment(scenario), Keeping()
    perform(experiment, "model", work_dir, [keeping])
    return run_head(scenario, experiment, []), table.columns(), np.frombuffer(keeping.packed, RECORD_TYPE)


def values(columns, name, column, since):
    """Of the events of a kind what the column has, by cycle and port."""
    mine = (columns.name == EVENT_NAMES.index(name)) & (columns.cycle >= since)
    found = getattr(columns, column)
    return {
        (int(columns.cycle[row]), str(columns.ports[columns.port[row]])): int(found[row])
        for row in np.flatnonzero(mine)
    }


TWO_WAYS = """
cycles = 12_000
[hosts.A]
[hosts.B]
[switches.S]
ports = 2
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["B", "S[2]"]
[[flows]]
from = "A"
to = "B"
rate = 0.7
[[flows]]
from = "B"
to = "A"
rate = 0.9
"""


@pytest.mark.parametrize("share", [0, 0.5], ids=["from the beginning", "from the middle on"])
def test_credits_and_packets_are_those_of_the_story(share, tmp_path):
    (tmp_path / "scenario.toml").write_text(TWO_WAYS)
    head, story, records = seen(tmp_path / "scenario.toml", tmp_path)
    records = records[int(share * len(records)) :]
    live = live_columns(head, records)
    # Credits are known when a port has sent a flow control packet and got one.
    known = [live.cycle[(live.port == port) & (live.credits >= 0)].min() for port in np.unique(live.port)]
    for event, column in (("send", "until"), ("send", "credits"), ("credit", "credits")):
        told = values(story, event, column, max(known))
        assert len(told) > 50
        assert values(live, event, column, max(known)) == told
