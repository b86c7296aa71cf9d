"""`ironband measure`: what is configured is found again, from captures alone, and nothing else is believed."""

import errno
import json
import os
import re
import secrets
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from cosim.experiments.captured_run import CapturedRun, captured_run
from ironband import main
from tests.capture.foreign import INFINIBAND, pcap
from tests.files import ROOT
from tests.ironband.command import one_line_error

ALL = ("credits", "intervals", "buffer", "tick", "congestion")


@pytest.fixture
def random() -> Random:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return Random(seed)


def measured(tmp_path: Path, what: str, *options: str) -> dict:
    results = tmp_path / f"{what}.json"
    assert main(["measure", what, "--sim", "model", "--out", str(tmp_path), "--json", str(results), *options]) == 0
    assert (tmp_path / f"{what}.png").stat().st_size > 10_000
    return json.loads(results.read_text())


def test_every_block_is_counted_and_a_buffer_drains_in_single_blocks(tmp_path):
    sent, room = measured(tmp_path, "credits", "--packets", "600")["lanes"]
    assert (sent["direction"], sent["blocks"], sent["fctbs"], sent["miscounted"]) == (
        "A[1] -> S[1]",
        1458,
        [0, 1458],
        0,
    )
    assert sent["idle_period_ns"] == 48_488 * 4
    steps = {step["blocks"]: step for step in room["fccl_steps"]}
    assert (steps[1]["count"], steps[1]["median_ns"], steps[33]["count"]) == (600, 256, 26)


def test_flows_have_the_intervals_of_their_links_and_hosts_smear_them(tmp_path):
    flows = measured(tmp_path, "intervals", "--packets", "3000")["flows"]
    usual = {(flow["scenario"][0], flow["place"], flow["slid"]): flow for flow in flows}
    assert usual["1", "H1[1] -> S[1]", 1]["usual_ns"] == usual["1", "S[3] -> R[1]", 1]["usual_ns"] == 2_076
    assert usual["2", "S[3] -> R[1]", 1]["usual_ns"] == usual["2", "S[3] -> R[1]", 2]["usual_ns"] == 4_152
    assert len(usual["1", "S[3] -> R[1]", 1]["intervals_us"]) == 1
    smeared = usual["1", "R[1] host", 1]
    assert len(smeared["intervals_us"]) > 5
    assert 0 < smeared["total_variation"] < 0.2


def test_the_intervals_hold_with_real_connections_and_their_acks(tmp_path):
    flows = measured(tmp_path, "intervals", "--packets", "3000", "--transport", "rc")["flows"]
    usual = {(flow["scenario"][0], flow["place"], flow["slid"], flow["dlid"]): flow for flow in flows}
    one, first, second = (
        usual[senders, "S[3] -> R[1]", *ends] for senders, *ends in (("1", 1, 3), ("2", 1, 3), ("2", 2, 3))
    )
    assert (one["packets"], first["packets"], second["packets"]) == (3_000, 3_000, 3_000)
    assert one["usual_ns"] == 2_076
    assert first["usual_ns"] == second["usual_ns"] == 4_152
    assert one["mean_ns"] == pytest.approx(2_076, rel=0.001)
    # One ACK for sixteen packets, the other way.
    assert usual["1", "R[1] host", 3, 1]["packets"] == pytest.approx(3_000 / 16, abs=2)


def test_a_buffer_that_the_measurement_is_not_told_is_found(tmp_path, random):
    for vls in (1, random.choice((2, 4))):
        blocks = random.randint(36, 1_000)
        room = blocks // 33
        options = ["--buffer-blocks", str(blocks), "--vls", str(vls), "--packets", str(4 * room + 120)]
        ports = measured(tmp_path, "buffer", *options)["ports"]
        assert [round(port["packets_held"]) for port in ports] == [room] * 2 * vls, (blocks, vls)


