"""Fixtures: what takes long to make of switches, made once for all tests that look at it."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from rtl.switch.switch import Switch
from verilog.emit import merged_rtlil
from verilog.export.switch_name import TOP
from wire.parameters import SwitchParameters

Once = Callable[[str, SwitchParameters, Callable[[], str]], str]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Once:
    """Gives a text of some kind that is made of a switch, once among all of pytest-xdist's workers."""
    own = tmp_path_factory.getbasetemp()
    shared: Path = own if worker_id == "master" else own.parent

    def text(kind: str, parameters: SwitchParameters, make: Callable[[], str]) -> str:
        kept = shared / f"{kind}_{hashlib.sha256(repr(parameters).encode()).hexdigest()}"
        with FileLock(kept.with_suffix(".lock")):
            if not kept.exists():
                kept.write_text(make())
        return kept.read_text()

    return text


@pytest.fixture(scope="session")
def netlist(once: Once) -> Callable[[SwitchParameters], str]:
    """Elaborates a switch that is alone; gives its RTLIL."""
    return lambda parameters: once("netlist", parameters, lambda: merged_rtlil(Switch(parameters, alone=True), TOP))


@pytest.fixture
def known_netlists(netlist: Callable[[SwitchParameters], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports take the netlists that others have made."""

    def known(switch: Any, name: str) -> str:
        assert (type(switch), name) == (Switch, TOP)
        # It is not elaborated, as Amaranth would warn.
        switch._MustUse__silence = True
        return netlist(switch.parameters)

    monkeypatch.setattr("verilog.export.package.merged_rtlil", known)
