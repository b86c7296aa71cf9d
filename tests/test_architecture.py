"""The house: floors, rooms, and which way imports go (docs/architecture.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLOORS = (
    ("ironband",),
    ("bench",),
    ("doors",),
    ("cosim",),
    ("verilog", "laboratory"),
    ("rtl", "model", "sm", "verbs", "capture"),
    ("wire", "toolchain"),
)
"""From the top. A room imports only rooms of floors below its own."""

NARROWER = {
    "rtl": {"wire"},
    "model": {"wire"},
    "sm": {"wire"},
    "verbs": {"wire"},
    "capture": {"wire", "toolchain"},
    "verilog": {"rtl", "wire", "toolchain"},
    "laboratory": {"capture", "wire", "toolchain"},
}
"""What the rooms with less than all that is below them may import."""

INSIDE = {
    "cosim": (
        ("pictures",),
        ("experiments",),
        ("engines", "hosts", "analysis"),
        ("stimulus",),
        ("drivers", "scenario"),
        ("simulators", "harness", "trace", "topology"),
    ),
    "doors": (
        ("serving",),
        ("hands",),
        ("lab", "watch"),
        ("door",),
        ("clients", "transports", "sysfs", "flows"),
        ("rdma_cm",),
        ("uverbs",),
        ("mads",),
        ("descriptors", "protocol", "shim"),
    ),
    "rtl": (
        ("fabric",),
        ("switch", "adapter"),
        ("management",),
        ("crossing",),
        ("link",),
        ("registers",),
        ("widths", "below", "rotation", "trace", "restoration"),
    ),
    "model": (
        ("fabric",),
        ("switch", "adapter"),
        ("multicast",),
        ("management",),
        ("link",),
        ("crossing",),
        ("packet", "parts"),
        ("content", "kernel", "multicast"),
    ),
    "verilog": (
        ("export", "synth"),
        ("equivalence",),
        ("unreachable",),
        ("gates", "sat"),
        ("gate_graph", "mutants"),
        ("design",),
        ("emit",),
        ("nodes",),
        ("boundaries", "merging", "line_order", "memory_contents", "plain_names", "whole_assignments"),
        ("fingerprint", "liveness", "tools"),
    ),
}
"""The floors within a room: folders, or files of their own."""

ROOMS = [room for floor in FLOORS for room in floor]
LARGEST_SHARE = 0.30


def modules() -> dict[str, Path]:
    """Every module of the house, by its dotted name."""
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    return {name_of(file.relative_to(ROOT)): file for file in files}


def name_of(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, package: str) -> Iterator[str]:
    """Dotted names of all that is imported anywhere in a module, for types alone too, as it may be an attribute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules that each module imports."""
    found = modules()
    edges = {}
    for name, file in found.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        targets = set()
        for wanted in imports(file.read_text(), package):
            module = wanted if wanted in found else wanted.rpartition(".")[0]
            if module in found:
                targets.add(module)
        edges[name] = targets - {name}
    return edges


def place(module: str, floors: tuple[tuple[str, ...], ...], level: int) -> tuple[int, str] | None:
    """Floor, counted from the top, and room of a module."""
    parts = module.split(".")
    room = parts[level] if len(parts) > level else ""
    return next(((number, room) for number, floor in enumerate(floors) if room in floor), None)


def upward(graph: dict[str, set[str]], floors: tuple[tuple[str, ...], ...], level: int, inside: str = "") -> list[str]:
    """Imports from a floor to the same one or a higher one, within a room's own walls aside."""
    found = []
    for importer, targets in graph.items():
        for target in targets:
            if inside and not (importer.startswith(f"{inside}.") and target.startswith(f"{inside}.")):
                continue
            here, there = place(importer, floors, level), place(target, floors, level)
            if here is None or there is None or here[1] == there[1]:
                continue
            if there[0] <= here[0]:
                found.append(f"{importer} imports {target}")
    return sorted(found)


def test_a_room_imports_only_the_floors_below(graph: dict[str, set[str]]) -> None:
    assert not upward(graph, FLOORS, 0)


@pytest.mark.parametrize("room", NARROWER)
def test_some_rooms_import_less_than_all_below(graph: dict[str, set[str]], room: str) -> None:
    taken = {target.split(".")[0] for name in graph if name.split(".")[0] == room for target in graph[name]}
    assert taken <= NARROWER[room] | {room}


@pytest.mark.parametrize("room", INSIDE)
def test_imports_go_down_within_a_room_too(graph: dict[str, set[str]], room: str) -> None:
    assert not upward(graph, INSIDE[room], 1, room)


@pytest.mark.parametrize("room", INSIDE)
def test_every_part_of_a_room_has_a_floor(room: str) -> None:
    parts = {name.split(".")[1] for name in modules() if name.startswith(f"{room}.")}
    assert parts == {part for floor in INSIDE[room] for part in floor}


def test_no_files_import_each_other_in_a_circle(graph: dict[str, set[str]]) -> None:
    left = {name: set(targets) for name, targets in graph.items()}
    while ends := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets for name, targets in left.items() if name not in ends}
    # What imports a circle is left over too; what nobody left over imports is no part of one.
    while tops := left.keys() - set[str]().union(*left.values()):
        left = {name: targets for name, targets in left.items() if name not in tops}
    assert not left, f"in circles: {', '.join(sorted(left))}"


def test_no_room_is_the_attic() -> None:
    lines = {
        room: sum(
            len(file.read_text().splitlines())
            for kind in ("*.py", "*.v", "*.cpp")
            for file in (ROOT / room).rglob(kind)
        )
        for room in ROOMS
    }
    largest = max(lines, key=lambda room: lines[room])
    assert lines[largest] <= LARGEST_SHARE * sum(lines.values()), f"{largest}/ has {lines[largest]} lines"


def test_every_import_is_seen() -> None:
    source = (
        "import model.fabric\nfrom cosim.trace import compare\nfrom ..kernel import NEVER\n"
        "if TYPE_CHECKING:\n    from .port import LinkPort\n"
    )
    assert set(imports(source, "model.link")) == {
        "model.fabric",
        "cosim.trace.compare",
        "model.kernel.NEVER",
        "model.link.port.LinkPort",
    }


def test_an_import_upwards_is_seen() -> None:
    graph = {"wire.codes": {"rtl.switch.switch"}, "rtl.link.row": {"rtl.crossing.buffer"}}
    assert upward(graph, FLOORS, 0) == ["wire.codes imports rtl.switch.switch"]
    assert upward(graph, INSIDE["rtl"], 1, "rtl") == ["rtl.link.row imports rtl.crossing.buffer"]
