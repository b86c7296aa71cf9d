"""The way of the jam's first packet, record by record, from the golden model's trace."""

import tempfile
from pathlib import Path

from cosim.engines.simulation import run
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.scenario_file import load_scenario
from cosim.trace.compare import Names, describe
from wire.trace import Kind

experiment = scenario_experiment(load_scenario("jam"))
names = Names(experiment.topology.fabric)
with tempfile.TemporaryDirectory() as work_dir, run("model", experiment.spec(), Path(work_dir)) as records:
    for record in records:
        if record.cycle >= experiment.start:
            print(describe(record, names))
        if record.kind == Kind.DELIVER:
            break
