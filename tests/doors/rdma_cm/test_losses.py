"""What a fabric loses, as one knows that has nothing in flight any more."""

import errno
from collections import Counter

import pytest

from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand
from tests.doors.cm_connections import DISCONNECTED, ESTABLISHED, REJECTED, UNREACHABLE, asking, connected, listening
from tests.doors.cm_programs import TCP_PORT, CmFabric, Program, address
from wire.cm import CM_MAD, CmMessage
from wire.ip_cm import PortSpace
from wire.mad import MgmtClass


@pytest.mark.parametrize("space", [PortSpace.TCP, PortSpace.UDP])
def test_nobody_waits_for_what_cannot_come_any_more(space):
    fabric = CmFabric(knows_losses=True)
    server, client = Program(fabric, 1), Program(fabric, 2)
    listening(server, space)
    fabric.lose = lambda mad: mad[1] == MgmtClass.COMM_MGT
    asking(client, space)
    told = client.event()
    assert (told.code, told.status, fabric.now.time) == (UNREACHABLE, -errno.ETIMEDOUT, 0)
    assert fabric.losses in (16, 17)


@pytest.mark.parametrize("kind", [*CmMessage])
def test_whatever_is_lost_is_made_up_for_at_once(kind):
    fabric = CmFabric(knows_losses=True)
    server, client = Program(fabric, 1), Program(fabric, 2)
    left = Counter({kind: 3})

    def lose(mad: bytes) -> bool:
        left[CM_MAD["attribute_id"].read(mad)] -= 1
        return left[CM_MAD["attribute_id"].read(mad)] >= 0

    fabric.lose = lose
    far, near = connected(server, client)
    client.command(CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=near))
    assert (client.event().code, server.event().code) == (DISCONNECTED, DISCONNECTED)
    assert far
    near = asking(client)
    server.command(CmCommand.REJECT, layouts.REJECT.pack(id=server.event().id))
    assert client.event().code is REJECTED
    datagrams = server.create(PortSpace.UDP)
    server.bind(datagrams, address(1, TCP_PORT))
    server.listen(datagrams)
    near = asking(client, PortSpace.UDP)
    server.accept(server.event().id)
    assert client.event().code is ESTABLISHED
    assert fabric.now.time == 0
    assert fabric.losses == (0 if kind in (CmMessage.MRA, CmMessage.LAP, CmMessage.APR) else 3)
