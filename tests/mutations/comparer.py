"""Makes comparisons one after another, as ordered on standard input, each in a process of its own.

Importing what is not the project's takes a good part of a comparison. It is done once here, before a process splits off
for each. The project's packages are those of the comparison's directory: a process begins without any.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 600


def import_what_is_not_ours() -> None:
    """Import what a comparison does, and forget what of it is the project's."""
    importlib.import_module("ironband.check")
    ours = {
        *importlib.import_module("comparison").PACKAGES,
        *(file.stem for file in Path(__file__).parent.glob("*.py")),
    }
    for name in list(sys.modules):
        if name.partition(".")[0] in ours:
            del sys.modules[name]


def compare(tree: str, builds: str, arguments: list[str]) -> int:
    """In a process of its own: compare what is in a directory, with build output in another; the exit status."""
    signal.alarm(_TIMEOUT_SECONDS)
    os.chdir(tree)
    os.environ["IRONBAND_SIM_BUILD"] = builds
    # Behind the folder of `comparison`, where PYTHONPATH would be.
    sys.path.insert(1, tree)
    comparison = importlib.import_module("comparison")
    status: int = comparison.main(arguments)
    return status


def compare_apart(order: dict[str, Any], output: Path) -> int:
    """Compare in a process of its own, which says what it has to say to a file; its exit status."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    status = 2
    try:
        for path, mode, streams in (
            (os.devnull, os.O_RDONLY, [0]),
            (output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, [1, 2]),
        ):
            opened = os.open(path, mode)
            for stream in streams:
                os.dup2(opened, stream)
        status = compare(order["tree"], order["builds"], order["arguments"])
    except BaseException:  # nothing of this process goes on as if it were the other
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Compare as ordered, until the orders end."""
    import_what_is_not_ours()
    # Elaboration makes many objects and little garbage, and looking for it would copy the pages of what is imported.
    gc.disable()
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="ironband-") as folder:
        output = Path(folder) / "output"
        for line in sys.stdin:
            status = compare_apart(json.loads(line), output)
            print(json.dumps({"status": status, "said": output.read_text(errors="replace")}), flush=True)


if __name__ == "__main__":
    main()
