"""Block RAMs of a switch's inputs get places side by side, no two the same."""

import pytest

from verilog.synth.device import DEVICES
from verilog.synth.floorplan import fix_block_rams, stretches


def cell(kind):
    return {"type": kind, "attributes": {}}


def module(cells, **attributes):
    return {"attributes": attributes, "cells": cells}


def switch(inputs, block_rams):
    return {
        "top": module({f"design.input_{i}": cell("input") for i in range(inputs)} | {"design.agent": cell("agent")}),
        "input": module({"tables": cell("tables"), "lut": cell("LUT4")}),
        "tables": module({f"ram_{i}": cell("DP16KD") for i in range(block_rams)}),
        "agent": module({"first": cell("DP16KD"), "second": cell("DP16KD")}),
        "LUT4": module({}, blackbox="1"),
        "DP16KD": module({}, blackbox="1"),
    }


def places(modules, inside="top", path=""):
    for name, one in modules[inside]["cells"].items():
        if one["type"] == "DP16KD":
            yield path + name, one["attributes"]["BEL"]
        else:
            yield from places(modules, one["type"], f"{path}{name}.")


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_has_a_place_for_each_of_its_block_rams(device: str) -> None:
    one = DEVICES[device]
    assert len(one.block_ram_columns) * len(one.block_ram_rows) == one.room.block_rams
    assert len(set(one.block_ram_columns)) == len(one.block_ram_columns)


def test_an_inputs_block_rams_are_neighbours_and_none_has_the_place_of_another() -> None:
    modules = switch(inputs=8, block_rams=16)
    device = DEVICES["LFE5U-85"]
    fix_block_rams(modules, device)
    found = dict(places(modules))
    assert len(found) == len(set(found.values())) == 8 * 16 + 2
    in_order = [f"X{x}/Y{row}/EBR{number}" for row in device.block_ram_rows for x, number in device.block_ram_columns]
    for number in range(8):
        own = sorted(in_order.index(place) for name, place in found.items() if f"input_{number}." in name)
        assert own == list(range(own[0], own[0] + 16))
    rows = [found[f"design.input_{number}.tables.ram_0"].split("/")[1] for number in range(8)]
    assert rows == ["Y22", "Y46", "Y70", "Y82"] * 2


def test_rows_of_packets_are_next_to_the_middle_of_a_row_where_the_crossbar_is() -> None:
    modules = switch(inputs=8, block_rams=0)
    names = ["route.tables", "store.buffer.rows_0", "store.queues.successors.memory", "store.buffer.verdicts"]
    modules["tables"]["cells"] = {name: cell("DP16KD") for name in names}
    fix_block_rams(modules, DEVICES["LFE5U-85"])
    middle = sum(column for column, _ in DEVICES["LFE5U-85"].block_ram_columns) / 52
    for number in range(8):
        own = [(place, name) for name, place in places(modules) if name.startswith(f"design.input_{number}.")]
        columns = {
            name.removeprefix(f"design.input_{number}.tables."): int(place.split("/")[0][1:]) for place, name in own
        }
        order = sorted(columns, key=lambda name: abs(columns[name] - middle))
        assert order == [
            "store.buffer.verdicts",
            "store.buffer.rows_0",
            "store.queues.successors.memory",
            "route.tables",
        ]


def test_fewer_inputs_are_in_the_rows_next_to_the_middle() -> None:
    rows = {place.split("/")[1] for places in stretches(4, 16, DEVICES["LFE5U-85"]) for place in places}
    assert rows == {"Y46", "Y70"}


@pytest.mark.parametrize(("inputs", "block_rams"), [(8, 14), (2, 29)], ids=["too many", "too large"])
def test_what_the_rows_do_not_take_is_left_to_nextpnr(inputs: int, block_rams: int) -> None:
    modules = switch(inputs, block_rams)
    fix_block_rams(modules, DEVICES["LFE5U-25"])
    assert modules == switch(inputs, block_rams)


def test_a_design_without_inputs_is_left_alone() -> None:
    modules = switch(inputs=0, block_rams=1)
    fix_block_rams(modules, DEVICES["LFE5U-85"])
    assert modules == switch(inputs=0, block_rams=1)
