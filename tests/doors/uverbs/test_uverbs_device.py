"""An open verbs device, without a program: commands, what they are answered, and what is refused."""

import contextlib
import errno
import os
import resource
import struct
from typing import Any

import pytest

from doors.descriptors import MANY_SPARE
from doors.mads.umad_device import DeviceError
from doors.uverbs import layouts
from doors.uverbs.device import UverbsDevice
from doors.uverbs.layouts import EXTENDED, Verb
from tests.doors.verbs_client import (
    ACCESS_ERR,
    FLUSH,
    SUCCESS,
    UD,
    WRITE,
    Buffer,
    Program,
    carry,
    completion,
    completions,
    connected,
    fails,
    open_files,
    other_process,
    packed,
    read_events,
    receive_wqe,
    send_wqe,
)
from wire.sma import SmaAttribute


def test_events_of_a_channel_come_by_the_descriptor_that_the_program_has(programs, hosts):
    program = programs[1]
    channels = [program.channel(), program.channel()]
    here, there = connected(programs, channels[1])
    program.call(Verb.REQ_NOTIFY_CQ, layouts.REQ_NOTIFY_CQ, cq_handle=there.completions)
    for number in range(2):
        there.receives.put(receive_wqe(number))
        here.post(send_wqe(number, data=b""))
    carry(hosts)
    assert os.read(channels[1], 100) == (0x1234).to_bytes(8, "little"), "one event for one arming"
    os.set_blocking(channels[0], False)
    with pytest.raises(BlockingIOError):
        os.read(channels[0], 8)
    fails(errno.EINVAL, program.completions, channel=0)
    fails(errno.EBADF, program.completions, channel=10_000)


def test_events_that_were_not_read_are_taken_back_with_their_queue(programs):
    program = programs[0]
    domain = program.domain()
    channel = program.channel()
    completions, _ring = program.completions(channel=channel)
    pair, sends, _ = program.pair(domain, completions)
    program.connect(pair.qp_handle, 9, 9)
    program.call(Verb.REQ_NOTIFY_CQ, layouts.REQ_NOTIFY_CQ, cq_handle=completions)
    sends.put(send_wqe(1, data=b""))
    program.ring_bell(pair.qp_handle)
    program.modify(pair.qp_handle, 1, qp_state=6)
    program.call(Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, layouts.DESTROY_EVENTS_RESP, handle=pair.qp_handle)
    told, _ = program.call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, layouts.DESTROY_CQ_RESP, cq_handle=completions)
    assert told.comp_events_reported == 0
    os.set_blocking(channel, False)
    with pytest.raises(BlockingIOError):
        os.read(channel, 8)


def test_what_is_used_is_busy(programs):
    program = programs[0]
    domain = program.domain()
    completions, _ring = program.completions()
    pair, *_ = program.pair(domain, completions)
    fails(errno.EBUSY, program.destroy, Verb.DEALLOC_PD, domain)
    fails(errno.EBUSY, program.call, Verb.DESTROY_CQ, layouts.DESTROY_CQ, cq_handle=completions)
    program.call(Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, handle=pair.qp_handle)
    program.call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, cq_handle=completions)
    program.destroy(Verb.DEALLOC_PD, domain)


def test_a_region_is_registered_anew(programs):
    program = programs[0]
    domain, other = program.domain(), program.domain()
    memory = Buffer()
    region = program.region(domain, memory.address, 4096)
    answer, _ = program.call(
        Verb.REREG_MR,
        layouts.REREG_MR,
        layouts.REREG_MR_RESP,
        mr_handle=region.mr_handle,
        flags=7,
        start=memory.address + 1024,
        length=1024,
        hca_va=0,
        pd_handle=other,
        access_flags=1,
    )
    assert answer.lkey == region.lkey
    program.destroy(Verb.DEALLOC_PD, domain)
    fails(errno.EBUSY, program.destroy, Verb.DEALLOC_PD, other)
    fails(errno.EINVAL, program.call, Verb.REREG_MR, layouts.REREG_MR, mr_handle=region.mr_handle, flags=8)


