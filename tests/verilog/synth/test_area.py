"""What a netlist takes, component by component, memory by memory."""

from verilog.synth.area import PINS, mapped_memories, parts
from verilog.synth.device import Area

from .examples import BEFORE, MAPPED


def test_area_is_counted_by_component():
    found = {part.name: part for part in parts(MAPPED)}
    assert found["port"].instances == 2
    assert found["port"].area == Area(luts=2 * (1 + 2 + 4), registers=2, block_rams=4, lut_rams=2)
    assert found["the rest"].area == Area(luts=1)
    assert found[PINS].area == Area(registers=1)


def test_each_memory_is_known_by_what_holds_it():
    found = {memory.name: memory for memory in mapped_memories(BEFORE, MAPPED)}
    assert {name: memory.mapped_to for name, memory in found.items()} == {
        "port.store.rows": "block RAM",
        "port.store.links": "LUT RAM",
        "port.store.few": "registers",
    }
    assert found["port.store.rows"].instances == 2
    assert found["port.store.rows"].block_rams == 4
