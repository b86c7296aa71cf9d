"""The house: each room imports only the rooms below it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BELOW = {
    "wire": {"wire"},
    "rtl": {"rtl", "wire"},
    "model": {"model", "wire"},
    "sm": {"sm", "wire"},
    "cosim": {"cosim", "rtl", "model", "sm", "wire"},
}


def imported_rooms(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return {name.split(".")[0] for name in names} & {*BELOW, "tests"}


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py"))
    assert files, f"{room}/ has no Python files"
    for file in files:
        above = imported_rooms(file.read_text()) - BELOW[room]
        assert not above, f"{file.relative_to(ROOT)} imports {', '.join(sorted(above))}"


def test_an_import_of_a_room_above_is_seen() -> None:
    assert imported_rooms("import model.fabric\nfrom cosim import compare\nimport json") == {"model", "cosim"}
