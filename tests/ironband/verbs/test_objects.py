"""What objects say of themselves, and what devices, ports and memory answer when they are asked."""

import errno

import numpy
import pytest

from ironband.verbs import (
    CQEX,
    GID,
    GRH,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_READ,
    IBV_NODE_CA,
    IBV_QPS_ERR,
    IBV_QPS_SQD,
    IBV_QPT_RC,
    IBV_TRANSPORT_IB,
    IBV_WC_GRH,
    IBV_WC_RECV,
    IBV_WC_RETRY_EXC_ERR,
    MR,
    PD,
    AHAttr,
    AsyncEvent,
    Context,
    GlobalRoute,
    PyverbsRDMAError,
    QPAttr,
    QPCap,
    QPInitAttr,
    enums,
    get_device_list,
    ibv_event_type,
    utils,
)
from ironband.verbs.mem_alloc import (
    free,
    malloc,
    mmap,
    munmap,
    posix_memalign,
    read,
    read32,
    read64,
    write,
    writebe32,
    writebe64,
)
from ironband.verbs.process_memory import PAGE_BYTES
from tests.ironband.verbs.sides import connected, make_side

SUBNET_PREFIX = 0xFE80 << 48


def test_a_device_says_whose_it_is_and_what_it_can(star):
    device, _other = get_device_list()
    assert (device.node_type, device.transport_type, device.index) == (IBV_NODE_CA, IBV_TRANSPORT_IB, 0)
    assert str(device).startswith("Device H1, node type CA, transport type IB, guid 0x")
    with Context(name=device.name.decode()) as context:
        found = context.query_device_ex().orig_attr
        assert found == context.query_device()
        assert (found.node_guid, found.phys_port_cnt) == (device.guid, 1)
        assert found.max_res_rd_atom == found.max_qp * found.max_qp_rd_atom
        assert context.num_comp_vectors == 1


def test_a_port_has_its_tables(star):
    context = Context(star, "H2")
    entry = context.query_gid_ex(1, 0)
    assert entry.gid_subnet_prefix == SUBNET_PREFIX
    assert entry.gid_str() == context.query_gid(1, 0).gid == str(GID(entry.gid_str()))
    assert context.query_gid_table(8) == [entry]
    with pytest.raises(PyverbsRDMAError, match="max_entries 0, H2 has 1") as raised:
        context.query_gid_table(0)
    assert raised.value.error_code == -errno.EINVAL
    assert context.query_pkey(1, 0) == 0xFFFF
    assert context.get_pkey_index(1, 0xFFFF) == 0
    with pytest.raises(PyverbsRDMAError, match=r"P_Key index 1 at H2: allowed 0\.\.0"):
        context.query_pkey(1, 1)


def test_numbers_are_told_by_their_names():
    assert utils.qp_type_to_str(IBV_QPT_RC) == "RC"
    assert utils.qp_state_to_str(IBV_QPS_ERR) == "ERR"
    assert utils.qp_state_to_str(99) == "Invalid (99)"
    assert utils.cqe_status_to_str(IBV_WC_RETRY_EXC_ERR) == "RETRY_EXC_ERR"
    assert utils.cqe_opcode_to_str(IBV_WC_RECV) == "RECV"
    assert utils.cqe_flags_to_str(IBV_WC_GRH) == "IBV_WC_GRH"
    assert utils.cqe_flags_to_str(0) == "none"
    assert utils.access_flags_to_str(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ).split() == [
        "IBV_ACCESS_LOCAL_WRITE",
        "IBV_ACCESS_REMOTE_READ",
    ]
    assert (utils.mtu_to_str(4), utils.translate_mtu(5), utils.translate_mtu(9)) == (2048, "4096", "Invalid (9)")
    assert (utils.width_to_str(2), utils.speed_to_str(1), utils.phys_state_to_str(5)) == ("4X", "2.5 Gbps", "LinkUp")
    assert (utils.port_state_to_str(4), utils.translate_link_layer(1)) == ("ACTIVE", "InfiniBand")
    assert (utils.translate_node_type(1), utils.translate_transport_type(0)) == ("CA", "IB")
    assert (utils.translate_gid_type(0), utils.mig_state_to_str(0)) == ("IB", "MIGRATED")
    assert utils.translate_event_type(4) == "COMM_EST"
    assert utils.guid_format(0x1B00000001) == "0000:001b:0000:0001"
    assert utils.translate_device_caps(enums.IBV_DEVICE_XRC) == "IBV_DEVICE_XRC"
    assert utils.translate_port_cap_flags(enums.IBV_PORT_SM) == "IBV_PORT_SM"


