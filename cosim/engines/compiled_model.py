"""The golden model compiled, three times as fast. It has a name of its own, so that both can be compared.

python -m cosim.engines.compiled_model      compiles it
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Final, cast

import model.fabric
from toolchain.compiled import CompiledPackage

__all__ = ["build", "fabric_class"]

_MODEL: Final = CompiledPackage("model", "ironband_model")


def build() -> bool:
    """Compile the model unless that has been done; False if mypyc is not installed, which is no harm.

    Raises:
        BuildFailed: mypyc or the C compiler failed.
        BuildDirectoryError: the build root cannot be written.
    """
    fabric_class.cache_clear()
    return _MODEL.build()


@cache
def fabric_class() -> type[model.fabric.Fabric]:
    """`model.fabric.Fabric`, compiled if that has been built of these sources, which are read once."""
    folder = _MODEL.find()
    if folder is None:
        return model.fabric.Fabric
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return cast("type[model.fabric.Fabric]", importlib.import_module(f"{_MODEL.name}.fabric").Fabric)


if __name__ == "__main__":
    sys.exit(None if build() else "mypyc is not installed: expected it with mypy")
