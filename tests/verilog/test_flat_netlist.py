"""What of a flat netlist can be seen from outside, in this cycle or a later one."""

from __future__ import annotations

from verilog.flat_netlist import Cell, FlatNetlist

CLK, D0, D1, Q0, Q1, ADDRESS, DATA, READ = range(2, 10)


def cell(kind: str, outputs: dict[str, list[int]], memory: str = "", **inputs: list[int]) -> Cell:
    return {
        "type": kind,
        "parameters": {"MEMID": memory} if memory else {},
        "port_directions": dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output"),
        "connections": inputs | outputs,
    }


def netlist(output: int, **cells: Cell) -> FlatNetlist:
    return FlatNetlist({"cells": cells, "ports": {"y": {"direction": "output", "bits": [output]}}})


def register() -> Cell:
    return cell("$dff", {"Q": [Q0, Q1]}, CLK=[CLK], D=[D0, D1])


def test_a_bit_of_a_register_that_nothing_reads_is_not_seen():
    found = netlist(Q0, register=register())
    assert found.ends == {Q0, D0, CLK}
    assert found.takes("register", 0)
    assert not found.takes("register", 1)


def test_a_bit_that_decides_only_about_itself_is_not_seen():
    held = cell("$mux", {"Y": [D1]}, A=[Q1], B=[DATA], S=[READ])
    assert netlist(Q0, register=register(), held=held).ends == {Q0, D0, CLK}


def test_a_bit_that_a_cell_mixes_with_others_is_seen():
    any_of = cell("$reduce_or", {"Y": [READ]}, A=[Q0, Q1])
    assert netlist(READ, register=register(), any=any_of).ends == {READ, D0, D1, CLK}


def test_what_is_written_to_a_memory_is_seen_if_the_memory_is_read():
    write = cell("$memwr_v2", {}, "\\memory", CLK=[CLK], ADDR=[ADDRESS], DATA=[DATA])
    read = cell("$memrd_v2", {"DATA": [READ]}, "\\memory", ADDR=[ADDRESS])
    found = netlist(READ, write=write, read=read)
    assert found.ends == {READ, CLK, ADDRESS, DATA}
    assert found.takes("write", 0)
    found = netlist(D0, write=write, read=read)
    assert found.ends == {D0}
    assert not found.takes("write", 0)


def test_a_shorter_input_is_extended_by_its_last_bit():
    longer = cell("$pos", {"Y": [D0, D1]}, A=[DATA])
    assert netlist(Q1, register=register(), longer=longer).ends == {Q1, D1, CLK}
    assert netlist(D1, longer=longer, of=cell("$dff", {"Q": [DATA]}, CLK=[CLK], D=[READ])).ends == {D1, READ, CLK}
