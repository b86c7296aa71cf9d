"""A design whose memories return rubbish where they promise nothing: of a word that is read while it is written."""

import re
from dataclasses import replace

from verilog.design import Design

__all__ = ["with_rubbish"]

_PROMISE = re.compile(
    r"\(\* no_rw_check = 32'd1 \*\)\n(?:  \(\* .* \*\)\n)*  reg \[(?P<high>\d+):0\] (?P<name>\\?\S+) +\["
)
_WRITE = r"\n    (?:if \((?P<enable>.+)\)\n +)?{name} *\[(?P<address>.+?)\](?: *\[\d+(?::\d+)?\])? <= .+;"
"""Of a word, or of some bits of it."""

_READ = r"(?P<target>\S+ ?) <= {name} *\[(?P<address>.+)\];"


def with_rubbish(design: Design) -> tuple[Design, int]:
    """The design with rubbish, and how many memories in it promise nothing."""
    count = 0
    modules = design.verilog.split("endmodule")
    for index, module in enumerate(modules):
        for memory in _PROMISE.finditer(module):
            count += 1
            modules[index] = _rubbish(modules[index], memory["name"], int(memory["high"]) + 1)
    return replace(design, verilog="endmodule".join(modules)), count


def _rubbish(module: str, name: str, width: int) -> str:
    pattern = re.escape(name)
    writes = list(re.finditer(_WRITE.format(name=pattern), module))
    addresses = {write["address"] for write in writes}
    assert len(addresses) == 1, f"{name}: written at {addresses}, expected one address"
    (address,) = addresses
    always = "1'b1"
    enable = " || ".join(f"({write['enable'] or always})" for write in writes)
    random = f"{{{-(-width // 32)}{{$urandom}}}}"

    def read(found: re.Match[str]) -> str:
        collides = f"({enable}) && ({address}) == ({found['address']})"
        return f"{found['target']} <= {collides} ? {random} : {name} [{found['address']}];"

    module, reads = re.subn(_READ.format(name=pattern), read, module)
    assert reads, f"{name}: no reads"
    return module
