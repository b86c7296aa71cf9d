"""Unmodified RDMA programs, as Debian has them, between hosts whose adapters hand each other their packets at once."""

import gzip
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.doors.ideal_wire import IdealWire
from tests.doors.real_programs import free_port, needs, needs_ucx_perftest

SUITE = Path("/usr/share/doc/rdma-core/tests")
DEVICE = "rxe_ironband0"


@pytest.fixture
def wire(tmp_path):
    with IdealWire(tmp_path / "run", 4) as made:
        yield made


def between(wire: IdealWire, command: str, seconds: float = 120) -> tuple[str, str]:
    """What a server at H1 and its client at H2 print, which both end well."""
    port = free_port()
    words = [*command.split(), "-p", f"{port}"]
    with wire.start(*words) as server:
        try:
            _wait_for_listener(server, port)
            client = wire.run(*words, "localhost", host="H2", seconds=seconds)
            printed, _none = server.communicate(timeout=seconds)
        finally:
            server.kill()
    assert server.returncode == 0, printed
    return printed, client


def _wait_for_listener(server: subprocess.Popen[str], port: int) -> None:
    """Programs exchange addresses over TCP."""
    listening = re.compile(rf":{port:04X} [0-9A-F]+:0000 0A ")
    while server.poll() is None:
        if any(listening.search(Path(f"/proc/net/{table}").read_text()) for table in ("tcp", "tcp6")):
            return
        time.sleep(0.02)


@needs("ibv_devinfo")
def test_a_host_has_one_device_with_its_port(wire):
    assert DEVICE in wire.run("ibv_devices")
    shown = wire.run("ibv_devinfo", "-v", host="H3")
    for line in ("port_lid: 3", "state: PORT_ACTIVE (4)", "active_mtu: 2048 (4)", "link_layer: InfiniBand"):
        assert line in re.sub(r"[\t ]+", " ", shown)
    assert re.search(r"GID\[ *0\]:\s+fe80:0000:0000:0000:0000:0000:0010:0007", shown)


def test_a_device_is_a_character_device(wire):
    listed = wire.run("ls", "-l", "/dev/infiniband")
    for name, minor in (("umad0", 0), ("issm0", 64), ("uverbs0", 192)):
        assert re.search(rf"^crw-rw-rw-.* 231, +{minor} .* {name}$", listed, re.MULTILINE)
    script = "import os; one = os.open('/dev/infiniband/uverbs0', os.O_RDWR); print(hex(os.fstat(one).st_rdev))"
    assert wire.run("/usr/bin/python3", "-c", script).strip() == hex(os.makedev(231, 192))


@needs("ibv_rc_pingpong")
@pytest.mark.parametrize("program", ["rc", "rc_events", "uc", "ud", "srq"])
def test_pingpong(wire, program):
    kind, _, events = program.partition("_")
    for printed in between(wire, f"ibv_{kind}_pingpong -n 200 {'-e' if events else ''}"):
        assert "200 iters" in printed


@needs("ib_send_lat")
@pytest.mark.parametrize(
    "command",
    [
        "ib_send_lat -n 50",
        "ib_send_lat -c UD -e -n 50",
        "ib_write_lat -n 50",
        "ib_read_lat -n 50",
        "ib_atomic_lat -n 50",
        "ib_send_bw -e -n 50",
        "ib_write_bw -q 4 -n 50",
        "ib_write_bw -c UC -n 50",
        "ib_read_bw -n 50",
    ],
)
def test_perftest(wire, command):
    assert "50" in between(wire, command)[1]


@pytest.fixture
def suite(tmp_path):
    """rdma-core's own tests, and what runs them."""
    if not SUITE.is_dir():
        pytest.skip("NOT TESTED with rdma-core's tests: apt-get install python3-pyverbs")
    folder = tmp_path / "tests"
    shutil.copytree(SUITE, folder)
    for packed in folder.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


def test_the_tests_of_rdma_core(wire, suite):
    modules = sorted(path.stem for path in suite.glob("test_*.py") if not re.search("mlx5|efa|cuda", path.stem))
    names = [f"tests.{module}" for module in modules]
    printed = wire.run("/usr/bin/python3", "run_tests.py", "--dev", DEVICE, "-v", *names, cwd=suite, seconds=300)
    ran, skipped = (int(re.search(pattern, printed)[1]) for pattern in (r"Ran (\d+) tests", r"skipped=(\d+)"))
    assert ran - skipped >= 92, printed


@needs_ucx_perftest()
@pytest.mark.parametrize("transports", ["rc_verbs,ud_verbs", "ud_verbs"])
def test_ucx(wire, transports, monkeypatch):
    monkeypatch.setenv("UCX_TLS", transports)
    monkeypatch.setenv("UCX_NET_DEVICES", f"{DEVICE}:1")
    before = wire.packets
    assert "Final:" in between(wire, "ucx_perftest -t tag_lat -n 100 -w 10 -s 20000")[1]
    assert wire.packets - before > 100 * 20_000 // 4096


ALLREDUCE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    int rank, size, n = 100000, wrong = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *own = malloc(n * sizeof *own), *sum = malloc(n * sizeof *sum);
    for (int i = 0; i < n; i++) own[i] = i * (rank + 1);
    MPI_Allreduce(own, sum, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) wrong += sum[i] != i * (size * (size + 1) / 2);
    printf("%d wrong of %d\\n", wrong, n);
    MPI_Finalize();
    return wrong != 0;
}
"""

RANK = 'IRONBAND_HOST=H$((OMPI_COMM_WORLD_RANK + 1)) exec "$@"'


@needs("mpicc", "mpirun")
def test_ranks_of_mpi_at_four_hosts_reduce_over_the_wire_alone(wire, tmp_path):
    (tmp_path / "allreduce.c").write_text(ALLREDUCE)
    subprocess.run(["mpicc", "-o", "allreduce", "allreduce.c"], cwd=tmp_path, check=True)
    settings = {
        "UCX_TLS": "rc_verbs,ud_verbs,self",
        "UCX_NET_DEVICES": f"{DEVICE}:1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_osc": "ucx",
    }
    command = ["mpirun", "--oversubscribe", "-np", "4", "sh", "-c", RANK, "rank", "./allreduce"]
    env = "env", *(f"{name}={value}" for name, value in settings.items())
    before = wire.packets
    printed = wire.run(*env, *command, cwd=tmp_path, seconds=120)
    assert printed.count("0 wrong of 100000") == 4
    # A ring of four moves three quarters of the numbers twice at each rank.
    assert wire.packets - before >= 4 * 2 * 3 * 100_000 // 2048


@needs("ib_write_bw", "ibv_rc_pingpong")
@pytest.mark.parametrize("victim", [0, 1])
def test_a_program_that_is_killed_while_its_memory_is_reached_hurts_nobody(wire, victim):
    port = free_port()
    endless = ["ib_write_bw", "-D", "100", "-p", f"{port}"]
    with wire.start(*endless, host="H3") as server:
        _wait_for_listener(server, port)
        with wire.start(*endless, "localhost", host="H4") as client:
            try:
                while wire.packets < 1000:
                    assert (server.poll(), client.poll()) == (None, None)
                    time.sleep(0.05)
                (server, client)[victim].kill()
                for printed in between(wire, "ibv_rc_pingpong -n 100"):
                    assert "100 iters" in printed
            finally:
                server.kill()
                client.kill()
    deadline = time.monotonic() + 60
    while any(host.listeners for host in wire.adapters.values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not any(host.owners for host in wire.adapters.values()), "nothing is left of them"
