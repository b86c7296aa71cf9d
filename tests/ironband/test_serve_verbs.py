"""`ironband serve`: unmodified RDMA programs, MPI among them, across a simulated fabric."""

from __future__ import annotations

import re

import pytest

from tests.doors.real_programs import free_port, needs, needs_ucx_perftest
from tests.ironband.served import TELL
from tests.ironband.verbs_programs import (
    ACROSS,
    MPIRUN,
    WRONG_Q_KEYS,
    between,
    build_mpi,
    counted,
    needs_pyverbs,
    rdma_core_tests,
    serve_script,
)

PYTHON = "/usr/bin/python3"
"""The system's, for which pyverbs is."""

MODULES = (
    "test_addr test_atomic test_cq test_cq_events test_cqex test_device test_fork test_mr test_odp test_pd test_qp "
    "test_qpex test_relaxed_ordering"
)
PROVED = 92
"""So many of them pass where nothing is between adapters."""


@needs("ibv_devinfo")
def test_a_port_is_as_the_subnet_manager_has_set_it(tmp_path):
    served = serve_script(tmp_path, "ibv_devinfo; IRONBAND_HOST=H2 ibv_devinfo -v")
    for line in ("port_lid: 1", "port_lid: 3", "sm_lid: 1", "state: PORT_ACTIVE (4)", "active_mtu: 2048 (4)"):
        assert line in re.sub(r"[\t ]+", " ", served.output)


@needs("ibv_rc_pingpong")
@pytest.mark.parametrize("kind", ["rc", "uc", "ud", "srq"])
def test_pingpongs_cross_the_fabric(tmp_path, kind):
    served = serve_script(
        tmp_path, between(free_port(), f"ibv_{kind}_pingpong -e -n 50 -s 1024 {'-c' * (kind != 'ud')}")
    )
    assert served.status == 0, served.output
    assert "invalid data" not in served.output
    assert min(served.bytes("H1"), served.bytes("H2")) > 50 * 1024
    assert re.search(r"queue pairs sent [\d,]+ packets, [\d,]+ bytes; [\d.,]+ ms passed in the fabric", served.said)


@needs("ibv_rc_pingpong")
def test_pingpongs_cross_gates_as_they_cross_the_model(tmp_path):
    command = between(free_port(), "ibv_rc_pingpong -e -n 20 -s 1024 -c")
    served = serve_script(tmp_path, command, "--rtl", "all", "--operations")
    assert served.status == 0, served.output
    assert "invalid data" not in served.output
    sends = [one for one in served.results["operations"] if one["operation"] == "SEND"]
    assert {one["host"]: one["number"] for one in sends} == {"H1": 20, "H2": 20}
    assert re.search(r"H1 +send +20 +20,480", served.said)


@needs("ibv_rc_pingpong")
def test_a_packet_behind_the_rest_of_other_traffic_is_not_given_up(tmp_path):
    lines = ("stall H2", "flow H1 H2 1 1024", "stop H1 H2", "release H2")
    rest = "".join(f"{TELL} {line}\n" for line in lines)
    served = serve_script(tmp_path, rest + between(free_port(), "ibv_rc_pingpong -e -n 20 -s 1024"))
    assert served.status == 0, served.output
    assert "nothing in flight can answer" not in served.said


@needs_pyverbs
@needs("smpquery")
@pytest.mark.parametrize("rtl", ["none", "all"])
def test_the_agent_of_an_adapter_counts_packets_with_a_wrong_q_key(tmp_path, rtl):
    script = f"lid=$({PYTHON} {WRONG_Q_KEYS} 5) && smpquery portinfo $lid"
    served = serve_script(tmp_path, script, "--at", "H1,H2", "--rtl", rtl)
    assert served.status == 0, served.output
    counts = re.findall(r"^([MPQ])keyViolations:\.*(\d+)", served.output, re.MULTILINE)
    assert counts == [("M", "0"), ("P", "0"), ("Q", "5")]


@needs_pyverbs
def test_rdma_cores_tests_pass_across_the_model(tmp_path):
    script = f"{PYTHON} {ACROSS} {rdma_core_tests(tmp_path)} {MODULES} 2>&1"
    served = serve_script(tmp_path, script, "--at", "H1,H2")
    passed, _skipped, bad = counted(served.output)
    assert (bad, served.status) == (0, 0), served.output[-3000:]
    assert passed >= PROVED
    assert min(served.bytes("H1"), served.bytes("H2")) > 1_000_000


@needs_pyverbs
@pytest.mark.parametrize(
    ("modules", "least"),
    [
        ("test_cq_events", 2),
        pytest.param("test_atomic test_cqex test_cq_events", 12, marks=(pytest.mark.slow, pytest.mark.deep)),
    ],
)
def test_rdma_cores_tests_pass_across_gates(tmp_path, modules, least):
    script = f"{PYTHON} {ACROSS} {rdma_core_tests(tmp_path)} {modules} 2>&1"
    served = serve_script(tmp_path, script, "--at", "H1,H2", "--rtl", "all")
    passed, _skipped, bad = counted(served.output)
    assert (bad, served.status) == (0, 0), served.output[-3000:]
    assert passed >= least
    assert min(served.bytes("H1"), served.bytes("H2")) > 10_000


