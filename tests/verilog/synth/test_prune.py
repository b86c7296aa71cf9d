"""What nothing uses goes out of a netlist."""

from verilog.synth.netlist import prune


def cell(kind, inputs, outputs):
    directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
    return {"type": kind, "port_directions": directions, "connections": inputs | outputs}


def test_what_nothing_uses_goes_bit_by_bit_through_all_levels():
    both = {"given": [4, 5], "fixed": ["0"]}
    modules = {
        "top": {
            "attributes": {},
            "ports": {"taken": {"direction": "input", "bits": [2]}, "given": {"direction": "output", "bits": [8]}},
            "cells": {
                "used": cell("LUT4", {"A": [2]}, {"Z": [4]}),
                "unused": cell("LUT4", {"A": [2]}, {"Z": [5]}),
                "first": cell("inner", both, {"made": [8, 9]}),
                "second": cell("inner", both, {"made": [10, 11]}),
            },
        },
        "inner": {
            "attributes": {},
            "ports": {
                "given": {"direction": "input", "bits": [2, 3]},
                "fixed": {"direction": "input", "bits": [4]},
                "made": {"direction": "output", "bits": [5, 6]},
            },
            "cells": {
                "of_bit_0": cell("LUT4", {"A": [2], "B": [4]}, {"Z": [5]}),
                "of_bit_1": cell("LUT4", {"A": [3]}, {"Z": [7]}),
                "delayed": cell("TRELLIS_FF", {"DI": [7]}, {"Q": [6]}),
            },
        },
        "LUT4": {"attributes": {"blackbox": "1"}, "ports": {}, "cells": {}},
    }
    prune(modules, "top")
    assert set(modules["inner"]["cells"]) == {"of_bit_0"}
    assert set(modules["top"]["cells"]) == {"used", "first", "second"}


def test_a_cell_that_drives_nothing_stays_with_what_it_reads_and_so_does_an_instance_without_the_output_it_had():
    modules = {
        "top": {
            "attributes": {},
            "ports": {},
            "cells": {
                "read": cell("LUT4", {"A": ["0"]}, {"Z": [2]}),
                "dead": cell("LUT4", {"A": [2]}, {"Z": [3]}),
                "sink": cell("JTAGG", {"D": [2]}, {}),
                "instance": cell("inner", {}, {"deleted": [4]}),
            },
        },
        "inner": {"attributes": {}, "ports": {}, "cells": {}},
    }
    prune(modules, "top")
    assert set(modules["top"]["cells"]) == {"read", "sink", "instance"}
