"""What tests of the hardware share."""

import pytest

from tests.rtl.management.stand_in import StandIn


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes have a stand-in in place of their agent."""
    monkeypatch.setattr("rtl.management.agent_port.Agent", StandIn)