@needs("ib_send_lat")
@pytest.mark.parametrize(
    "command", ["ib_send_lat -e -n 50", "ib_write_bw -n 20 -s 16384", "ib_read_lat -n 20", "ib_atomic_lat -n 20"]
)
def test_perftest_measures_across_the_fabric(tmp_path, command):
    served = serve_script(tmp_path, between(free_port(), command))
    assert served.status == 0, served.output
    assert "#bytes" in served.output
    assert served.bytes("H1") > 0


@needs_ucx_perftest()
def test_ucx_measures_across_the_fabric(tmp_path):
    environment = "export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=rxe_ironband0:1\n"
    served = serve_script(tmp_path, environment + between(free_port(), "ucx_perftest -t tag_lat -n 50 -w 5 -s 256"))
    assert served.status == 0, served.output
    assert min(served.bytes("H1"), served.bytes("H2")) > 50 * 256


# MPI.

mpi = needs("mpirun", "mpicc")


@mpi
@pytest.mark.parametrize(
    ("rtl", "length"), [("none", 65_536), pytest.param("all", 4_096, marks=(pytest.mark.slow, pytest.mark.deep))]
)
def test_an_mpi_program_of_four_ranks_adds_up_over_four_hosts(tmp_path, rtl, length):
    build_mpi(tmp_path)
    counters = "".join(f"{TELL} counters H{host}; " for host in range(1, 5))
    served = serve_script(tmp_path, f"{MPIRUN} ./sum {length} 1\n{counters}", "--rtl", rtl, topology="four.net")
    assert served.status == 0, served.output
    assert served.output.count(": 0 wrong") == 4
    sent = [int(one.replace(",", "")) for one in re.findall(r"xmit_data ([\d,]+)", served.output)]
    # An allreduce sends at least what is to be known elsewhere; a unit is four bytes, the size of an element.
    assert len(sent) == 4
    assert sum(sent) >= 2 * 3 * length


@mpi
def test_an_mpi_program_is_right_in_spite_of_bit_errors_and_lost_packets(tmp_path):
    build_mpi(tmp_path)
    rates = {"H1 bit_flip": 100_000, "H2 lost_packet": 100_000, "'SW1[3]' bit_flip": 100_000}
    errors = "; ".join(f"{TELL} errors {what} {cycles}" for what, cycles in rates.items())
    script = f"{errors}\n{MPIRUN} ./sum 65536 4\nstatus=$?; {TELL} counters 'SW1[1]'; exit $status"
    served = serve_script(tmp_path, script, topology="four.net")
    # Whoever has sent as often as it was told to gives up: that has a name.
    is_right = served.output.count(": 0 wrong") == 4 and served.status == 0
    assert is_right or "transport retry counter exceeded" in served.said, served.output
    assert re.search(r"rcv_errors \d|symbol_error", served.output)


@mpi
def test_an_mpi_program_is_right_over_a_link_that_flaps(tmp_path):
    build_mpi(tmp_path)
    flaps = f"(while {TELL} cut 'SW1[2]' && sleep 0.3 && {TELL} restore 'SW1[2]'; do sleep 0.5; done) > flaps 2>&1 &"
    served = serve_script(
        tmp_path, f"{flaps}\n{MPIRUN} ./sum 65536 4\nstatus=$?; kill %1; exit $status", topology="four.net"
    )
    assert served.output.count(": 0 wrong") == 4 or served.status != 0, served.output


@mpi
def test_a_cut_link_ends_an_mpi_program_with_an_error(tmp_path):
    build_mpi(tmp_path)
    cut = f"(sleep 4; {TELL} cut 'SW1[2]') &"
    served = serve_script(
        tmp_path, f"{cut}\n{MPIRUN} ./sum 65536 1000\n", "--link-down-timeout", "2000", topology="four.net"
    )
    assert served.status not in (0, 124)
    assert " wrong" not in served.output
    assert re.search(r"queue pair 0x[0-9a-f]+: nothing in flight can answer it any more", served.said)


# What programs read is what was on the links.


@needs("ibv_rc_pingpong")
def test_a_payload_byte_that_was_changed_on_its_way_is_what_the_program_reads(tmp_path):
    command = between(free_port(), "ibv_rc_pingpong -e -c -n 3 -s 4096")
    served = serve_script(tmp_path, f"{TELL} alter H2\n{command}\ncat server.out")
    assert served.status == 0, served.output
    (line,) = re.findall(r"invalid data in page \d+", served.output)
    assert line == "invalid data in page 0"


# Bad use.


def test_no_such_host_is_told_where_the_program_looks(tmp_path):
    served = serve_script(tmp_path, "IRONBAND_HOST=H9 ibv_devinfo")
    assert served.status != 0


def test_a_machine_has_each_adapter_once(tmp_path):
    served = serve_script(tmp_path, "true", "--at", "H1,H1")
    assert served.status == 2
    assert "--at H1,H1: expected each host once" in served.said
