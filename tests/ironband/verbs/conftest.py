"""What the tests of the Python API share."""

from collections.abc import Iterator

import pytest

from ironband.verbs import Fabric


@pytest.fixture
def star() -> Iterator[Fabric]:
    """Two hosts at a switch, in the golden model."""
    with Fabric("star", bring_up="bus") as fabric:
        yield fabric
