"""Datagram services are found, or refuse."""

import pytest

from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand
from doors.uverbs.layouts import AH_ATTR
from tests.doors.cm_connections import ESTABLISHED, INIT, REQUEST, UNREACHABLE, asking, attributes, listening
from wire.ip_cm import PortSpace


def test_a_datagram_service_is_found(server, client):
    listening(server, PortSpace.UDP)
    near = asking(client, PortSpace.UDP, private_data=b"who")
    asked = server.event()
    assert (asked.code, asked.datagrams.private_data.rstrip(b"\0")) == (REQUEST, b"who")
    server.accept(asked.id, b"here", qp_num=0x44)
    told = client.event()
    found = told.datagrams
    assert (told.code, told.id, found.qp_num, found.qkey) == (ESTABLISHED, near, 0x44, 0x0123_4567)
    assert found.private_data.rstrip(b"\0") == b"here"
    assert AH_ATTR.unpack(found.ah_attr).dlid == 1
    mine = attributes(client, near, INIT)
    assert (mine.qp_attr_mask, mine.qkey) == (0x71, 0x0123_4567)


def test_what_is_found_after_its_end_is_nobodys(server, client):
    listening(server, PortSpace.UDP)
    near = asking(client, PortSpace.UDP)
    client.destroy(near)
    server.accept(server.event().id)
    assert not client.device.has_news


@pytest.mark.parametrize("how", ["reject", "destroy", "nobody"])
def test_a_datagram_service_that_is_refused_is_unreachable(server, client, how):
    if how != "nobody":
        listening(server, PortSpace.UDP)
    asking(client, PortSpace.UDP)
    if how != "nobody":
        far = server.event().id
        if how == "reject":
            server.command(CmCommand.REJECT, layouts.REJECT.pack(id=far))
        server.destroy(far)
    told = client.event()
    assert (told.code, told.status) == (UNREACHABLE, 1 if how == "nobody" else 2)
