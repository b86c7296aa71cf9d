"""docs/trace.md shows what the example prints, and has every kind and field."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from wire.trace import WORD_BITS, Record
from wire.trace_layout import LAYOUTS, RecordField

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/trace.md").read_text()


def place(field: RecordField) -> str:
    word = Record._fields[field.word]
    if field.width == WORD_BITS:
        return word
    last = field.lsb + field.width - 1
    return f"{word}[{last}:{field.lsb}]" if field.width > 1 else f"{word}[{last}]"


def test_the_example_is_the_file_and_prints_what_is_shown():
    example = ROOT / "docs/trace.py"
    run = subprocess.run([sys.executable, example], capture_output=True, text=True, cwd=ROOT)
    assert run.stderr == ""
    assert f"```python\n{example.read_text()}```" in PAGE
    assert f"```\n{run.stdout}```" in PAGE


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.name)
def test_a_kinds_fields_are_listed_where_they_are(kind):
    (row,) = re.findall(rf"^\| `{kind.name}` \| {int(kind)} \| .* \| (.*) \|$", PAGE, re.M)
    assert row.split(", ") == [f"{field.label} `{place(field)}`" for field in LAYOUTS[kind].fields]


def test_no_other_kind_is_listed():
    assert re.findall(r"^\| `([A-Z_]+)` \| \d", PAGE, re.M) == [kind.name for kind in LAYOUTS]
