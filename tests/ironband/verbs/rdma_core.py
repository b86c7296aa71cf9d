"""Runs tests that rdma-core has for pyverbs over this API: python rdma_core.py ENGINE MODULE... prints a line of JSON.

They are read where Debian's package puts them. Their modules find `pyverbs` to be `ironband.verbs`, with a fabric of
two hosts around them. The two ends of traffic, which are at one device where they come from, are at two hosts here, and
each one's LID and GID are taken for the other's, as both ends send to their own. Time passes by itself after each
message of test_cq, which looks at a queue without polling it.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import unittest
from pathlib import Path
from types import ModuleType

from ironband.verbs import Fabric, utils
from ironband.verbs.device import Context

THEIRS = Path("/usr/share/doc/rdma-core/tests")
ENDS = ("H1", "H2")


class Absent:
    """What is not for InfiniBand, or is not here."""

    def __init__(self, *args: object, **more: object) -> None:
        raise unittest.SkipTest(f"{type(self).__name__}: there is none")


class Rest:
    """What a module of theirs has and none of ours: numbers that are 0, and classes without anything in them."""

    def __init__(self, module: str, ours: ModuleType | None) -> None:
        self.module = module
        self.ours = ours

    def __call__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.ours is not None and hasattr(self.ours, name):
            return getattr(self.ours, name)
        # What tells of numbers to people, pyverbs has in the module of what they are about.
        if hasattr(utils, name):
            return getattr(utils, name)
        return 0 if "IBV_" in name else type(name, (Absent,), {"__module__": self.module})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds their modules, and ours under the names that they import."""

    def find_spec(self, name: str, path=None, target=None):
        root = name.partition(".")[0]
        if root in ("pyverbs", "tests") or (self._file(name) and root == "args_parser"):
            is_package = "." not in name or name.startswith("pyverbs.providers")
            return importlib.machinery.ModuleSpec(name, self, is_package=is_package)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        source = self._file(name)
        if source is not None:
            read = source.read_bytes()
            text = gzip.decompress(read) if source.suffix == ".gz" else read
            exec(compile(text, str(source), "exec"), vars(module))
        elif name.startswith("pyverbs."):
            ours = None
            if importlib.util.find_spec(
                known := name.replace("pyverbs", "ironband.verbs", 1).partition(".providers")[0]
            ):
                ours = importlib.import_module(known)
                vars(module).update({key: value for key, value in vars(ours).items() if not key.startswith("__")})
            module.__getattr__ = Rest(name, ours)

    @staticmethod
    def _file(name: str) -> Path | None:
        base = name.removeprefix("tests.")
        files = (THEIRS / f"{base}.py", THEIRS / f"{base}.py.gz")
        return next((file for file in files if file.is_file() and "pyverbs" not in name), None)


class CrossedContext(Context):
    """A context that says of its port what the other host's is."""

    def query_port(self, port_num):
        own = super().query_port(port_num)
        object.__setattr__(own, "lid", self._peer.adapter.ports[port_num - 1].lid)
        return own

    def query_gid(self, port_num, index):
        with Context(self.network, self._peer.name) as other:
            return other.query_gid(port_num, index)

    @property
    def _peer(self):
        return self.network.host(ENDS[1 - ENDS.index(self.name)])


class Result(unittest.TestResult):
    """Counts, and puts the two ends of each test at two hosts."""

    made = 0

    def startTest(self, test):
        Result.made = 0
        super().startTest(test)


def create_context(resources) -> None:
    resources.ctx = CrossedContext(None, ENDS[Result.made % 2])
    Result.made += 1


def let_time_pass(fabric: Fabric, utils_of_theirs: ModuleType) -> None:
    """From now on until all is done that was posted."""
    send = utils_of_theirs.post_send

    def send_and_wait(*args, **more):
        send(*args, **more)
        fabric.run_until(lambda: fabric.is_idle)

    utils_of_theirs.post_send = send_and_wait


def main(engine: str, names: list[str]) -> None:
    sys.argv = sys.argv[:1]
    sys.meta_path.insert(0, Finder())
    for name in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "tests"]:
        del sys.modules[name]
    importlib.import_module("args_parser").parser.parse_args()
    base = importlib.import_module("tests.base")
    base.BaseResources.create_context = create_context
    result = Result()
    with Fabric("star", engine=engine, bring_up="bus") as fabric:
        for name in names:
            if name == "test_cq":
                let_time_pass(fabric, importlib.import_module("tests.utils"))
            unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"tests.{name}")).run(result)
    bad = {str(test): text for test, text in result.errors + result.failures}
    skipped = {str(test): why for test, why in result.skipped}
    passed = result.testsRun - len(bad) - len(skipped)
    print(json.dumps({"passed": passed, "skipped": skipped, "failed": bad}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