def test_a_program_has_so_many_rings_and_no_more(programs):
    with contextlib.suppress(DeviceError):
        while True:
            body = layouts.CREATE_CQ.pack(response=1, cqe=1, comp_channel=-1)
            handle = layouts.CREATE_CQ_RESP.unpack(programs[0].write(packed(Verb.CREATE_CQ, body))).cq_handle
    assert handle > 4096
    fails(errno.ENOMEM, programs[0].completions)
    programs[1].completions()
    programs[0].call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, cq_handle=handle)
    programs[0].completions()


def test_a_program_that_opens_too_much_is_refused_more(programs):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(least := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (least + MANY_SPARE + 20, limits[1]))
    try:
        with contextlib.suppress(DeviceError):
            for _ in range(100):
                programs[0].channel()
        fails(errno.EMFILE, programs[0].channel)
        programs[1].domain()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_channels_that_a_program_has_closed_end(programs):
    program = programs[0]
    before = len(open_files())
    for _ in range(100):
        os.close(program.channel())
        program.descriptors.clear()
    assert len(open_files()) <= before + 1


def test_a_queue_pair_in_a_multicast_group_gets_what_comes_for_it(programs, hosts):
    program, group = programs[1], {"gid": bytes([0xFF, 0x12] + [7] * 14), "mlid": 0xC001}
    domain = program.domain()
    completions, done = program.completions()
    pair, _, receives = program.pair(domain, completions, UD)
    program.datagrams(pair.qp_handle)
    program.call(Verb.ATTACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)
    fails(errno.EBUSY, program.call, Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, handle=pair.qp_handle)
    fails(errno.EINVAL, program.call, Verb.ATTACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, mlid=1)
    memory = Buffer()
    region = program.region(domain, memory.address, 4096)
    receives.put(receive_wqe(5, (memory.address, 100, region.lkey)))

    sender = programs[0]
    completions, _ = sender.completions()
    source, sends, _ = sender.pair(domain := sender.domain(), completions, UD)
    sender.datagrams(source.qp_handle)
    route = layouts.AH_ATTR.pack(dgid=group["gid"], hop_limit=1, dlid=group["mlid"], is_global=1, port_num=1)
    to = struct.pack("=IIHHI", 0xFFFFFF, 0x11, 0, 0, sender.address(domain, route))
    sends.put(send_wqe(1, data=b"to all", operands=to))
    sender.ring_bell(source.qp_handle)
    carry(hosts)
    assert completion(done).wr_id == 5
    assert memory.bytes[40:46] == b"to all"
    program.call(Verb.DETACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)
    fails(errno.EINVAL, program.call, Verb.DETACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)
    program.call(Verb.ATTACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)


def test_a_process_whose_memory_cannot_be_reached_has_no_device(hosts):
    with other_process() as (process, _address):
        pass
    fails(errno.ENOENT, UverbsDevice, hosts["H1"], process.pid)
    assert not hosts["H1"].listeners


def test_a_queue_pair_is_as_it_was_modified(programs):
    pair = connected(programs)[0].pair
    answer, _ = programs[0].call(
        Verb.QUERY_QP, layouts.QUERY_QP, layouts.QUERY_QP_RESP, qp_handle=pair.qp_handle, attr_mask=(1 << 21) - 1
    )
    assert (answer.qp_state, answer.path_mtu, answer.timeout, answer.retry_cnt, answer.min_rnr_timer) == (
        3,
        4,
        14,
        1,
        1,
    )
    assert layouts.QP_DEST.unpack(answer.dest).dlid == 2
    assert answer.max_send_wr >= 8
    fails(errno.EINVAL, programs[0].modify, pair.qp_handle, 3, qp_state=3, cur_qp_state=1)
    fails(errno.EINVAL, programs[0].modify, pair.qp_handle, 1, qp_state=2)


