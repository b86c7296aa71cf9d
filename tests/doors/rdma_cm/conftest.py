"""Programs with rdma_cm devices at two hosts of a fabric."""

import pytest

from tests.doors.cm_programs import CmFabric, Program


@pytest.fixture
def fabric() -> CmFabric:
    return CmFabric()


@pytest.fixture
def server(fabric) -> Program:
    return Program(fabric, 1)


@pytest.fixture
def client(fabric) -> Program:
    return Program(fabric, 2)
