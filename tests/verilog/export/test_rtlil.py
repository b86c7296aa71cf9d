"""RTLIL is read and written."""

import pytest

from verilog.emit import merged_rtlil
from verilog.export.rtlil import parse

from ..components import Chain, Pair, Port


def test_what_is_written_is_what_was_read():
    written = merged_rtlil(Chain([Port(), Pair()]), "chain")
    text = "\n".join(map(str, parse(written).values()))
    assert "\n".join(map(str, parse(text).values())) == text
    kept = {line.strip() for line in text.splitlines()}
    assert all(line.strip() in kept for line in written.splitlines() if line.strip().startswith(("cell", "parameter")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "RTLIL outside a module: hello"),
        ("module \\top\n  hello\nend\n", r"RTLIL in module \\top:   hello"),
        ("module \\top\n  wire upto 3 \\net\nend\n", r"RTLIL in module \\top: wire upto 3 \\net"),
    ],
)
def test_text_that_is_no_rtlil_is_told(text, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse(text)