PORT_ACTIVE, PORT_ERR, LID_CHANGE, PKEY_CHANGE, SM_CHANGE, CLIENT_REREGISTER, GID_CHANGE = 9, 10, 11, 12, 13, 17, 18


@pytest.mark.parametrize(
    ("attribute", "change", "events"),
    [
        (SmaAttribute.PORT_INFO, {"lid": 9, "port_state": 1}, [LID_CHANGE, PORT_ERR]),
        (SmaAttribute.PORT_INFO, {"master_sm_lid": 7}, [SM_CHANGE]),
        (SmaAttribute.PORT_INFO, {"gid_prefix": 1}, [GID_CHANGE]),
        (SmaAttribute.PORT_INFO, {"master_sm_lid": 7, "client_reregister": 1}, [SM_CHANGE, CLIENT_REREGISTER]),
        (SmaAttribute.P_KEY_TABLE, b"\x80\x01", [PKEY_CHANGE]),
        (SmaAttribute.GUID_INFO, b"\x02", [GID_CHANGE]),
    ],
)
def test_what_ports_become_is_told_to_every_program(programs, hosts, attribute, change, events):
    host = hosts["H1"]
    others = Program(host)
    ends = [programs[0].context(), others.context()]
    port = host.ports[0]
    before = port.known[attribute]
    port.known[attribute] = (
        port.info.replace(**change).pack() if isinstance(change, dict) else change + before[len(change) :]
    )
    host.update(port)
    for end in ends:
        assert [(one.element, one.event_type) for one in read_events(end)] == [(1, event) for event in events]
    port.known[attribute] = before
    host.update(port)
    back = [PORT_ACTIVE if event == PORT_ERR else event for event in events if event != CLIENT_REREGISTER]
    assert [one.event_type for one in read_events(ends[0])] == back
    others.close()


def test_a_program_that_is_gone_leaves_nothing_behind_and_its_peer_is_told(hosts):
    here, there = connected([Program(host) for host in hosts.values()])
    memory = Buffer()
    region = there.program.region(there.domain, memory.address, 4096)
    there.program.window(there.domain)
    here.post(send_wqe(1, opcode=WRITE, data=b"x", remote_addr=memory.address, rkey=region.rkey))
    there.program.close()
    carry(hosts, 100_000_000)
    assert completion(here.done).status == 12, "transport retry counter exceeded"
    here.program.close()
    for host in hosts.values():
        assert not host.owners
        assert not host.listeners


def test_commands_that_are_none_are_refused(programs):
    program = programs[0]
    fails(errno.EINVAL, program.write, b"")
    fails(errno.EINVAL, program.write, bytes(7))
    fails(errno.EOPNOTSUPP, program.write, packed(10, bytes(64)))
    fails(errno.EOPNOTSUPP, program.write, packed(EXTENDED | 50, bytes(64)))
    fails(errno.EINVAL, program.write, packed(Verb.EX_CREATE_CQ, b"")[:20])
    for verb in Verb:
        fails(errno.EINVAL, program.write, packed(verb, b"1"))


def test_queue_pairs_are_rc_uc_and_ud(programs):
    program = programs[0]
    domain, (queue, _) = program.domain(), program.completions()
    for kind in range(256):
        if kind in (2, 3, 4):
            program.pair(domain, queue, kind)
        else:
            fails(errno.EOPNOTSUPP, program.pair, domain, queue, kind)


