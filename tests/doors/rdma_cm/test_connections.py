"""Programs connect to each other by rdma_cm, refuse, and disconnect."""

import ctypes
import errno
import os

import pytest

from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from doors.uverbs.layouts import AH_ATTR
from tests.doors.cm_connections import (
    DISCONNECTED,
    ESTABLISHED,
    INIT,
    REJECTED,
    REQUEST,
    RESPONSE,
    RTR,
    RTS,
    UNREACHABLE,
    asking,
    attributes,
    connected,
    listening,
    refused,
)
from tests.doors.cm_programs import address
from wire.cm import CM_MAD, CmMessage
from wire.mad import MgmtClass
from wire.sma import SmaAttribute


def test_a_program_connects_to_another_ones_port(server, client):
    listens = listening(server)
    near = asking(client, private_data=b"hello", qp_num=0x22, responder_resources=4, initiator_depth=5)
    asked = server.event()
    assert (asked.code, asked.user) == (REQUEST, 100)
    assert asked.id not in (listens, 0)
    assert (asked.connection.qp_num, asked.private_data, asked.connection.private_data_len) == (0x22, b"hello", 56)
    # What the one sends the other takes.
    assert (asked.connection.responder_resources, asked.connection.initiator_depth) == (5, 4)
    server.accept(asked.id, b"welcome", qp_num=0x33, responder_resources=5, initiator_depth=4)
    answered = client.event()
    assert (answered.code, answered.id, answered.user) == (RESPONSE, near, 100)
    assert (answered.connection.qp_num, answered.private_data) == (0x33, b"welcome")
    client.confirm(near)
    up = server.event()
    assert (up.code, up.id, up.user) == (ESTABLISHED, asked.id, 200)


def test_both_queue_pairs_are_modified_for_each_other(server, client):
    far, near = connected(server, client)
    here, there = attributes(client, near, RTR), attributes(server, far, RTR)
    assert here.qp_attr_mask == there.qp_attr_mask == 0x129181
    assert (here.dest_qp_num, there.dest_qp_num) == (0x11, 0x11)
    assert (here.path_mtu, there.path_mtu) == (4, 4)
    assert [AH_ATTR.unpack(one.ah_attr).dlid for one in (here, there)] == [1, 2]
    sends = attributes(client, near, RTS)
    assert sends.qp_attr_mask == 0x12E01
    assert sends.sq_psn == there.rq_psn
    assert attributes(client, near, INIT).qp_attr_mask == 0x39
    with refused(errno.EINVAL):
        attributes(client, near, 6)


def test_a_queue_pair_that_is_not_connected_yet_gets_into_init(client):
    number = client.create()
    with refused(errno.EINVAL):
        attributes(client, number, INIT)
    client.resolve(number, address(1, 5))
    found = attributes(client, number, INIT)
    assert (found.qp_attr_mask, found.port_num, found.pkey_index, found.qp_access_flags) == (0x39, 1, 0, 0)
    with refused(errno.EINVAL):
        attributes(client, number, RTR)


@pytest.mark.parametrize("ender", ["client", "server"])
def test_either_may_disconnect_and_both_hear_of_it(fabric, server, client, ender):
    far, near = connected(server, client)
    program, number = (client, near) if ender == "client" else (server, far)
    program.command(CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=number))
    fabric.wait()
    assert client.events() == server.events() == [DISCONNECTED, CmEventCode.TIMEWAIT_EXIT]


def test_a_program_that_dies_disconnects(fabric, server, client):
    connected(server, client)
    client.device.close()
    fabric.wait()
    assert server.events() == [DISCONNECTED, CmEventCode.TIMEWAIT_EXIT]


def test_a_program_that_goes_while_it_is_asked_refuses(fabric, server, client):
    listening(server)
    asking(client)
    server.device.close()
    fabric.wait()
    assert client.events() == [REJECTED]


def test_what_a_program_asked_that_has_gone_cannot_be_accepted(fabric, server, client):
    listening(server)
    asking(client)
    client.device.close()
    fabric.wait()
    asked = server.event()
    with refused(errno.EINVAL):
        server.accept(asked.id)
    assert not server.device.has_news


def test_a_refusal_brings_its_reason_and_private_data(server, client):
    listening(server)
    near = asking(client)
    far = server.event().id
    body = layouts.REJECT.pack(id=far, private_data_len=4, private_data=b"busy")
    server.command(CmCommand.REJECT, body)
    refusal = client.event()
    assert (refusal.code, refusal.id, refusal.status, refusal.private_data) == (REJECTED, near, 28, b"busy")


def test_nobody_at_a_port_is_a_refusal(client):
    asking(client)
    refusal = client.event()
    assert (refusal.code, refusal.status) == (REJECTED, 8)


def test_a_host_that_does_not_answer_is_unreachable(fabric, server, client):
    listening(server)
    fabric.lose = lambda mad: mad[1] == MgmtClass.COMM_MGT
    near = asking(client)
    fabric.wait()
    told = client.event()
    assert (told.code, told.id, told.status) == (UNREACHABLE, near, -errno.ETIMEDOUT)


def test_a_message_on_the_queue_pair_makes_up_for_a_lost_confirmation(fabric, server, client):
    listening(server)
    near = asking(client)
    far = server.event().id
    server.accept(far)
    fabric.lose = lambda mad: CM_MAD["attribute_id"].read(mad) == CmMessage.RTU
    client.confirm(near)
    server.command(CmCommand.NOTIFY, layouts.NOTIFY.pack(id=far, event=4))
    assert server.event().code is ESTABLISHED
    with refused(errno.EINVAL):
        server.command(CmCommand.NOTIFY, layouts.NOTIFY.pack(id=far, event=1))


def test_a_host_that_does_not_know_its_adapter_yet_hears_nothing(fabric, client):
    (port,) = fabric.ports["H1"]
    guid = port.known.pop(SmaAttribute.NODE_INFO)
    asking(client)
    assert not client.device.has_news
    port.known[SmaAttribute.NODE_INFO] = guid
    fabric.wait()
    assert client.event().code is REJECTED


def test_a_program_may_choose_its_local_ack_timeout(server, client):
    _far, near = connected(server, client)
    assert attributes(client, near, RTS).timeout == 15
    code = ctypes.c_ubyte(9)
    body = layouts.SET_OPTION.pack(optval=ctypes.addressof(code), id=near, optname=3, optlen=1)
    client.command(CmCommand.SET_OPTION, body, process=os.getpid())
    assert attributes(client, near, RTS).timeout == 9
