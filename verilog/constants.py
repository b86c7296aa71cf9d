"""Registers of a netlist that never change: bits that are as wide as others need, or of what this node does not have.

Found by simulation with unknown values, of the netlist as gates: each register begins with its initial value, each that
may then get another, whatever inputs and memories give, is unknown from there on, until there are no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from verilog.flat_netlist import Bit, Cell

__all__ = ["TO_GATES", "constant_registers"]

TO_GATES: Final = "pmuxtree; simplemap; techmap; simplemap; opt_clean"
"""Yosys' commands that make gates of a netlist."""

_REGISTER: Final = "$_DFF_P_"
_GATES: Final = ("$_NOT_", "$_AND_", "$_OR_", "$_XOR_", "$_MUX_")
_UNKNOWN: Final = 2


def constant_registers(netlist: Mapping[str, Any], gates: Mapping[str, Any]) -> dict[Bit, str]:
    """Bits of registers of a NETLIST that never change, each with its value, "0" or "1".

    GATES is the same module, made of gates (`TO_GATES`). Both are as Yosys writes them in JSON.
    """
    known = dict(_never_change(gates))
    return {bit: known[place] for place, bit in _places(netlist) if place in known}


class _Gate(NamedTuple):
    """By its index in `_GATES`; bits that it has not are known."""

    kind: int
    output: Bit
    first: Bit
    second: Bit
    select: Bit


def _places(module: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], Bit]]:
    """Bits, by the names of wires and where they are in these."""
    for name, wire in module["netnames"].items():
        yield from (((name, at), bit) for at, bit in enumerate(wire["bits"]))


def _never_change(gates: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], str]]:
    """Places of registers that never change, with their values."""
    cells: Mapping[str, Cell] = gates["cells"]
    taken = {
        cell["connections"]["Q"][0]: cell["connections"]["D"][0] for cell in cells.values() if cell["type"] == _REGISTER
    }
    known = {bit: value for bit, value in _initial(gates) if bit in taken}
    program = _in_order(cells)
    while True:
        values = _simulated(program, known)
        left = {bit: value for bit, value in known.items() if values.get(taken[bit], _UNKNOWN) == value}
        if len(left) == len(known):
            break
        known = left
    yield from ((place, str(known[bit])) for place, bit in _places(gates) if bit in known)


def _initial(gates: Mapping[str, Any]) -> Iterator[tuple[Bit, int]]:
    """Initial values of bits, as far as they have some."""
    for wire in gates["netnames"].values():
        digits = wire.get("attributes", {}).get("init", "")
        yield from (
            (bit, int(digit)) for bit, digit in zip(wire["bits"], reversed(digits), strict=False) if digit in "01"
        )


def _in_order(cells: Mapping[str, Cell]) -> list[_Gate]:
    """Gates, each behind those that it depends on."""
    driver = {cell["connections"]["Y"][0]: name for name, cell in cells.items() if cell["type"] in _GATES}
    ordered: dict[str, None] = {}
    for name in driver.values():
        waiting = [name]
        while waiting:
            inputs = {driver.get(bits[0]) for port, bits in cells[waiting[-1]]["connections"].items() if port != "Y"}
            before = [one for one in inputs if one is not None and one not in ordered]
            if before:
                waiting += before
            else:
                ordered.setdefault(waiting.pop())
    return [_gate(cells[name]) for name in ordered]


def _gate(cell: Cell) -> _Gate:
    connections = cell["connections"]
    first, second, select = (connections.get(port, ["0"])[0] for port in "ABS")
    return _Gate(_GATES.index(cell["type"]), connections["Y"][0], first, second, select)


def _simulated(program: list[_Gate], known: Mapping[Bit, int]) -> dict[Bit, int]:
    """Values of bits, or that they are unknown, as all are that are none of these and driven by no gate."""
    values: dict[Bit, int] = {**known, "0": 0, "1": 1}
    value_of = values.get
    for kind, output, one, other, select in program:
        first, second = value_of(one, _UNKNOWN), value_of(other, _UNKNOWN)
        is_known = first != _UNKNOWN and second != _UNKNOWN
        match kind:
            case 0:
                value = _UNKNOWN if first == _UNKNOWN else 1 - first
            case 1:
                value = 0 if 0 in (first, second) else 1 if is_known else _UNKNOWN
            case 2:
                value = 1 if 1 in (first, second) else 0 if is_known else _UNKNOWN
            case 3:
                value = first ^ second if is_known else _UNKNOWN
            case _:
                chosen = value_of(select, _UNKNOWN)
                same = first if first == second else _UNKNOWN
                value = same if chosen == _UNKNOWN else (first, second)[chosen]
        values[output] = value
    return values