def test_a_queue_pairs_events_that_were_not_read_are_taken_back_with_it(programs, hosts):
    events = programs[1].context()
    os.set_blocking(events, False)
    here, there = connected(programs)
    there.program.modify(there.pair.qp_handle, 1, qp_state=0)
    for is_read in (False, True):
        pair, *_ = there.program.pair(there.domain, there.completions)
        there.program.connect(pair.qp_handle, 1, here.pair.qpn)
        here.program.modify(here.pair.qp_handle, 1, qp_state=0)
        here.program.connect(here.pair.qp_handle, 2, pair.qpn)
        here.post(send_wqe(1, opcode=WRITE, data=b"x", remote_addr=1, rkey=0xBAD))
        carry(hosts)
        if is_read:
            event = layouts.ASYNC_EVENT_DESC.unpack(os.read(events, 4096))
            assert (event.element, event.event_type) == (0xDA, ACCESS_ERR)
        told, _ = there.program.call(
            Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, layouts.DESTROY_EVENTS_RESP, handle=pair.qp_handle
        )
        assert told.events_reported == is_read
        with pytest.raises(BlockingIOError):
            os.read(events, 16)


def test_a_region_is_of_memory_and_rights_that_there_are(programs):
    program = programs[0]
    domain = program.domain()
    fails(errno.EINVAL, program.region, domain, 1 << 63, 1 << 63 | 1)
    fails(errno.EINVAL, program.region, domain, 4096, 0)
    fails(errno.EINVAL, program.region, domain, 4096, 4096, 1 << 31)
    fails(errno.EINVAL, program.region, domain, 4096, 4096, 2)
    assert program.region(domain, 4096, 4096, 1 << 20 | 1).lkey


def test_a_shared_receive_queue_is_as_it_was_modified(programs):
    program = programs[0]
    domain = program.domain()
    made, receives = program.shared_receives(domain)
    for number in range(3):
        receives.put(receive_wqe(number))

    def modify(**fields: int) -> bytes:
        body = layouts.MODIFY_SRQ.pack(srq_handle=made.srq_handle, **fields)
        return program.write(packed(Verb.MODIFY_SRQ, body + layouts.RXE_MODIFY_SRQ_CMD.pack(mmap_info_addr=0x5000)))

    fails(errno.EINVAL, modify, attr_mask=1, max_wr=2)
    fails(errno.EINVAL, modify, attr_mask=2, srq_limit=9)
    fails(errno.EINVAL, modify, attr_mask=4)
    assert program.mapped(modify(attr_mask=3, max_wr=30, srq_limit=9)).produced == 3
    answer, _ = program.call(Verb.QUERY_SRQ, layouts.QUERY_SRQ, layouts.QUERY_SRQ_RESP, srq_handle=made.srq_handle)
    assert (answer.max_wr, answer.max_sge, answer.srq_limit) == (30, 1, 9)
    program.call(Verb.DESTROY_SRQ, layouts.DESTROY_WITH_EVENTS, layouts.DESTROY_EVENTS_RESP, handle=made.srq_handle)
    fails(errno.EINVAL, program.call, Verb.QUERY_SRQ, layouts.QUERY_SRQ, srq_handle=made.srq_handle)


def test_a_completion_queue_cannot_be_made_shorter_than_what_it_holds(programs):
    here, _ = connected(programs)
    for number in range(2):
        here.receives.put(receive_wqe(number))
    here.program.modify(here.pair.qp_handle, 1, qp_state=6)

    def resize(entries: int) -> Any:
        return here.program.call(
            Verb.RESIZE_CQ, layouts.RESIZE_CQ, layouts.RESIZE_CQ_RESP, cq_handle=here.completions, cqe=entries
        )

    fails(errno.EINVAL, resize, 0)
    fails(errno.EINVAL, resize, 1)
    fails(errno.EINVAL, resize, 1 << 31)
    answer, ring = resize(2)
    assert answer.cqe == 2
    assert completions(here.program.mapped(ring)) == [(0, FLUSH), (1, FLUSH)]


