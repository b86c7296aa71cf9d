"""Make sure the Debian packages that simulators, the compiled model and the tests with real programs need are there.

Run by `make setup` before the environment exists, so only the standard library is used. Root gets the missing
packages installed; anybody else gets the one line that installs them, and exit status 2.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from waiting import run

MINIMUM_PYTHON = (3, 11)


@dataclass(frozen=True)
class Need:
    """A Debian package, and how to see that what it brings is already here."""

    package: str
    present: Callable[[], bool]
    required: bool = True


def _command(name: str) -> Callable[[], bool]:
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
    return lambda: shutil.which(name, path=path) is not None


def _header(name: str) -> Callable[[], bool]:
    """Whether the C++ compiler finds the header NAME."""

    def present() -> bool:
        compiler = shutil.which("g++")
        if compiler is None:
            return False
        source = f"#include <{name}>\n"
        command = [compiler, "-E", "-x", "c++", "-"]
        return subprocess.run(command, input=source, capture_output=True, text=True).returncode == 0

    return present


def _file(pattern: str) -> Callable[[], bool]:
    """Whether there is such a file below /usr."""
    return lambda: any(Path("/usr").glob(pattern))


def _libpython() -> bool:
    """Whether this Python's shared library, which the simulators load, can be found."""
    config = sysconfig.get_config_vars()
    soname = str(config.get("INSTSONAME") or config.get("LDLIBRARY") or "")
    if ".so" not in soname:
        soname = f"libpython{_python_version()}.so.1.0"
    folders = {str(config[key]) for key in ("LIBDIR", "LIBPL") if config.get(key)}
    folders.add(f"/usr/lib/{config.get('MULTIARCH') or ''}")
    if any((Path(folder) / soname).exists() for folder in folders):
        return True
    return _is_debian_python() and ctypes.util.find_library(f"python{_python_version()}") is not None


def _python_headers() -> bool:
    """Whether this Python's C headers, with which the golden model is compiled, are there."""
    return (Path(sysconfig.get_path("include")) / "Python.h").exists()


def _is_debian_python() -> bool:
    return sys.base_prefix == "/usr"


def _python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


NEEDS = [
    Need("make", _command("make")),
    Need("g++", _command("g++")),
    Need("iverilog", _command("iverilog")),
    Need("liblz4-dev", _header("lz4.h")),
    Need("zlib1g-dev", _header("zlib.h")),
    Need("python3-venv", lambda: importlib.util.find_spec("ensurepip") is not None),
    Need(f"libpython{_python_version()}", _libpython),
    Need(f"libpython{_python_version()}-dev", _python_headers),
    Need("ccache", _command("ccache"), required=False),
    Need("opensm", _command("opensm"), required=False),
    Need("infiniband-diags", _command("ibnetdiscover"), required=False),
    Need("ibverbs-utils", _command("ibv_devinfo"), required=False),
    Need("ibverbs-providers", _file("lib/*/libibverbs/librxe-*.so"), required=False),
    Need("python3-pyverbs", _file("share/doc/rdma-core/tests/run_tests.py"), required=False),
    Need("perftest", _command("ib_send_lat"), required=False),
    Need("rdmacm-utils", _command("rping"), required=False),
    Need("libfabric-bin", _command("fi_pingpong"), required=False),
    Need("ucx-utils", _command("ucx_perftest"), required=False),
    Need("openmpi-bin", _command("mpirun"), required=False),
    Need("libopenmpi-dev", _command("mpicc"), required=False),
    Need("ibsim-utils", _command("ibsim"), required=False),
    Need("tshark", _command("tshark"), required=False),
    Need("chromium-headless-shell", _command("chromium-headless-shell"), required=False),
]


def _fail(message: str) -> int:
    print(f"ironband set-up: {message}", file=sys.stderr)
    return 2


def main() -> int:
    """Install or name what is missing; return the exit status (0 there, 1 installing failed, 2 a person must act)."""
    if sys.version_info < MINIMUM_PYTHON:
        return _fail(f"Python {_python_version()} is too old, 3.11 or newer is needed (make PYTHON=python3.12 ...)")
    missing = [need for need in NEEDS if not need.present()]
    if not _is_debian_python() and any(need.package.startswith("libpython") for need in missing):
        return _fail(
            f"{sys.executable} lacks a shared libpython or its C headers: build it with --enable-shared, or use "
            "Debian's python3"
        )
    root = os.geteuid() == 0
    if not any(need.required for need in missing) and not (root and missing):
        return 0
    install = ["apt-get", "install", "-y", "--no-install-recommends", *(need.package for need in missing)]
    line = f"apt-get update && {' '.join(install)}"
    if shutil.which("apt-get") is None:
        return _fail("missing: " + ", ".join(need.package for need in missing) + " (Debian's names), and no apt-get")
    if not root:
        return _fail(f"some Debian packages are missing; this installs them: sudo sh -c '{line}'")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], [*install, "-qq"]):
        if run(" ".join(command), command, environment, quiet=True) != 0:
            if any(need.required and not need.present() for need in missing):
                return _fail(f"`{' '.join(command)}` failed; by hand: {line}") - 1
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
