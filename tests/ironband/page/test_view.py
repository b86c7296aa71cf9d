"""`ironband view`: what the page is told of a run, who is answered, and what is refused."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ironband import main
from ironband.page.questions import answers_of
from ironband.page.server import page_server
from ironband.page.subject import kind_of, read_subject
from tests.ironband.command import one_line_error


@pytest.fixture(scope="module")
def jam():
    return read_subject("scenario", Path("jam"), "model", "smp")


@pytest.fixture(scope="module")
def address(jam):
    with page_server(answers_of(lambda: jam), 0) as address:
        yield address


def test_the_time_of_a_packet_is_told_without_gaps(jam):
    way = jam.packet(3)
    assert [span["kind"] for span in way["spans"]] == [
        *("queue", "credits", "flight", "header", "queue", "flight", "rows", "host"),
    ]
    for earlier, later in zip(way["spans"], way["spans"][1:], strict=False):
        assert earlier["to"] == later["from"]
    (wait,) = (span for span in way["spans"] if span["kind"] == "credits")
    assert wait["to"] - wait["from"] == 342, "as docs/run.md has it"
    assert way["spans"][-1]["to"] == way["events"][-1]["cycle"]


def test_few_pixels_show_the_least_and_the_greatest_of_many_cycles(jam):
    run = jam.run()
    (line,) = jam.series(run["begin"], run["last"], 2, [])["credits"]["lines"]
    assert line["y"] == [0, 15, 0, 15]


def test_a_port_is_busy_as_long_as_packets_leave(jam):
    run = jam.run()
    load = jam.load(run["begin"], run["last"])["load"]
    assert load[0] == pytest.approx(5 * 73 / (run["last"] - run["begin"]), abs=1e-4)


def test_only_this_machine_is_answered(address):
    request = urllib.request.Request(f"{address}run.json", headers={"Host": "elsewhere.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)
    with urllib.request.urlopen(f"{address}run.json") as answer:
        assert json.load(answer)["title"] == "The traffic jam"


@pytest.mark.parametrize(
    "question", ["series.json?from=9&to=3&pixels=5", "packet.json?number=77", "events.json?from=x&count=1"]
)
def test_a_question_without_an_answer_is_refused(address, question):
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(address + question)


def test_a_run_that_was_kept_is_told_the_same(jam):
    assert main(["run", "jam", "--sim", "model", "--keep"]) == 0
    kept = read_subject(kind_of("out/jam"), Path("out/jam"), "model", "smp")
    assert kept.run() | {"nodes": None} == jam.run() | {"nodes": None}
    assert kept.packet(3) == jam.packet(3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "no such run or topology"),
        ((".",), "holds no events.npz"),
        (("bad.npz",), "expected a file of `ironband run --keep`"),
        (("jam", "--port", "70000"), "70000 is not in the range"),
    ],
)
def test_what_is_no_run_is_refused_in_a_line(capsys, arguments, said):
    Path("bad.npz").write_text("nothing")
    assert said in one_line_error(capsys, "view", *arguments)
