"""Ironband in Python: `import ironband`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ironband
from cosim.topology.topology_file import parse_topology
from wire.packet import build_ud_send

TWO = ironband.SwitchParameters(ports=2, mtu=256, buffer_blocks=16, lft_size=16)

ENGINES = [
    ("model", TWO),
    pytest.param("verilator", "star", marks=pytest.mark.slow),
    pytest.param("icarus", TWO, marks=(pytest.mark.slow, pytest.mark.deep)),
    pytest.param("amaranth", TWO, marks=(pytest.mark.slow, pytest.mark.deep)),
]
"""Verilator has the larger switch from other tests."""


@pytest.fixture
def run():
    """Two hosts at a switch, in the golden model, up."""
    with ironband.Fabric("star").run() as run:
        run.bring_up(bus=True)
        yield run


@pytest.mark.parametrize(("engine", "topology"), ENGINES)
def test_a_packet_crosses_the_fabric_in_the_same_cycle_on_every_engine(engine, topology, tmp_path):
    waves = tmp_path / "run.vcd" if engine == "amaranth" else None
    cycles = None if waves is None else range(1_300, 1_310)
    with ironband.Fabric(topology).run(engine, compared=True, waves=waves, waves_cycles=cycles) as run:
        run.bring_up(bus=True)
        sent = run.send("H1", to="H2", payload=b"hello")
        arrival = run.receive("H2")
        assert (arrival.host, arrival.source, arrival.vl, arrival.payload) == ("H2", "H1", 0, b"hello")
        assert arrival.packet == sent
        assert arrival.cycle == 1_332
    assert (run.events_compared > 0) is (engine != "model")
    if waves is not None:
        edges = [int(line[1:]) for line in waves.read_text().splitlines() if line.startswith("#")]
        assert (min(edges), len(edges)) == (4_000_000 * cycles.start - 2_000_000, 2 * len(cycles))


def test_the_subnet_manager_brings_a_fabric_up_by_smps_alone():
    with ironband.Fabric("ring_4").run() as run:
        run.bring_up()
        hosts = run.fabric.hosts
        assert len({run.lid(host) for host in hosts}) == len(hosts)
        for source, destination in zip(hosts, reversed(hosts), strict=True):
            run.send(source, to=destination, payload=source.encode())
            assert run.receive(destination).payload == source.encode()


def test_packets_of_one_host_arrive_in_their_order(run):
    payloads = [bytes([number]) * (100 * number) for number in range(20)]
    for payload in payloads:
        run.send("H1", to="H2", payload=payload)
    assert [run.receive("H2").payload for _payload in payloads] == payloads
    assert run.waiting("H2") == 0


def test_time_stands_still_but_where_it_is_said(run):
    before = run.cycle
    run.send("H1", to="H2", payload=b"x")
    assert run.cycle == before
    assert run.waiting("H2") == 0
    run.wait(500)
    assert run.cycle == before + 500
    assert run.waiting("H2") == 1


def test_a_packet_of_ones_own_making_is_sent_as_it_is(run):
    packet = build_ud_send(slid=77, dlid=run.lid("H2"), dest_qp=5, src_qp=6, q_key=7, payload=b"own")
    run.send_packet("H1", packet)
    arrival = run.receive("H2")
    assert (arrival.packet.data, arrival.source) == (packet.data, None)


def test_a_packet_for_nobody_is_dropped_and_counted(run):
    run.send_packet("H1", build_ud_send(slid=1, dlid=99, dest_qp=5, src_qp=6, q_key=7, payload=b"").data)
    with pytest.raises(ironband.NothingCame, match=r"H2: no packet within 2,000 cycles, at cycle \d,\d\d\d"):
        run.receive("H2", 2_000)
    assert run.counters("SW1[1]")["rcv_switch_relay_errors"] == 1


def test_a_monitor_sees_what_happens_where_it_looks_from_then_on(run):
    run.send("H2", to="H1", payload=b"before")
    run.receive("H1")
    both = run.monitor(kinds=[ironband.Kind.TX_DATA, ironband.Kind.DELIVER], ports=["H1", "SW1[2]"])
    everything = run.monitor()
    run.send("H1", to="H2", payload=b"x")
    run.wait(2_000)
    assert [(event.kind.name, event.place) for event in both.seen] == [("TX_DATA", "H1[1]"), ("TX_DATA", "SW1[2]")]
    assert both.seen[0].fields["PktLen"] == 9
    assert str(both.seen[0]).startswith(f"cycle {both.seen[0].cycle}  H1[1]  TX_DATA  ")
    assert {"SEND", "RX_DATA", "TX_FCP", "DELIVER"} <= {event.kind.name for event in everything.seen}


def test_a_damaged_packet_does_not_arrive(run):
    run.inject("H1", "bit_flip", row=5)
    run.send("H1", to="H2", payload=b"damaged")
    run.send("H1", to="H2", payload=b"whole")
    assert run.receive("H2").payload == b"whole"
    assert run.counters("SW1[1]")["rcv_errors"] == 1


def test_packets_wait_while_their_cable_is_away(run):
    run.cut("H2")
    run.send("H1", to="H2", payload=b"later")
    with pytest.raises(ironband.NothingCame):
        run.receive("H2", 10_000)
    run.restore("SW1[2]")
    assert run.receive("H2").payload == b"later"


def test_a_topology_that_was_read_is_a_fabric():
    text = (
        'Switch 4 "S"\n[1] "A"[1]\n[2] "B"[2]\n[3] "B"[1]\nHca 1 "A"\n[1] "S"[1]\nHca 2 "B"\n[1] "S"[3]\n[2] "S"[2]\n'
    )
    topology = parse_topology(text, "mine.net")
    with ironband.Fabric(topology, vls=2, mtu=512).run() as run:
        assert repr(run.fabric) == "<fabric mine.net: switches S; hosts A, B[1], B[2]>"
        run.bring_up(bus=True)
        run.send("B[2]", to="A", payload=bytes(512), sl=1)
        arrival = run.receive("A")
        assert (arrival.source, arrival.vl, len(arrival.payload)) == ("B[2]", 1, 512)


def test_what_passes_a_link_is_captured(tmp_path):
    with ironband.Fabric(TWO).run(capture=tmp_path / "links.pcapng", capture_at=["H1"]) as run:
        run.bring_up(bus=True)
        run.send("H1", to="H2", payload=b"hello, capture")
        run.receive("H2")
    assert b"hello, capture" in (tmp_path / "links.pcapng").read_bytes()


@pytest.mark.slow
def test_a_difference_is_raised_where_time_passes_or_at_the_end(monkeypatch):
    # The model beside RTL is given another stimulus: it sends another packet than RTL.
    from cosim.stimulus.actors import Replay

    def other(self, cycle):
        for post in posts(self, cycle):
            yield post._replace(data=post.data[:-5] + bytes([post.data[-5] ^ 1]) + post.data[-4:])

    posts = Replay.posts_until
    monkeypatch.setattr(Replay, "posts_until", other)
    run = ironband.Fabric("star").run("verilator", compared=True)
    run.bring_up(bus=True)
    run.send("H1", to="H2", payload=b"hello")
    with pytest.raises(ironband.Differs, match=r"first difference: cycle \d+, H1\[1\]"), run:
        run.wait(5_000)


def test_the_switch_is_exported(tmp_path):
    files = ironband.export_switch(TWO, tmp_path / "switch")
    assert "ironband_switch.v" in {file.name for file in files}
    assert all(file.is_file() for file in files)
    with pytest.raises(ironband.UserError, match=r"has ironband_switch\.v"):
        ironband.export_switch(TWO, tmp_path / "switch")


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda: ironband.Fabric("none"), "topology 'none': no such file, and Ironband comes with: fat_tree, "),
        (lambda: ironband.Fabric("jam"), "jam: is a scenario, which `ironband run` takes: expected a topology"),
        (lambda: ironband.Fabric("star").run("spice"), "engine 'spice': expected one of verilator, icarus"),
        (lambda: ironband.Fabric("star").run(rtl=["S"]), "rtl S: no such node; there are SW1, H1, H2"),
        (lambda: ironband.Fabric("star").run(waves="a.fst"), "waves a.fst: the model has no wires to record"),
        (lambda: ironband.Fabric("star").run("icarus", waves="/proc/a.fst"), "directory /proc: cannot be written"),
        (
            lambda: ironband.Fabric("star").run("icarus", waves_cycles=range(9)),
            r"waves_cycles range\(0, 9\): expected waves",
        ),
        (
            lambda: ironband.Fabric("star").run("icarus", waves="a.fst", waves_cycles=range(0)),
            "and cycles without gaps",
        ),
        (lambda: ironband.Fabric("star").run(capture_at=["H1"]), "capture_at H1: expected capture, the file, too"),
        (lambda: ironband.Fabric("star").run().wait(1), r"star: the fabric is not up: expected bring_up\(\) before"),
    ],
)
def test_what_there_is_not_is_refused_in_a_line(use, match):
    with pytest.raises(ironband.UserError, match=match) as raised:
        use()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda run: run.bring_up(), "star: bring_up once in a run: expected another run"),
        (lambda run: run.send("H7", to="H1", payload=b""), "H7: no such node; there are SW1, H1, H2"),
        (lambda run: run.send("H1", to="SW1[1]", payload=b""), r"SW1\[1\]: is no host; there are H1, H2"),
        (lambda run: run.send("H1", to="H2", payload=bytes(2049)), r"2,049 bytes from H1 to H2: allowed 0\.\.2,048"),
        (lambda run: run.send("H1", to="H2", payload=b"", sl=16), r"SL 16: allowed 0\.\.15"),
        (lambda run: run.send_packet("H1", bytes(21)), r"packet of 21 bytes at H1: expected a multiple of 4 in 20\.\."),
        (lambda run: run.send_packet("H1", bytes(24), vl=1), r"VL 1 of H1: allowed 0\.\.0"),
        (lambda run: run.monitor(ports=["SW1[9]"]), r"SW1\[9\]: expected port 1\.\.8"),
        (lambda run: run.counters("SW1"), r"SW1: is a switch, expected SW1\[PORT\]"),
        (lambda run: (run.close(), run.wait(1)), "star: the run is over"),
    ],
)
def test_what_a_run_cannot_do_is_refused_in_a_line(run, use, match):
    with pytest.raises(ironband.UserError, match=match) as raised:
        use(run)
    assert "\n" not in str(raised.value)


def test_all_names_are_there_and_the_command_imports_none_of_them():
    assert all(getattr(ironband, name) is not None for name in ironband.__all__)
    assert set(ironband.__all__) <= set(dir(ironband))
    with pytest.raises(AttributeError, match="'ironband' has no attribute 'fabrics'"):
        ironband.fabrics  # noqa: B018 - asking for it is the test
    lean = "import sys, ironband; print([name for name in sys.modules if name.startswith(('cosim', 'ironband.'))])"
    assert subprocess.run([sys.executable, "-c", lean], capture_output=True, text=True).stdout == "[]\n"
