"""Fixtures: netlists of switches, made once for all tests that look at them."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from filelock import FileLock

from rtl.switch.switch import Switch
from verilog.emit import merged_rtlil
from verilog.export.switch_name import TOP
from wire.parameters import SwitchParameters


@pytest.fixture(scope="session")
def netlist(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[SwitchParameters], str]:
    """Elaborates a switch that is alone, once among all of pytest-xdist's workers; gives its RTLIL."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent

    def of(parameters: SwitchParameters) -> str:
        kept = shared / f"netlist_{hashlib.sha256(repr(parameters).encode()).hexdigest()}.il"
        with FileLock(kept.with_suffix(".lock")):
            if not kept.exists():
                kept.write_text(merged_rtlil(Switch(parameters, alone=True), TOP))
        return kept.read_text()

    return of


@pytest.fixture(scope="session")
def known(netlist: Callable[[SwitchParameters], str]) -> Callable[[Any, str], str]:
    """What an export may take in place of `merged_rtlil`."""

    def of(switch: Any, name: str) -> str:
        assert (type(switch), name) == (Switch, TOP)
        # It is not elaborated, as Amaranth would warn.
        switch._MustUse__silence = True
        return netlist(switch.parameters)

    return of


@pytest.fixture
def known_netlists(known: Callable[[Any, str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports take the netlists that others have made."""
    monkeypatch.setattr("verilog.export.package.merged_rtlil", known)
