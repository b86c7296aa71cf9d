"""Executables out of Verilog with Verilator.

What many designs have in common is compiled once and kept in the build cache: Verilator's library and its headers,
and modules with many instances (see `cosim.simulators.precompiled_modules`). What is left of the design is compiled at
the same time, and linked with them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import cocotb_tools.config

from cosim.simulators import installed, module_calls, netlist, precompiled_modules
from cosim.simulators.precompiled_modules import PrecompiledModule, split
from toolchain.build_cache import cached, find
from toolchain.building import building
from toolchain.parallel import in_parallel
from toolchain.process import run_tool

__all__ = ["TIMESCALE", "library", "settings", "verilate"]

TIMESCALE = "1ns/1ps"
# Amaranth's output is clean but for these.
_WARNINGS_OFF = (
    *("WIDTH", "UNUSEDSIGNAL", "PROCASSINIT", "DECLFILENAME", "TIMESCALEMOD"),
    *("CASEINCOMPLETE", "UNSIGNED", "ASCRANGE", "INITIALDLY"),
)
_FLAGS = ["-O3", "--x-assign", "fast", "--x-initial", "fast", *(f"-Wno-{name}" for name in _WARNINGS_OFF)]
_CXX_FLAGS = "-std=gnu++14 -fcoroutines"
"""Coroutines are of C++20, whose standard library takes g++ twice as long to read as that of C++14, in which it has
them too; and nothing else here is younger."""
_ALIAS_QUERIES = ("sccvn-max-alias-queries-per-access=50", "dse-max-alias-queries-per-store=32")
"""Verilator's functions write thousands of members of one structure: g++ spends a quarter of its time on asking which
may be the same. With fewer questions, and without -O2, programs are built in three quarters of the time and no slower.
"""
_FAST = " ".join(["-O1", *(f"--param={limit}" for limit in _ALIAS_QUERIES)])
# The wheel's makefile lacks the first, without which larger designs do not link. The second is for all units to have
# the same macros: else g++ does not take the precompiled headers.
_MAKE_SETTINGS = [
    *("CFG_CXXFLAGS_PCH_I=-include", "VM_TIMING=1"),
    *(f"OPT_FAST={_FAST}", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"),
]
_MAIN = Path(__file__).with_name("main.cpp")
_GLUE = "glue.cpp"
_RULES_FILE = "units.mk"
_OBJECTS = "objects"
_ARCHIVE = "units.a"
_EXECUTABLE = "executable"
_MODULE = "module"
_LIBRARY = "verilator_library"
_HEADERS = "verilator_headers"
_UNIT_BYTES = 2_000_000
"""C++ in one translation unit: units share nothing but precompiled headers, and are compiled at the same time."""
_SMALL_BYTES = 1_000_000
"""C++ that is not worth two units, one for what runs in each cycle and one for what runs once."""
_CHARACTER_SECONDS = 16e-6
"""For a character of Verilog, where two processors share the work."""
_CLASSES = re.compile(r"^VM_(?:CLASSES|SUPPORT)_(?P<speed>FAST|SLOW) \+= \\\n(?P<names>(?:  \S+ \\\n)*)", re.M)
_LIBRARY_UNITS = ("verilated", "verilated_dpi", "verilated_threads", "verilated_timing", "verilated_vpi")
_WAVES_UNIT = "verilated_fst_c"
_WAVES = ["--trace-fst", "--trace-structs"]
_LIBRARY_VERILOG = "module nothing;\n  initial #1 $finish;\nendmodule\n"
_COMMON_HEADERS = ("verilated.h", "verilated_dpi.h", "verilated_timing.h")
_HEADERS_FILES = {"FAST": "fast.h", "SLOW": "slow.h"}
"""Which include all of these, by the optimization that they are precompiled for; g++ reads no other one's."""
_HEADERS_RULES = """\
include {prefix}.mk
all: fast.h.gch slow.h.gch
fast.h.gch: fast.h
	$(OBJCACHE) $(CXX) $(OPT_FAST) $(CXXFLAGS) $(CPPFLAGS) -x c++-header -o $@ $<
slow.h.gch: slow.h
	$(OBJCACHE) $(CXX) $(OPT_SLOW) $(CXXFLAGS) $(CPPFLAGS) -x c++-header -o $@ $<
"""
_RULES = """\
include {prefix}.mk
fast_%.o: fast_%.cpp
	$(OBJCACHE) $(CXX) $(OPT_FAST) $(CXXFLAGS) $(CPPFLAGS) {fast_headers} -c -o $@ $<
slow_%.o: slow_%.cpp
	$(OBJCACHE) $(CXX) $(OPT_SLOW) $(CXXFLAGS) $(CPPFLAGS) {slow_headers} -c -o $@ $<
{objects}: {units}
{archive}: {units}
	$(AR) rcs $@ $^
{executable}: {units} {archives}
	$(LINK) $(LDFLAGS) -Wl,--start-group $^ -Wl,--end-group $(LOADLIBES) $(LDLIBS) $(LIBS) -o {top}
"""


