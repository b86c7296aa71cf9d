"""RDMA programs at hosts of a fabric that is served: what tests of them stand on."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ironband.served import WAIT_UNTIL, managed

FOUR = """
Switch 8 "SW1"
[1] "H1"[1]
[2] "H2"[1]
[3] "H3"[1]
[4] "H4"[1]

Hca 1 "H1"
[1] "SW1"[1]
Hca 1 "H2"
[1] "SW1"[2]
Hca 1 "H3"
[1] "SW1"[3]
Hca 1 "H4"
[1] "SW1"[4]
"""
"""Four hosts at a switch."""

LISTENS = """listens() {
    awk -v port=":$(printf %04X "$1")$" '$2 ~ port && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp*
}
"""
"""A shell's function: whether somebody listens at a TCP port, by which programs exchange addresses."""

ACROSS = Path(__file__).parent / "pyverbs_across.py"
WRONG_Q_KEYS = Path(__file__).parent / "wrong_q_keys.py"
_SUITE = Path("/usr/share/doc/rdma-core/tests")

MPI = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Adds a vector up over all ranks, again and again, and says how many of its elements were wrong. */
int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, ranks, length = atoi(arguments[1]), rounds = atoi(arguments[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *own = malloc(length * sizeof(int)), *sum = malloc(length * sizeof(int)), scale = ranks * (ranks + 1) / 2;
    long wrong = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < length; i++) own[i] = (i + round) * (rank + 1);
        MPI_Allreduce(own, sum, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < length; i++) wrong += sum[i] != (i + round) * scale;
    }
    printf("rank %d of %d: %ld wrong\\n", rank, ranks, wrong);
    MPI_Finalize();
    return wrong != 0;
}
"""

MPIRUN = """
cat > rank <<'END'
export IRONBAND_HOST=H$((OMPI_COMM_WORLD_RANK + 1))
exec "$@"
END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=rxe_ironband0:1 UCX_WARN_UNUSED_ENV_VARS=n
mpirun -n 4 --oversubscribe --mca pml ucx --mca osc ucx --mca mpi_yield_when_idle 1 sh rank \
"""
"""Ranks at four hosts, which have nothing but queue pairs to each other: the command follows."""


needs_pyverbs = pytest.mark.skipif(not _SUITE.exists(), reason="NOT TESTED with rdma-core's tests: python3-pyverbs")


@dataclass(frozen=True)
class Served:
    """How programs ended, what they and the server said, and what there was in the fabric."""

    status: int
    output: str
    said: str
    results: dict[str, Any]

    def bytes(self, host: str) -> int:
        """Of packets that its queue pairs sent."""
        return self.results["data"].get(host, {}).get("bytes", 0)


def serve_script(cwd: Path, script: str, *options: str, topology: str = "star", timeout: float = 900) -> Served:
    """Run a shell script at H1 of a fabric that Ironband has brought up."""
    (cwd / "script").write_text(f"{WAIT_UNTIL}{LISTENS}{script}\n")
    (cwd / "four.net").write_text(FOUR)
    ended = managed("--json", "results.json", *options, topology, "--", "sh", "script", cwd=cwd, timeout=timeout)
    results = json.loads((cwd / "results.json").read_text()) if (cwd / "results.json").exists() else {}
    return Served(ended.returncode, ended.stdout, ended.stderr, results)


def between(port: int, command: str) -> str:
    """A script: the command as a server at H2 and as its client at H1, both of which are to end well."""
    return f"""
IRONBAND_HOST=H2 {command} -p {port} > server.out 2>&1 &
wait_until "listens {port} || ! kill -0 $!"
listens {port} || {{ cat server.out; exit 1; }}
{command} -p {port} localhost || exit 1
wait $! || {{ cat server.out; exit 1; }}
"""


def rdma_core_tests(folder: Path) -> Path:
    """rdma-core's own tests, as python3-pyverbs installs them, where Python finds them."""
    tests = folder / "tests"
    tests.mkdir()
    for file in _SUITE.iterdir():
        if file.suffix == ".gz":
            (tests / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copy(file, tests)
    return folder


def counted(output: str) -> tuple[int, int, int]:
    """Of tests that unittest has run: how many passed, were skipped, and neither."""
    ran = sum(map(int, re.findall(r"^Ran (\d+) test", output, re.MULTILINE)))
    skipped = sum(map(int, re.findall(r"skipped=(\d+)", output)))
    bad = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", output)))
    return ran - skipped - bad, skipped, bad


def build_mpi(folder: Path) -> Path:
    """The MPI program."""
    source = folder / "sum.c"
    source.write_text(MPI)
    subprocess.run(["mpicc", "-O1", "-o", "sum", source.name], cwd=folder, check=True)
    return folder / "sum"
