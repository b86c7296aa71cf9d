"""Many programs at once that ask and die at random: none hangs or is told anything wrong, nothing is left behind."""

import os
import subprocess
import time
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.ironband.command import COMMAND
from tests.ironband.served import TWO_SWITCHES, needs_programs, wait_for

CLIENTS = 20
PLACES = {("H1", "1"): "SW1", ("H1", "2"): "SW2", ("H2", "1"): "SW1", ("H4", "1"): "SW2"}
"""Hosts and ports, and the switch at each."""

QUESTIONS = {
    "smpquery nodedesc -D 0": (".{host}\n", 1),
    "smpquery nodedesc -D 0,{port}": (".{switch}\n", 1),
    "smpquery portinfo -D 0,{port} 0": ("SMLid:", 1),
    "perfquery": ("PortXmitWait:", 1),
    "sminfo": ("SMINFO_MASTER", 1),
    "saquery": ("NodeRecord dump:", 6),
    "ibnetdiscover": ("lmc 0", 2 + 4),
    "iblinkinfo": ("Active/  LinkUp", 12),
}
"""What is asked, by which port, and a text that the answer has so many times: the host's name, or its switch's."""


class Crowd:
    """Programs at the hosts of a served fabric."""

    def __init__(self, environment: dict[str, str], random: Random) -> None:
        self._environment = environment
        self._random = random
        self.right = 0
        self.killed = 0
        self.wrong: list[str] = []

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        clients = [self._start(end) for _ in range(CLIENTS)]
        while clients:
            for client in list(clients):
                process, question, place, dies, started = client
                if process.poll() is None:
                    if time.monotonic() >= dies:
                        process.kill()
                    elif time.monotonic() > started + 300:
                        self.wrong.append(f"{question} at {place} hangs")
                        process.kill()
                        clients.remove(client)
                    continue
                clients.remove(client)
                self._judge(process, question, place)
                if time.monotonic() < end:
                    clients.append(self._start(end))
            time.sleep(0.002)

    def _start(self, end: float) -> tuple[subprocess.Popen[str], str, tuple[str, str], float, float]:
        host, port = place = self._random.choice(list(PLACES))
        question = self._random.choice(list(QUESTIONS))
        now = time.monotonic()
        dies = now + self._random.expovariate(20) if self._random.random() < 0.5 else now + 1000
        process = subprocess.Popen(
            [*question.format(port=port).split(), "-P", port],
            env=self._environment | {"IRONBAND_HOST": host},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return process, question, place, dies, now

    def _judge(self, process: subprocess.Popen[str], question: str, place: tuple[str, str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            said = process.stdout.read()
        if process.returncode == -9:
            self.killed += 1
        elif process.returncode == 0 and _is_right(question, place, said):
            self.right += 1
        else:
            self.wrong.append(f"{question} at {place} ended with {process.returncode}: {said[-600:]}")


@needs_programs
@pytest.mark.parametrize("seconds", [pytest.param(4, marks=pytest.mark.slow), pytest.param(60, marks=pytest.mark.deep)])
def test_programs_that_come_and_go_are_served_rightly(tmp_path, seconds):
    seed = SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    told = (tmp_path / "told").open("w")
    server = subprocess.Popen(
        [*COMMAND, "serve", "two.net", "--dir", "place"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=told,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdin is not None
    told.close()
    try:
        _wait_for_text(tmp_path / "told", "Here, or")
        sourced = subprocess.check_output(["sh", "-c", ". place/env; env -0"], cwd=tmp_path, text=True)
        environment = dict(line.split("=", 1) for line in sourced.split("\0") if line)
        opensm = subprocess.Popen(
            ["opensm", "-d", "2", "-f", str(tmp_path / "opensm.log")],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            _wait_for_text(tmp_path / "opensm.log", "SUBNET UP")
            descriptors = _descriptors(server.pid)
            crowd = Crowd(environment, Random(seed))
            crowd.run(seconds)
            unanswered = (tmp_path / "told").read_text().count("nothing can answer")
            print(f"{crowd.right} answers right, {crowd.killed} killed, {unanswered} MADs given up")
            assert crowd.wrong == []
            assert crowd.right > 0
            assert crowd.killed > 0
            wait_for(lambda: _descriptors(server.pid) == descriptors)
        finally:
            opensm.kill()
            opensm.wait()
        server.stdin.write("quit\n")
        server.stdin.flush()
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"two.net", "opensm.log", "told"}


def _is_right(question: str, place: tuple[str, str], said: str) -> bool:
    text, times = QUESTIONS[question]
    return said.count(text.format(host=place[0], switch=PLACES[place])) == times


def _wait_for_text(file: Path, text: str) -> None:
    wait_for(lambda: file.exists() and text in file.read_text())


def _descriptors(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))
