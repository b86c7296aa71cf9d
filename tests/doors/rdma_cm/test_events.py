"""Events: what a program has not looked at yet."""

import errno

from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from tests.doors.cm_connections import DISCONNECTED, REJECTED, REQUEST, asking, connected, listening, refused
from tests.doors.cm_programs import Program, address


def test_requests_beyond_the_backlog_are_refused(server, client):
    listening(server, backlog=2)
    for _ in range(3):
        asking(client)
    assert client.events() == [REJECTED]
    assert server.events() == [REQUEST] * 2
    asking(client)
    assert server.events() == [REQUEST]


def test_a_listener_that_goes_refuses_what_it_has_not_looked_at(server, client):
    number = listening(server)
    asking(client)
    assert server.destroy(number) == 0
    assert client.events() == [REJECTED]
    assert not server.device.has_news


def test_the_end_of_an_id_says_how_many_events_there_were(server, client):
    far, near = connected(server, client)
    assert client.destroy(near) == 3
    assert server.events() == [DISCONNECTED]
    assert server.destroy(far) == 2
    with refused(errno.ENOENT):
        server.destroy(far)


def test_events_follow_an_id_to_another_channel(fabric, server, client):
    far, near = connected(server, client)
    other = Program(fabric, 1)
    client.command(CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=near))
    body = layouts.MIGRATE_ID.pack(response=1, id=far, fd=3)
    back = other.command(CmCommand.MIGRATE_ID, body, 4)
    assert layouts.EVENTS_RESP.unpack(back).events_reported == 1
    assert not server.device.has_news
    assert other.event().code is DISCONNECTED
    fabric.wait()
    assert other.event().code is CmEventCode.TIMEWAIT_EXIT
    with refused(errno.EINVAL):
        server.destroy(far)
    assert other.destroy(far) == 3
    with refused(errno.EINVAL):
        Program(fabric, 1).command(CmCommand.MIGRATE_ID, layouts.MIGRATE_ID.pack(id=near), 4)


def test_an_answer_is_as_long_as_the_program_has_room_for(client):
    number = client.create()
    client.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=address(1, 5), id=number))
    back = client.command(CmCommand.GET_EVENT, layouts.GET_EVENT.pack(), layouts.EVENT_RESP.size - 12)
    assert len(back) == layouts.EVENT_RESP.size - 12


def test_an_event_is_waited_for_by_who_wants_to_wait(client):
    data = layouts.CMD_HDR.pack(command=CmCommand.GET_EVENT, out_bytes=336) + bytes(8)
    assert client.device.write(data, 1, no_wait=False) is None
