"""A switch's and an adapter's agent, alone."""

import pytest

from tests.model.management.agent_bench import ADAPTER, SWITCH, Bench


@pytest.fixture
def switch() -> Bench:
    """Ports 1 to 4."""
    return Bench(SWITCH)


@pytest.fixture
def adapter() -> Bench:
    return Bench(ADAPTER)
