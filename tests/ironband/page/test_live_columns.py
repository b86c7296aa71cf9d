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


def seen(name, work_dir):
    """The head of a scenario, what the story tells of it, and its records."""
    scenario = load_scenario(name)
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


@pytest.mark.parametrize(("name", "share"), [("jam", 0), ("saturation", 0.5)])
def test_credits_and_packets_are_those_of_the_story(name, share, tmp_path):
    head, story, records = seen(name, tmp_path)
    live = live_columns(head, records[int(share * len(records)) :])
    since = int(live.cycle[np.flatnonzero(live.credits >= 0)[0]])
    for event, column in (("send", "until"), ("credit", "credits")):
        told = values(story, event, column, since)
        assert told
        assert values(live, event, column, since) == told