def test_a_buffer_of_more_than_can_be_announced_is_found(tmp_path):
    ports = measured(tmp_path, "buffer", "--buffer-blocks", "4095", "--packets", "700")["ports"]
    assert [round(port["packets_held"]) for port in ports] == [4095 // 33] * 2


def test_a_tick_that_the_measurement_is_not_told_is_found(tmp_path, random):
    for tick in (1, random.randint(2, 256)):
        found = measured(tmp_path, "tick", "--tick", str(tick), "--packets", "1500")["tick_cycles"]
        assert tick in found
        assert found[-1] - found[0] <= 3, (tick, found)


def test_two_flows_to_one_host_take_rate_from_a_third_that_goes_elsewhere(tmp_path):
    flows = measured(tmp_path, "congestion", "--packets", "800")["flows"]
    rates = {(flow["slid"], flow["dlid"]): flow["gbps"] for flow in flows}
    assert rates[1, 4] == pytest.approx(rates[1, 5], rel=0.05)
    assert rates[2, 5] == pytest.approx(8 / 3, rel=0.03)
    assert rates[1, 4] < 3.8
    assert not any(flow["fecn"] or flow["becn"] for flow in flows)


def test_congestion_control_gives_the_third_its_rate_back(tmp_path):
    flows = measured(tmp_path, "congestion", "--packets", "800", "--control")["flows"]
    found = {(flow["slid"], flow["dlid"]): flow for flow in flows}
    assert found[1, 4]["gbps"] > 3.9
    assert found[1, 4]["fecn"] == 0
    assert all(found[source, 5]["fecn"] for source in (1, 2, 3))
    assert (found[5, 1]["becn"] > 0, found[4, 1]["becn"]) == (True, 0)


def test_a_kept_capture_tells_the_same_again(tmp_path, capsys):
    kept = tmp_path / "kept.pcapng"
    for what, options, again in (
        ("credits", ["--packets", "300"], []),
        ("buffer", ["--packets", "120"], []),
        ("tick", ["--packets", "500"], ["--port", "A[1]"]),
        ("congestion", ["--packets", "200"], []),
    ):
        first = measured(tmp_path, what, *options, "--capture", str(kept))
        more = ["--xmit-wait", str(first["xmit_wait"])] if what == "tick" else []
        assert measured(tmp_path, what, "--from", str(kept), *again, *more) == first
    flows = measured(tmp_path, "intervals", "--packets", "300", "--capture", str(kept))["flows"]
    for senders in ("1", "2"):
        found = measured(tmp_path, "intervals", "--from", str(tmp_path / f"kept-{senders}.pcapng"))["flows"]
        known = [flow for flow in flows if flow["scenario"].startswith(senders)]
        key = "place", "slid", "dlid", "packets", "mean_ns", "usual_ns", "intervals_us"
        assert [[flow[name] for name in key] for flow in found] == [[flow[name] for name in key] for flow in known]
    assert "published" not in found[0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["credits", "--packets", "3"], "Invalid value for '--packets': 3 is not in the range 16<=x<=1048576."),
        (
            ["credits", "--capture", "a.pcap"],
            "--capture a.pcap: expected .pcapng, which has room for all that is captured",
        ),
        (["credits", "--capture", "a.pcapng", "--from", "b"], "--capture a.pcapng: nothing is captured with --from b"),
        (["credits", "--from", "b"], "b: cannot be read: No such file or directory"),
        (
            ["tick", "--from", "b"],
            "--xmit-wait: expected with --from, where no simulation has the counter, and only then",
        ),
        (
            ["tick", "--xmit-wait", "1"],
            "--xmit-wait: expected with --from, where no simulation has the counter, and only then",
        ),
        (["tick", "--port", "A"], "--port A: expected only with --from"),
        (["tick", "--tick", "257"], "Invalid value for '--tick': 257 is not in the range 1<=x<=256."),
        (
            ["buffer", "--buffer-blocks", "35"],
            "Invalid value for '--buffer-blocks': 35 is not in the range 36<=x<=4095.",
        ),
        (["rubbish"], "No such command 'rubbish'."),
    ],
)
def test_bad_use_is_one_line(tmp_path, monkeypatch, capsys, arguments, text):
    monkeypatch.chdir(tmp_path)
    assert one_line_error(capsys, "measure", *arguments) == text
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("what", "options", "text"),
    [
        ("credits", [], "no flow control packets"),
        ("intervals", [], "no two data packets of a flow"),
        ("buffer", [], "no two senders that waited for each other on a VL"),
        ("tick", ["--xmit-wait", "9"], "no data packets of a port"),
        ("congestion", [], "no data packets"),
    ],
)
def test_a_capture_without_what_is_looked_for_is_one_line(tmp_path, monkeypatch, capsys, what, options, text):
    monkeypatch.chdir(tmp_path)
    Path("empty.pcap").write_bytes(pcap(INFINIBAND, []))
    assert one_line_error(capsys, "measure", what, "--from", "empty.pcap", *options) == f"empty.pcap: {text}"