def settings() -> list[str]:
    """What a build depends on besides its sources and the tools' versions."""
    files = (__file__, module_calls.__file__, precompiled_modules.__file__, netlist.__file__, _MAIN)
    return [Path(file).read_text() for file in files]


def verilate(directory: Path, compiled: Sequence[str], top: str, public: Sequence[str], waves: bool) -> None:
    """Build the executable DIRECTORY/TOP.

    Args:
        directory: where to.
        compiled: the Verilog files, from DIRECTORY.
        top: the top module.
        public: names in the top module that Python reads or writes, patterns allowed.
        waves: whether runs can record waves. Then the design is compiled as a whole, for all of it to be in them.

    Raises:
        BuildFailed: Verilator or the compiler refused.
    """
    names = "".join(f'public_flat_rw -module "{top}" -var "{name}"\n' for name in public)
    (directory / "public.vlt").write_text(f"`verilator_config\n{names}")
    shutil.copy(_MAIN, directory)
    libraries = cocotb_tools.config.libs_dir
    header = cocotb_tools.config.share_dir / "lib" / "verilator"
    options = [
        *("--exe", "--vpi", "--timing", "--timescale", TIMESCALE, "-o", top),
        *("-CFLAGS", f"{_CXX_FLAGS} -I{header}"),
        *("-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"),
        *(_WAVES if waves else []),
        *(f"-I{folder}" for folder in sorted({str(Path(file).parent) for file in compiled})),
    ]
    found = [] if waves else _take_precompiled(directory, compiled)
    missing = [partial(_module_archive, module) for module in found if find(_MODULE, _module_key(module)) is None]
    parts = (False, True) if waves else (False,)
    missing += [partial(library, part) for part in parts if find(_LIBRARY, _library_key(part)) is None]
    texts = [(directory / file).read_text() for file in compiled]
    texts += [module.verilog for module in found if find(_MODULE, _module_key(module)) is None]
    with (
        building("the simulation", len(missing) + 2, _seconds(texts)) as built,
        in_parallel(missing, built) as made,
    ):
        _verilator(directory, "Vtop", top, options, ["public.vlt", *compiled])
        built()
        units = _write_units(directory, "Vtop", [_MAIN.name], waves)
        _make(directory, _RULES_FILE, _OBJECTS)
        built()
        made()
        archives = [*map(_module_archive, found), *map(library, parts)]
        _write_rules(directory, "Vtop", units, archives=archives, top=top)
        _make(directory, _RULES_FILE, _EXECUTABLE)
    _remove_intermediates(directory)


def _seconds(texts: Sequence[str]) -> float:
    """About how long it takes to verilate and compile these texts, in which each instance of a module is a module."""
    return _CHARACTER_SECONDS * sum(_characters(text) for text in texts)


def _characters(verilog: str) -> int:
    whole = netlist.Netlist(verilog)

    def below(name: str) -> int:
        return len(whole.modules[name].text) + sum(below(child.name) for child in whole.children(name))

    return sum(map(below, whole.tops())) if whole.is_understood else len(verilog)


def _take_precompiled(directory: Path, compiled: Sequence[str]) -> list[PrecompiledModule]:
    """Take the precompiled modules out of Verilog files."""
    taken: list[PrecompiledModule] = []
    for file in compiled:
        rest, found = split((directory / file).read_text())
        if found:
            (directory / file).write_text(rest)
            taken += found
    return taken


def _module_key(module: PrecompiledModule) -> dict[str, object]:
    return _library_key(waves=False) | {"module": [module.verilog, module.glue]}


def _module_archive(module: PrecompiledModule) -> Path:
    def fill(directory: Path) -> None:
        prefix = f"V{module.name}"
        (directory / "module.v").write_text(module.verilog)
        (directory / _GLUE).write_text(module.glue)
        options = ["--no-timing", "-CFLAGS", _CXX_FLAGS]
        _verilator(directory, prefix, module.name, options, ["module.v"])
        _write_units(directory, prefix, [_GLUE])
        _make(directory, _RULES_FILE, _ARCHIVE)
        _remove_intermediates(directory, keep=_ARCHIVE)

    return cached(_MODULE, _module_key(module), fill) / _ARCHIVE


def _library_key(waves: bool) -> dict[str, object]:
    return {"versions": installed.versions("verilator"), "settings": settings(), "waves": waves}


