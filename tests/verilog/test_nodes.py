# amaranth: UnusedElaboratable=no
"""The nodes of a fabric are elaborated and converted once for each kind, whichever fabric they are in."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.adapter.adapter import Adapter
from rtl.fabric.fabric import Fabric
from toolchain.build_cache import build_root
from verilog.boundaries import convert_alone
from verilog.emit import merged_rtlil
from verilog.nodes import KnownNodes
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters

from .components import Pair

HOST = AdapterParameters(mtu=256, receive_blocks=8, send_blocks=8)
FABRIC = FabricParameters({"a": HOST, "b": HOST}, (LinkParameters("a", 1, "b", 1),))


@pytest.fixture(autouse=True)
def own_build_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path / "builds"))


@pytest.fixture
def elaborated(monkeypatch: pytest.MonkeyPatch) -> list[Adapter]:
    """The adapters that were elaborated."""
    adapters: list[Adapter] = []
    elaborate = Adapter.elaborate

    def recorded(adapter, platform):
        adapters.append(adapter)
        return elaborate(adapter, platform)

    monkeypatch.setattr(Adapter, "elaborate", recorded)
    return adapters


@pytest.mark.slow
def test_each_kind_of_a_fabrics_nodes_is_elaborated_once(elaborated: list[Adapter]) -> None:
    known = merged_rtlil(Fabric(FABRIC), "fabric", nodes=KnownNodes("fabric", {}))
    assert len(elaborated) == 1
    assert merged_rtlil(Fabric(FABRIC), "fabric", nodes=KnownNodes("fabric", {})) == known
    assert len(elaborated) == 1


def modules(text: str) -> list[str]:
    return re.findall(r"^module \\(\S+)", text, re.M)


class Wide(wiring.Component):
    """More outputs than an instance can have."""

    q: Out(1 << 16)

    def elaborate(self, platform):
        pytest.fail("is elaborated for nothing")


class Clocked(wiring.Component):
    """Ends in a register."""

    d: In(8)
    q: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.q.eq(self.d)
        return m


def test_a_node_that_cannot_be_an_instance_stays_in_its_fabric() -> None:
    node = Wide()
    nodes = KnownNodes("fabric", {})
    assert nodes.node("n", node, "wide", Const(0)) is node
    assert nodes.texts == []


def test_nodes_are_known_by_their_parameters_and_the_code() -> None:
    for code, parameters in ((1, "a"), (1, "b"), (2, "a"), (1, "a")):
        KnownNodes("fabric", {"code": code}).node("n", Clocked(), parameters, Const(0))
    assert len(list((build_root() / "node").glob("[!.]*"))) == 3


def test_a_component_alone_has_the_ports_of_its_signature_and_the_clock_it_uses() -> None:
    text, ports = convert_alone(Clocked(), "node") or ("", ())
    assert set(ports) == {"d", "q", "clk", "rst"}
    assert modules(text) == ["node"]
    assert convert_alone(Wide(), "node") is None


def test_modules_below_a_component_alone_are_named_by_their_path() -> None:
    text, _ports = convert_alone(Pair(), "node") or ("", ())
    assert modules(text) == ["node", "node.first"]
