"""Hosts whose adapters are not wired to anything, and a program at each of two."""

import pytest

from tests.doors.ideal_wire import described_hosts
from tests.doors.verbs_client import Program


@pytest.fixture
def hosts():
    return described_hosts(2)


@pytest.fixture
def programs(hosts):
    """A program at each of two hosts."""
    made = [Program(host) for host in hosts.values()]
    yield made
    for program in made:
        program.close()