def library(waves: bool = False) -> Path:
    """The archive of Verilator's own library, or of what designs with waves need besides, compiled if nobody has yet.

    Raises:
        SimulatorMissing, BuildFailed, BuildDirectoryError: see `cosim.simulators.build.build`.
    """

    def fill(directory: Path) -> None:
        (directory / "library.v").write_text(_LIBRARY_VERILOG)
        options = ["--vpi", "--timing", "-CFLAGS", _CXX_FLAGS, *(_WAVES if waves else [])]
        _verilator(directory, "Vlibrary", "nothing", options, ["library.v"])
        _write_rules(directory, "Vlibrary", [f"{part}.o" for part in ([_WAVES_UNIT] if waves else _LIBRARY_UNITS)])
        _make(directory, _RULES_FILE, _ARCHIVE)
        _remove_intermediates(directory, keep=_ARCHIVE)

    return cached(_LIBRARY, _library_key(waves), fill) / _ARCHIVE


def _headers() -> Path:
    """The directory of precompiled headers that all units include which cannot record waves, made if nobody has yet.

    Reading Verilator's headers takes g++ most of the time for a unit of a small module.
    """

    def fill(directory: Path) -> None:
        (directory / "library.v").write_text(_LIBRARY_VERILOG)
        _verilator(directory, "Vlibrary", "nothing", ["--timing", "-CFLAGS", _CXX_FLAGS], ["library.v"])
        text = "".join(f'#include "{name}"\n' for name in _COMMON_HEADERS)
        for name in _HEADERS_FILES.values():
            (directory / name).write_text(text)
        (directory / _RULES_FILE).write_text(_HEADERS_RULES.format(prefix="Vlibrary"))
        _make(directory, _RULES_FILE, "all")

    return cached(_HEADERS, _library_key(waves=False), fill)


def _verilator(directory: Path, prefix: str, top: str, options: Sequence[str], files: Sequence[str]) -> None:
    """Make C++ of Verilog."""
    command = [
        str(installed.verilator_executable()),
        *("--cc", "--Mdir", ".", "--prefix", prefix, "--top-module", top),
        *_FLAGS,
        *options,
        *files,
    ]
    run_tool(command, directory, installed.environment("verilator"))


def _make(directory: Path, makefile: str, *targets: str) -> None:
    environment = installed.environment("verilator")
    cache = ["OBJCACHE=ccache"] if shutil.which("ccache", path=environment["PATH"]) else []
    jobs = str(os.cpu_count() or 1)
    run_tool(["make", "-j", jobs, "-f", makefile, *_MAKE_SETTINGS, *cache, *targets], directory, environment)


def _write_units(directory: Path, prefix: str, more: Sequence[str] = (), waves: bool = False) -> list[str]:
    """Translation units of Verilator's C++ files and of MORE, and the rules that compile them; their objects' names."""
    files: dict[str, list[str]] = {"FAST": list(more), "SLOW": []}
    for classes in _CLASSES.finditer((directory / f"{prefix}_classes.mk").read_text()):
        files[classes["speed"]] += [f"{name}.cpp" for name in classes["names"].split() if name != "\\"]
    if sum((directory / name).stat().st_size for names in files.values() for name in names) <= _SMALL_BYTES:
        files = {"FAST": [*files["FAST"], *files["SLOW"]]}
    units = []
    for speed, names in files.items():
        for number, group in enumerate(_groups(directory, names)):
            unit = f"{speed.lower()}_{number}"
            (directory / f"{unit}.cpp").write_text("".join(f'#include "{name}"\n' for name in group))
            units.append(f"{unit}.o")
    _write_rules(directory, prefix, units, None if waves else _headers())
    return units


def _groups(directory: Path, names: Sequence[str]) -> list[list[str]]:
    """Files in their order, in groups of like sizes."""
    sizes = [(directory / name).stat().st_size for name in names]
    total = max(sum(sizes), 1)
    count = max(round(total / _UNIT_BYTES), 1)
    groups: list[list[str]] = [[] for _ in range(count)]
    for name, size, end in zip(names, sizes, accumulate(sizes), strict=True):
        # By where its middle is.
        groups[min(int((end - size / 2) * count / total), count - 1)].append(name)
    return [group for group in groups if group]


def _write_rules(
    directory: Path,
    prefix: str,
    units: Sequence[str],
    headers: Path | None = None,
    archives: Sequence[Path] = (),
    top: str = "",
) -> None:
    """Rules that compile units with precompiled headers, if any, and put units and archives together."""
    rules = _RULES.format(
        prefix=prefix,
        fast_headers=f"-include {headers / _HEADERS_FILES['FAST']}" if headers else "",
        slow_headers=f"-include {headers / _HEADERS_FILES['SLOW']}" if headers else "",
        units=" ".join(units),
        archives=" ".join(map(str, archives)),
        objects=_OBJECTS,
        archive=_ARCHIVE,
        executable=_EXECUTABLE,
        top=top,
    )
    (directory / _RULES_FILE).write_text(rules)


def _remove_intermediates(directory: Path, keep: str = "") -> None:
    for left in [*directory.glob("*.o"), *directory.glob("*.gch"), *directory.glob("*.a"), *directory.glob("*.cpp")]:
        if left.name != keep:
            left.unlink()