def test_a_channel_that_a_queue_tells_in_stays_though_the_program_has_closed_it(programs, hosts):
    program = programs[1]
    channel = program.channel()
    here, there = connected(programs, channel)
    program.call(Verb.REQ_NOTIFY_CQ, layouts.REQ_NOTIFY_CQ, cq_handle=there.completions)
    program.descriptors.remove(channel)
    os.close(channel)
    program.channel()
    there.receives.put(receive_wqe(1))
    here.post(send_wqe(1, data=b""))
    carry(hosts)
    assert completions(there.done) == [(1, SUCCESS)]
    program.call(Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, handle=there.pair.qp_handle)
    program.call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, cq_handle=there.completions)
    before = len(open_files())
    program.channel()
    assert len(open_files()) == before - 1 + 2, "with a new one, the old one ends"


@pytest.mark.parametrize("is_read", [False, True])
def test_what_queues_told_that_was_not_read_is_taken_back_with_them(programs, hosts, is_read):
    program = programs[1]
    events = program.context()
    here, there = connected(programs)
    handle, _ring = program.completions(entries=1, user=0xC9)
    shared, receives = program.shared_receives(there.domain, limit=4)
    pair, *_ = program.pair(there.domain, handle, is_srq=1, srq_handle=shared.srq_handle)
    program.connect(pair.qp_handle, 1, here.pair.qpn)
    here.program.modify(here.pair.qp_handle, 1, qp_state=0)
    here.program.connect(here.pair.qp_handle, 2, pair.qpn)
    for number in range(4):
        receives.put(receive_wqe(number))
    here.post(*(send_wqe(number, data=b"") for number in range(2)))
    carry(hosts)
    program.call(Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, handle=pair.qp_handle)
    if is_read:
        assert sorted(one.element for one in read_events(events)) == [0x5E, 0xC9], "SRQ_LIMIT_REACHED, CQ_ERR"
    told, _ = program.call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, layouts.DESTROY_CQ_RESP, cq_handle=handle)
    assert (told.comp_events_reported, told.async_events_reported) == (0, is_read)
    told, _ = program.call(
        Verb.DESTROY_SRQ, layouts.DESTROY_WITH_EVENTS, layouts.DESTROY_EVENTS_RESP, handle=shared.srq_handle
    )
    assert told.events_reported == is_read
    os.set_blocking(events, False)
    with pytest.raises(BlockingIOError):
        os.read(events, 16)


def test_answers_are_as_long_as_there_is_room(programs):
    program = programs[0]
    everything = program.write(packed(Verb.QUERY_DEVICE, layouts.QUERY_DEVICE.pack(response=1)))
    assert len(everything) == layouts.QUERY_DEVICE_RESP.size
    device = layouts.QUERY_DEVICE_RESP.unpack(everything)
    assert (device.vendor_id, device.phys_port_cnt, device.max_cqe) == (0xFFFFFF, 1, 4194303)
    assert (device.max_qp_wr, device.max_pkeys, device.node_guid[-3:]) == (16383, 32, b"\x10\0\2")
    assert program.write(packed(Verb.QUERY_DEVICE, layouts.QUERY_DEVICE.pack(response=1), 10)) == everything[:40]
    extended = program.write(packed(Verb.EX_QUERY_DEVICE, layouts.EX_QUERY_DEVICE.pack(), 2 * 22))
    assert extended == everything


def test_a_port_is_as_management_has_it(programs, hosts):
    def query(number: int) -> Any:
        return programs[1].call(Verb.QUERY_PORT, layouts.QUERY_PORT, layouts.QUERY_PORT_RESP, port_num=number)[0]

    port = query(1)
    assert (port.lid, port.state, port.active_mtu, port.gid_tbl_len, port.pkey_tbl_len) == (2, 4, 4, 8, 32)
    fails(errno.EINVAL, query, 0)
    fails(errno.EINVAL, query, 2)
    (known,) = hosts["H2"].ports
    known.known[SmaAttribute.PORT_INFO] = known.info.replace(guid_cap=3).pack()
    assert query(1).gid_tbl_len == 3
