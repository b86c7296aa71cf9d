"""Two communication managers."""

import pytest

from tests.verbs.cm_wire import End


@pytest.fixture
def ends() -> tuple[End, End]:
    return End(0), End(1)
