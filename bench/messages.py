"""How fast messages of reliable connections cross a simulated fabric, by the clock."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.experiments.stepped_run import SteppedTask
from cosim.experiments.verbs_run import VerbsRun, VerbsTask
from cosim.topology.subnet_fabric import SubnetFabric, fabric_of
from cosim.topology.topology_file import find_topology, read_topology
from verbs.adapter import Adapter
from verbs.address import AddressVector
from verbs.completions import CompletionQueue, CompletionStatus
from verbs.memory import BufferMemory
from verbs.queue_pair import QueuePair
from verbs.regions import Access, MemoryRegion
from verbs.states import QpState, QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.parameters import AdapterParameters, SwitchParameters

__all__ = ["DOOR", "MESSAGE_FIGURES", "RTL_MESSAGES", "door", "messages", "star"]

_SMALL: Final = 64
_LARGE: Final = 1 << 16
_DEPTH: Final = 16
"""WRITEs at a time."""

_STEP: Final = 1_000
_PATH_MTU: Final = 2048
RTL_MESSAGES: Final = ("rc_messages_rtl_per_s", "rc_bytes_rtl_per_s")
_BY_ENGINE: Final = {"model": ("rc_messages_per_s", "rc_bytes_per_s"), "verilator": RTL_MESSAGES}
MESSAGE_FIGURES: Final = tuple(name for names in _BY_ENGINE.values() for name in names)
DOOR: Final = "door_messages_per_s"
_PROGRAM: Final = "ibv_rc_pingpong"
_TAKEN: Final = re.compile(r"(\d+) iters in ([\d.]+) seconds")


@dataclass(frozen=True)
class _End:
    """A queue pair in RTS at a host, and its memory."""

    pair: QueuePair
    sends: CompletionQueue
    receives: CompletionQueue
    region: MemoryRegion

    def piece(self, length: int) -> list[ScatterGather]:
        return [ScatterGather(0, length, self.region.key)]

    def send(self, length: int) -> None:
        self.pair.post_send(SendRequest(0, SendOpcode.SEND, self.piece(length)))

    def write(self, length: int, to: _End) -> None:
        self.pair.post_send(SendRequest(0, SendOpcode.RDMA_WRITE, self.piece(length), r_key=to.region.key))

    def receive(self, length: int) -> None:
        self.pair.post_receive(ReceiveRequest(0, self.piece(length)))


def star() -> SubnetFabric:
    """Two hosts at a switch."""
    return fabric_of(read_topology(find_topology("star")), SwitchParameters(), AdapterParameters())


def messages(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """A ping-pong of 64 bytes, and WRITEs of 64 KiB, between two hosts at a switch, in the model and in RTL."""
    found = Measured({})
    for engine, (small, large) in _BY_ENGINE.items():
        if not {small, large} & set(asked):
            continue
        rounds, writes = settings.messages[engine]
        made = star()
        stepped = SteppedTask(made.fabric, work_dir / engine, engine=engine)
        with closing(VerbsRun(VerbsTask(stepped, made.widths, "bus", skips=True))) as run:
            one, two = _connected(*run.adapters.values())
            found.readings[small] = Reading.of([_ping_pong(run, one, two, rounds) for _ in range(2)])
            found.readings[large] = Reading.of([_stream(run, one, two, writes) for _ in range(2)])
            lost = [end for end in (one, two) if end.pair.state is not QpState.RTS]
        if lost:
            found.faults.append(f"{engine}: a queue pair is in {lost[0].pair.state.name}")
    return found


def door(settings: Settings, _asked: Collection[str], _work_dir: Path) -> Measured:
    """The same ping-pong by an unmodified program of rdma-core, if it is there."""
    if shutil.which(_PROGRAM) is None:
        return Measured({})
    rates = []
    for _repetition in range(2):
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        command = f"{_PROGRAM} -e -s {_SMALL} -n {settings.messages['model'][0]} -p {port}"
        script = f"IRONBAND_HOST=H2 {command} & sleep 0.5; {command} localhost; wait"
        start = "import sys; from ironband import main; sys.exit(main())"
        with tempfile.TemporaryDirectory() as directory:
            ended = subprocess.run(
                [sys.executable, "-c", start, "serve", "star", "--", "sh", "-c", script],
                cwd=directory,
                env=os.environ,
                capture_output=True,
                text=True,
                check=False,
            )
        taken = _TAKEN.search(ended.stdout)
        if ended.returncode or taken is None:
            return Measured({}, [f"{_PROGRAM}: status {ended.returncode}: {ended.stderr.strip()[-200:]}"])
        rates.append(2 * int(taken[1]) / float(taken[2]))
    return Measured({DOOR: Reading.of(rates)})


def _connected(one: Adapter, two: Adapter) -> tuple[_End, _End]:
    ends = _end(one), _end(two)
    for end, adapter, peer in ((ends[0], two, ends[1]), (ends[1], one, ends[0])):
        pair = end.pair
        pair.modify(QpState.INIT, p_key_index=0, port=1, access=Access.REMOTE_WRITE)
        pair.modify(
            QpState.RTR,
            path=AddressVector(adapter.ports[0].lid),
            path_mtu=_PATH_MTU,
            dest_qp=peer.pair.number,
            rq_psn=0,
            max_dest_rd_atomic=1,
            min_rnr_timer=1,
        )
        pair.modify(QpState.RTS, sq_psn=0, timeout=14, retry_cnt=7, rnr_retry=7, max_rd_atomic=1)
    return ends


def _end(adapter: Adapter) -> _End:
    pd = adapter.allocate_pd()
    access = Access.LOCAL_WRITE | Access.REMOTE_WRITE
    region = adapter.keys.register(pd, BufferMemory(_LARGE), 0, _LARGE, access)
    sends, receives = adapter.create_cq(2 * _DEPTH), adapter.create_cq(2 * _DEPTH)
    return _End(adapter.create_qp(QpType.RC, pd, sends, receives), sends, receives, region)


def _wait(run: VerbsRun, queue: CompletionQueue) -> None:
    while not len(queue):
        run.step(_STEP)
    for completion in queue.poll(_DEPTH):
        if completion.status is not CompletionStatus.SUCCESS:
            raise RuntimeError(f"a message ends with {completion.status.name}")


def _ping_pong(run: VerbsRun, one: _End, two: _End, rounds: int) -> float:
    """Messages of wall time."""
    started = time.perf_counter()
    for _round in range(rounds):
        for here, there in ((one, two), (two, one)):
            there.receive(_SMALL)
            here.send(_SMALL)
            _wait(run, there.receives)
            here.sends.poll(_DEPTH)
    while len(one.sends) or len(two.sends):
        one.sends.poll(_DEPTH)
        two.sends.poll(_DEPTH)
    return 2 * rounds / (time.perf_counter() - started)


def _stream(run: VerbsRun, one: _End, two: _End, writes: int) -> float:
    """Bytes a second of wall time."""
    started = time.perf_counter()
    ended = posted = 0
    while ended < writes:
        while posted < writes and posted - ended < _DEPTH:
            one.write(_LARGE, two)
            posted += 1
        while not len(one.sends):
            run.step(_STEP)
        ended += len(one.sends.poll(_DEPTH))
    return writes * _LARGE / (time.perf_counter() - started)
