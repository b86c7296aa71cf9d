"""Small placed designs, as nextpnr writes them."""

import json

from verilog.synth.placed import PlacedDesign

CLOCK = 1


class Placed:
    """A design of which cells are given one by one; nets go by names."""

    def __init__(self):
        self._cells = {}
        self._nets = {}

    def _cell(self, kind, name, bel, inputs, outputs, parameters):
        place, _, local = bel.partition("/SLICE")
        pins = {pin: [self._net(net)] for pin, net in (inputs | outputs).items() if net is not None}
        self._cells[name] = {
            "type": kind,
            "attributes": {"NEXTPNR_BEL": f"{place}/SLICE{local}" if local else place},
            "parameters": parameters,
            "port_directions": {pin: "output" if pin in outputs else "input" for pin in pins},
            "connections": pins,
        }

    def _net(self, name):
        return self._nets.setdefault(name, len(self._nets) + 2)

    def register(self, name, tile, place, source=None, *, by="M", enable=None, reset=None):
        """Its output is the net of its name; SOURCE comes by pin BY."""
        inputs = {"CLK": "clock", by: source, "CE": enable, "LSR": reset}
        parameters = {"CEMUX": "CE" if enable else "1 ", "LSRMUX": "LSR", "CLKMUX": "CLK"}
        bel = f"X{tile[0]}/Y{tile[1]}/SLICE{place[0]}.FF{place[1]}"
        self._cell("TRELLIS_FF", name, bel, inputs, {"Q": name}, parameters)

    def lut(self, name, tile, place, *sources, mode=None):
        """Its output is the net of its name."""
        bel = f"X{tile[0]}/Y{tile[1]}/SLICE{place[0]}.K{place[1]}"
        inputs = dict(zip("ABCD", sources, strict=False))
        self._cell("TRELLIS_COMB", name, bel, inputs, {"F": name}, {"MODE": mode} if mode else {})

    def multiplexer(self, name, tile, letter, *sources, wider=None):
        """Of the two LUTs of a slice, and of WIDER, another slice's; its output is the net of its name."""
        self.lut(f"{name}_of_1", tile, f"{letter}1", *sources)
        bel = f"X{tile[0]}/Y{tile[1]}/SLICE{letter}.K0"
        inputs = dict(zip("ABC", sources, strict=False)) | {"F1": f"{name}_of_1", "FXA": wider}
        self._cell("TRELLIS_COMB", name, bel, inputs, {"OFX": name}, {})

    def block_ram(self, name, tile, **outputs):
        """By its pins, the nets that it drives."""
        self._cell("DP16KD", name, f"X{tile[0]}/Y{tile[1]}/EBR0", {}, outputs, {})

    def names(self):
        """Of the cells, in the order of their numbers."""
        return list(self._cells)

    def write(self, file):
        """As nextpnr would; returns the file."""
        file.write_text(json.dumps({"modules": {"top": {"cells": self._cells}}}))
        return file

    def read(self, directory):
        """As it is read."""
        return PlacedDesign(self.write(directory / "placed.json"))


def bels(file):
    """Of each cell in FILE, where it lies."""
    (top,) = json.loads(file.read_text())["modules"].values()
    return {name: cell["attributes"]["NEXTPNR_BEL"] for name, cell in top["cells"].items()}