def test_a_capture_that_is_cut_off_is_one_line(tmp_path, capsys):
    kept = tmp_path / "kept.pcapng"
    measured(tmp_path, "congestion", "--packets", "16", "--capture", str(kept))
    kept.write_bytes(kept.read_bytes()[:-7])
    text = one_line_error(capsys, "measure", "congestion", "--from", str(kept), "--out", str(tmp_path))
    assert "the file ends" in text


def test_a_capture_that_is_read_again_is_kept_in_no_pipe(tmp_path, capsys):
    pipe = tmp_path / "pipe.pcapng"
    os.mkfifo(pipe)
    text = one_line_error(capsys, "measure", "credits", "--capture", str(pipe), "--out", str(tmp_path))
    assert text == f"--capture {pipe}: a pipe, and what is captured is read: expected a file"


def test_a_simulation_that_has_nothing_to_measure_is_called_by_its_name(tmp_path, capsys):
    text = one_line_error(capsys, "measure", "buffer", "--sim", "model", "--packets", "16", "--out", str(tmp_path))
    assert text == "buffer: no two senders that waited for each other on a VL: expected more --packets than 16"


def test_a_picture_that_finds_the_disk_full_is_one_line(tmp_path, capsys, monkeypatch):
    def savefig(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", savefig)
    text = one_line_error(capsys, "measure", "congestion", "--sim", "model", "--packets", "16", "--out", str(tmp_path))
    assert text == f"{tmp_path / 'congestion.svg'}: cannot be written: No space left on device"
    assert not list(tmp_path.iterdir())


def test_a_difference_from_the_golden_model_is_told_with_the_line_that_repeats_it(tmp_path, monkeypatch, capsys):
    def differs(*arguments: object) -> CapturedRun:
        told = SimpleNamespace(report=lambda names, replay, **_: f"replay: {replay}")
        return captured_run(*arguments)._replace(comparison=SimpleNamespace(difference=told))

    monkeypatch.setattr("ironband.measure.laboratory.captured_run", differs)
    line = ["measure", "congestion", "--sim", "model", "--out", str(tmp_path), "--packets", "16"]
    assert main(line) == 1
    (replay,) = [text for text in capsys.readouterr().out.splitlines() if text.startswith("replay: ")]
    command, *words = replay.removeprefix("replay: ").split()
    assert command == "ironband"
    assert words[:2] == line[:2]
    assert sorted(words) == sorted(line)


@pytest.mark.parametrize("what", ["credits", "buffer", "tick", "congestion"])
def test_the_page_shows_what_the_command_prints(what, tmp_path, monkeypatch, capsys):
    """On every engine the same; here on the fastest."""
    page = (ROOT / "docs" / f"measure-{what}.md").read_text()
    (printed,) = re.findall(rf"^\$ ironband measure {what}\n((?:.+\n)+)```", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert main(["measure", what, "--sim", "model"]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.deep
@pytest.mark.parametrize("what", ALL)
def test_what_is_found_in_rtl_is_what_is_found_in_the_model(tmp_path, what):
    options = ["--packets", "2048"]
    model = measured(tmp_path, what, *options)
    assert measured(tmp_path, what, *options, "--sim", "verilator") == model


@pytest.mark.deep
def test_at_full_length_hosts_have_the_published_tables(tmp_path):
    flows = measured(tmp_path, "intervals")["flows"]
    far = {flow["published"]: flow["total_variation"] for flow in flows if "published" in flow}
    print(far)
    assert len(far) == 4
    assert max(far.values()) <= 0.1
