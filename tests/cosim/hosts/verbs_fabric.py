"""Transports at the hosts of a scenario's fabric, brought up over the bus: what tests of them stand on."""

from __future__ import annotations

from pathlib import Path

from cosim.engines import simulation
from cosim.hosts.verbs_carrier import VerbsCarrier
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.run_spec import RunSpec
from tests.files import TOPOLOGIES
from tests.verbs.ends import bring_up, make_end
from verbs.address import AddressVector
from verbs.hosts import VerbsPort
from verbs.states import QpType
from wire.stimulus import Post
from wire.trace import Record

STAR = """
cycles = 1_000
topology = "star.net"
[[flows]]
from = "H1"
to = "H2"
count = 1
"""


class VerbsFabric:
    """Two hosts at a switch, with one queue pair each."""

    def __init__(self, *hosts: str, kind: QpType = QpType.RC, mtu: int = 2048, **changes) -> None:
        self.topology = parse_scenario(STAR, "star", folder=TOPOLOGIES).topology
        self.brought_up = bus_bring_up(self.topology)
        self.carrier = VerbsCarrier(consume=self._consume)
        self.ends = [make_end(self.topology.lids[host], kind) for host in hosts]
        for host, end in zip(hosts, self.ends, strict=True):
            node = self.topology.index[host]
            vls = self.topology.fabric.nodes[host].vls
            port = VerbsPort(node, end.adapter, 1, vls, self.topology.sl_to_vl)
            self.carrier.hosts.add(port)
        for end, peer in (self.ends, self.ends[::-1]):
            bring_up(end, AddressVector(peer.adapter.ports[0].lid), peer.qp.number, path_mtu=mtu, **changes)
        self.finished = 0
        self.posts: list[Post] = []
        self.until = lambda: False
        self._begin = lambda: None

    def _consume(self, finished: int) -> bool:
        self.finished = finished
        if finished >= self.brought_up.start:
            begin, self._begin = self._begin, lambda: None
            begin()
        return not self.until()

    def run(self, begin, until, work_dir: Path, engine: str = "model", cycles: int = 1_000_000) -> list[Record]:
        """Runs from reset; BEGIN is called when traffic may start, and UNTIL ends the run when it is true."""
        self._begin, self.until = begin, until
        posted = self.carrier.posted.queue()
        spec = RunSpec(self.topology.fabric, self.brought_up.controls, (), cycles, self.carrier)
        with simulation.run(engine, spec, work_dir) as records:
            seen = list(records)
        self.posts = list(posted)
        return seen
