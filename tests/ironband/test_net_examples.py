"""The fabrics that ibsim brings as examples, served to OpenSM, are listed as ibsim itself lists them."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cosim.topology.subnet_differences import differences
from cosim.topology.topology_file import parse_topology, read_topology
from ironband.serve_directory import program_path
from sm.subnet import End
from tests.ironband.served import needs_programs, scripted

EXAMPLES = Path("/usr/share/doc/ibsim-utils/net-examples")
NAMES = ("net", "net.1", "net.2sw2path", "net.2sw2path4hca", "net.2sw2path4hca2port")
UP = "opensm -o -d 2 -f opensm.log"

SHAPES = {
    "two_ports": """
Switch 8 "Switch1"
[1] "Hca1"[1]
[2] "Hca1"[2]
[3] "Switch2"[3]
[5] "Switch2"[5]

Switch 8 "Switch2"
[1] "Hca2"[1]
[2] "Hca2"[2]
[3] "Switch1"[3]
[5] "Switch1"[5]

Hca 2 "Hca1"
[1] "Switch1"[1]
[2] "Switch1"[2]

Hca 2 "Hca2"
[1] "Switch2"[1]
[2] "Switch2"[2]
""",
    "second_port_alone": """
Switch 8 "Switch1"
[1] "Hca1"[1]
[2] "Hca2"[2]
[4] "Hca1"[3]
[8] "Hca3"[1]

Hca 2 "Hca2"
[2] "Switch1"[2]

Hca 3 "Hca1"
[1] "Switch1"[1]
[3] "Switch1"[4]

Hca 1 "Hca3"
[1] "Switch1"[8]
""",
}
"""Of our own hands, in the shape of those."""

LIKE_OTHERS = ("net.2sw2path", "net.2sw2path4hca")
"""The third of these has all that they have."""

FILES = [
    *(
        pytest.param(
            str(EXAMPLES / name),
            marks=(
                pytest.mark.skipif(
                    not (EXAMPLES / name).exists(),
                    reason=f"NOT TESTED with ibsim's own examples: apt-get install ibsim-utils, with {EXAMPLES}",
                ),
                *([pytest.mark.deep] if name in LIKE_OTHERS else []),
            ),
        )
        for name in NAMES
    ),
    *SHAPES,
]

_PRELOADED = sorted(map(str, Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")))
needs_ibsim = pytest.mark.skipif(
    not _PRELOADED or shutil.which("ibsim", path=program_path()) is None,
    reason="NOT TESTED beside ibsim: apt-get install ibsim-utils",
)


def file_of(name: str, folder: Path) -> Path:
    """An example's file, in a folder of its own."""
    path = folder / "example"
    path.write_text(SHAPES[name] if name in SHAPES else Path(name).read_text())
    return path


@needs_programs
@pytest.mark.parametrize("name", FILES)
def test_an_example_comes_up_and_is_listed_as_it_is(name, tmp_path):
    path = file_of(name, tmp_path)
    listed = scripted(tmp_path, [], path.name, {"opensm": UP, "ibnetdiscover": "ibnetdiscover"})["ibnetdiscover"]
    log = (tmp_path / "opensm.log").read_text()
    assert "SUBNET UP" in log
    assert " ERR " not in log
    (guid, port_guid) = (int(text, 16) for text in re.findall(r"Initiated from node (\w+) port (\w+)", listed)[0])
    described = read_topology(path).subnet
    port = next(number for number, end in described.nodes[guid].end_ports.items() if end.guid == port_guid)
    assert differences(described, parse_topology(listed, "listed").subnet, End(guid, port)) == []


@needs_programs
@needs_ibsim
@pytest.mark.parametrize("name", FILES)
def test_ibnetdiscover_prints_what_it_prints_beside_ibsim(name, tmp_path):
    """But for the time, and the IDs of devices, of which ibsim's are 0."""
    path = file_of(name, tmp_path)
    # To a host of ibsim's belongs its port 1, and OpenSM knows no adapters of three ports.
    host = re.findall(r'^Hca\s+[12]\s+"(\w+)"\n\[1\]', path.read_text(), re.M)[0]
    commands = {"opensm": UP, "ibnetdiscover": "ibnetdiscover"}
    served = scripted(tmp_path, ["--at", host], path.name, commands)["ibnetdiscover"]
    simulated = beside_ibsim(path, host, tmp_path)

    def records(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith(("# Topology file", "devid=", "vendid="))]

    assert records(served) == records(simulated)


def beside_ibsim(path: Path, host: str, folder: Path) -> str:
    """What ibnetdiscover prints in the fabric of ibsim, at a host, when OpenSM has brought it up."""
    environment = os.environ | {
        "IBSIM_SOCKNAME": f"ironband-{os.getpid()}",
        "SIM_HOST": host,
        "OSM_CACHE_DIR": str(folder),
        "OSM_TMP_DIR": str(folder),
        "PATH": program_path(),
    }
    simulator = subprocess.Popen(
        ["ibsim", "-s", str(path)],
        env=environment,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        preloaded = environment | {"LD_PRELOAD": _PRELOADED[0]}
        for _attempt in range(50):
            said = subprocess.run(
                ["timeout", "60", "sh", "-c", "opensm -o -d 2 -f beside.log > beside.out 2>&1 && ibnetdiscover"],
                env=preloaded,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=90,
            )
            if said.returncode == 0:
                break
            time.sleep(0.1)
        assert "SUBNET UP" in (folder / "beside.log").read_text(), said.stderr
        return said.stdout
    finally:
        simulator.kill()
        simulator.communicate()