def test_objects_are_told_line_by_line(star):
    one, two = connected(star)
    two.receive()
    one.send(b"x")
    told = [
        (one.qp, "QP type : RC"),
        (one.qp, "state : RTS"),
        (one.cq, "CQEs : 64"),
        (one.mr, f"lkey : {one.mr.lkey}"),
        (one.sge(0, 7), "Length : 7"),
        (two.completion(), "status : IBV_WC_SUCCESS"),
        (QPCap(max_send_wr=5), "max send wr : 5"),
        (QPAttr(), "timeout : 0"),
        (AHAttr(dlid=3), "dlid : 3"),
        (AHAttr(is_global=1, gr=GlobalRoute(hop_limit=9)), "hop limit : 9"),
        (GlobalRoute(flow_label=6), "flow label : 6"),
        (GRH(paylen=12), "paylen : 12"),
        (AsyncEvent(ibv_event_type.IBV_EVENT_COMM_EST), "Event Type : IBV_EVENT_COMM_EST"),
    ]
    for thing, line in told:
        assert line in [" ".join(text.split()) for text in str(thing).splitlines()]
    assert repr(star) == f"<fabric star on model at cycle {star.now:,}: hosts H1, H2>"


def test_what_is_of_a_global_route_is_none_without_one():
    local, far = AHAttr(), AHAttr(is_global=1, gr=GlobalRoute(GID(), 1, 2, 3, 4))
    names = ("dgid", "flow_label", "sgid_index", "hop_limit", "traffic_class")
    assert [getattr(local, name) for name in names] == [None] * 5
    assert [getattr(far, name) for name in names[1:]] == [1, 2, 3, 4]
    far.dgid = "fe80:0000:0000:0000:0000:0000:0000:0007"
    for number, name in enumerate(names[1:]):
        setattr(far, name, number + 10)
    assert (far.gr.dgid, far.gr.flow_label, far.gr.traffic_class) == (far.dgid, 10, 13)
    assert AHAttr.of(far.vector()).dgid == far.dgid


def test_memory_of_a_program_is_found_by_address():
    address = posix_memalign(16, 8192)
    assert address % 8192 == 0
    write(address, "abcdef", 4)
    writebe32(address, 0x01020304, 1)
    writebe64(address, 5, 1)
    assert read(address, 8) == b"abcd\1\2\3\4"
    assert (read32(address, 1), read64(address, 1)) == (0x04030201, 5 << 56)
    other = malloc(8)
    assert abs(other - address) >= PAGE_BYTES
    with pytest.raises(PyverbsRDMAError, match=r"17 bytes at .*: there is no such memory") as raised:
        read(address, 17)
    assert raised.value.error_code == errno.EFAULT
    free(other)
    munmap(mmap(length=64), 64)
    with pytest.raises(PyverbsRDMAError, match="no memory begins there"):
        free(other)
    free(address)


def test_an_array_in_pieces_is_no_region(star):
    numbers = numpy.zeros((4, 4), dtype=numpy.uint8)
    with pytest.raises(PyverbsRDMAError, match="is not in one piece, expected one that is"):
        MR(PD(Context(star, "H1")), 0, IBV_ACCESS_LOCAL_WRITE, address=numbers[:, 1])


def test_a_completion_that_was_not_polled_cannot_be_read(star):
    queue = CQEX(Context(star, "H1"))
    assert queue.start_poll() == errno.ENOENT
    with pytest.raises(PyverbsRDMAError, match="none was polled"):
        queue.read_opcode()
    assert queue.cqe == 100


def test_sizes_of_a_queue_pair_are_set_in_either_place():
    cap = QPCap(max_send_wr=3)
    attr = QPInitAttr(IBV_QPT_RC, cap=cap)
    attr.max_send_wr = 9
    assert (attr.cap.max_send_wr, attr.max_recv_wr, cap.max_send_wr) == (9, 10, 3)


def test_a_send_queue_drains_and_goes_on(star):
    one, two = connected(star)
    attr = QPAttr(IBV_QPS_SQD)
    attr.en_sqd_async_notify = 1
    two.receive()
    one.send(b"x")
    star.run(1)
    one.qp.modify(attr, enums.IBV_QP_STATE | enums.IBV_QP_EN_SQD_ASYNC_NOTIFY)
    assert one.context.get_async_event().event_type == ibv_event_type.IBV_EVENT_SQ_DRAINED
    assert two.completion().byte_len == 1
    one.qp.modify(QPAttr(enums.IBV_QPS_RTS), enums.IBV_QP_STATE)
    two.receive()
    one.send(b"on")
    assert two.completion().byte_len == 2


def test_a_queue_is_resized_while_it_is_used(star):
    side = make_side(star, "H1")
    side.cq.resize(5)
    assert side.cq.cqe == 5
    with pytest.raises(PyverbsRDMAError, match="Failed to resize CQ"):
        side.cq.resize(0)
