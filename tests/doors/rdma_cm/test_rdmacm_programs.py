"""Programs that others wrote for librdmacm, and rdma-core's own tests of it, unmodified, over our adapters."""

import gzip
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.doors.ideal_wire import IdealWire
from tests.doors.real_programs import needs

SERVER = "127.87.0.1"
TESTS = Path("/usr/share/doc/rdma-core/tests")


@pytest.fixture
def wire(tmp_path):
    with IdealWire(tmp_path) as made:
        yield made


@contextmanager
def beside(wire: IdealWire, *command: str, host: str) -> Iterator[subprocess.Popen[str]]:
    """A program at a host; it is killed if it still runs at the end, whatever the cause."""
    with wire.start(*command, host=host, cwd=wire.directory) as program:
        try:
            yield program
        finally:
            program.kill()


def talk(wire: IdealWire, server: str, client: str, result: str = "") -> tuple[str, str]:
    """What two programs print that both end well, at H1 and H2, or, however they end, print a result.

    Some clients give up when their server does not listen yet, or not again yet: then both get another chance, the
    server with more time.
    """
    for seconds in (0.3, 1, 3, 9):
        with beside(wire, *server.split(), host="H1") as listening:
            time.sleep(seconds)
            with beside(wire, *client.split(), host="H2") as asking:
                printed = asking.communicate(timeout=60)[0]
            if asking.returncode:
                listening.kill()
            heard = listening.communicate(timeout=30)[0]
        is_done = (asking.returncode, listening.returncode) == (0, 0)
        if is_done or (result and re.search(result, heard) and re.search(result, printed)):
            assert not wire.told
            return heard, printed
    raise AssertionError(printed + heard)


@needs("rping", package="rdmacm-utils")
def test_rping(wire):
    _heard, printed = talk(wire, "rping -s -C 5", f"rping -c -v -a {SERVER} -C 5")
    pings = re.findall(r"rdma-ping-(\d): (\S+)", printed)
    letters = bytes(range(65, 123)).decode()
    assert pings == [(str(index), (letters * 2)[index : index + 50]) for index in range(5)]
    assert wire.packets > 30


@needs("ib_write_lat", package="perftest")
@pytest.mark.parametrize("program", ["ib_write_lat -R -n 50", "ib_send_lat -R -n 50 -e", "ib_read_bw -R -n 50"])
def test_perftest_connects_by_rdma_cm(wire, program):
    heard, printed = talk(wire, program, f"{program} {SERVER}")
    for text in (heard, printed):
        assert re.search(r"rdma_cm QPs\s*: ON", text)
        assert re.search(r"\n +\d+ +50 +\d", text)


@needs("fi_pingpong", package="libfabric-bin")
@pytest.mark.parametrize("options", ["-p verbs -e msg", "-p verbs -e dgram", "-p verbs;ofi_rxm -e rdm"])
def test_libfabric_over_verbs(wire, options):
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    program, result = f"fi_pingpong {options} -I 5 -S 1024", r"1k +5 +=5"
    # Version 1.17's rdm crashes now and then at its end, when the peer has gone before it has seen all completions.
    may_crash = result if "rdm" in options else ""
    heard, printed = talk(wire, f"{program} -B {port}", f"{program} -P {port} {SERVER}", may_crash)
    assert re.search(result, heard)
    assert re.search(result, printed)


@needs("ucmatose", "udaddy", "rdma_server", "riostream", "rstream", package="rdmacm-utils")
@pytest.mark.parametrize(
    ("server", "client"),
    [
        ("ucmatose -C 10", f"ucmatose -C 10 -s {SERVER}"),
        ("udaddy -C 10", f"udaddy -C 10 -s {SERVER}"),
        ("rdma_server", f"rdma_client -s {SERVER}"),
        ("riostream -S 100 -I 20 -C 10", f"riostream -S 100 -I 20 -C 10 -s {SERVER}"),
        ("rstream -S 100 -I 20 -C 10", f"rstream -S 100 -I 20 -C 10 -s {SERVER}"),
    ],
    ids=lambda text: text.split()[0],
)
def test_rdma_cores_examples(wire, server, client):
    talk(wire, server, client)


@needs("io_demo", package="ucx-utils")
def test_ucx_connects_by_rdma_cm(wire):
    only = ["env", "UCX_TLS=rc_verbs,ud_verbs", "UCX_NET_DEVICES=rxe_ironband0:1", "io_demo", "-q", "-d", "4096"]
    with beside(wire, *only, host="H1") as listening:
        assert listening.stdout is not None
        assert any("started listener" in line for line in listening.stdout)
        printed = wire.run(*only, "-o", "read,write", "-i", "20", SERVER, host="H2")
    assert "Client exit with status 'OK'" in printed
    assert wire.packets > 80


@needs("rping", package="rdmacm-utils")
def test_nobody_listening_is_a_refused_connection(wire):
    with beside(wire, "rping", "-c", "-a", SERVER, "-C", "1", host="H2") as asking:
        printed = asking.communicate(timeout=60)[0]
    assert asking.returncode
    assert "RDMA_CM_EVENT_REJECTED, error 8" in printed


@needs("rping", package="rdmacm-utils")
def test_an_address_that_nobody_has_cannot_be_resolved(wire):
    with beside(wire, "rping", "-c", "-a", "10.1.2.3", "-C", "1", host="H2") as asking:
        printed = asking.communicate(timeout=60)[0]
    assert asking.returncode
    assert "RDMA_CM_EVENT_ADDR_ERROR, error -113" in printed


@needs("rping", package="rdmacm-utils")
def test_a_server_that_is_killed_disconnects_its_client(wire):
    with beside(wire, "rping", "-s", host="H1") as listening:
        for _ in range(100):
            with beside(wire, "rping", "-c", "-v", "-a", SERVER, host="H2") as asking:
                assert asking.stdout is not None
                if "ping data" in asking.stdout.readline():
                    listening.kill()
                    assert "DISCONNECT EVENT" in asking.communicate(timeout=60)[0]
                    return
            # It does not listen yet.
            time.sleep(0.1)
    raise AssertionError("they never connected")


RUNNER = """
import os, sys
from args_parser import parser
import tests.base as base
parser.parse_args()
# A host's ports have addresses here, but no network device in the kernel.
base.RDMATestCase._get_ip_mac = lambda self, dev, port, index: self.args.append([dev, port, index, "127.87.0.1", ""])
import unittest
unittest.main(module="tests.test_rdmacm")
"""


def test_rdma_cores_own_tests_of_librdmacm(wire, tmp_path):
    python = "/usr/bin/python3"
    probe = subprocess.run([python, "-c", "import pyverbs"], capture_output=True, check=False)
    if probe.returncode or not TESTS.is_dir():
        pytest.skip("NOT TESTED with rdma-core's own tests: apt-get install python3-pyverbs")
    there = tmp_path / "their" / "tests"
    shutil.copytree(TESTS, there)
    for packed in there.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    (there.parent / "runner.py").write_text(RUNNER)
    command = [python, "runner.py", "--dev", "rxe_ironband0", "-v"]
    environment = wire.environment() | {"PYTHONPATH": f"{there.parent}:{there}"}
    done = subprocess.run(
        command, cwd=there.parent, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    results = dict(re.findall(r"^(test_\w+) .*?\.\.\. (?:.*\n)*?(ok|ERROR|FAIL|skipped)", done.stderr, re.MULTILINE))
    assert len(results) == 10, done.stderr
    failed = {name for name, result in results.items() if result != "ok"}
    assert failed == {name for name in results if "multicast" in name}, done.stderr
