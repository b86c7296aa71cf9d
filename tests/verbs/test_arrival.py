"""Which packets a queue pair looks at: P_Keys, Q_Keys, GRH, addresses (IBTA vol 1, 9.6.1)."""

import random
from collections.abc import Callable

import pytest

from tests.verbs.ends import LATENCY, End, Through, Wire, bring_up, connected, make_end, wire_between
from verbs.address import AddressVector, GlobalRoute
from verbs.completions import CompletionFlag
from verbs.port import Port, p_keys_match
from verbs.states import QpType
from verbs.work import SendOpcode
from wire.headers import BTH, GRH, LRH
from wire.packet import parse
from wire.stimulus import KeyViolation, WrongKey


def damaged(layout: object, start: int, name: str, value: int) -> Callable[[bytes], bytes]:
    return lambda data: layout[name].write(data, value, start)


@pytest.mark.parametrize(
    "change",
    [
        damaged(BTH, 8, "t_ver", 1),
        damaged(BTH, 8, "dest_qp", 0x1234),
        damaged(BTH, 8, "opcode", 0x24),
        damaged(BTH, 8, "opcode", 0x64),
        damaged(LRH, 0, "slid", 9),
        lambda data: data[:30],
        lambda data: b"",
    ],
    ids=["version", "queue pair", "UC", "UD", "SLID", "short", "empty"],
)
def test_what_is_for_another_is_dropped_in_silence(change: Callable[[bytes], bytes]) -> None:
    a, b = connected()
    b.receive(0, 64)
    a.send(0, 8)
    b.adapter.receive(change(a.adapter.poll(0).data), 1)
    assert b.adapter.poll(1) is None
    assert not b.received()
    assert b.adapter.dropped == 1
    assert b.adapter.ports[0].p_key_violations == 0


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        (0xFFFF, 0xFFFF, True),
        (0xFFFF, 0x7FFF, True),
        (0x7FFF, 0x7FFF, False),
        (0x8001, 0x8002, False),
        (0x0001, 0x8001, True),
        (0x8000, 0x8000, False),
        (0, 0, False),
    ],
)
def test_p_keys_match_if_one_is_a_full_members(one: int, other: int, match: bool) -> None:
    assert p_keys_match(one, other) is match


@pytest.mark.parametrize("kind", [QpType.RC, QpType.UC, QpType.UD])
def test_a_wrong_p_key_is_dropped_and_counted(kind: QpType) -> None:
    a, b = pair_of(kind)
    a.adapter.ports[0].p_keys[0] = 0x8001
    b.receive(0, 64)
    post(a, b)
    wire_between(a, b).run(10 * LATENCY)
    assert b.adapter.ports[0].p_key_violations >= 1
    source = a.qp.number if kind is QpType.UD else 0
    told = WrongKey(KeyViolation.P_KEY, 0x8001, slid=1, dlid=2, source_qp=source, dest_qp=b.qp.number)
    assert set(b.adapter.ports[0].untold) == {told}
    assert not b.received()


def pair_of(kind: QpType) -> tuple[End, End]:
    return connected(kind)


def post(a: End, b: End, q_key: int = 0x11, sl: int = 0, **more: object) -> None:
    handle = a.adapter.create_ah(a.pd, AddressVector(2, sl=sl))
    a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=q_key, **more)


def test_a_wrong_q_key_is_dropped_and_counted() -> None:
    a, b = connected(QpType.UD)
    b.receive(0, 64)
    post(a, b, 0x12, sl=3)
    wire_between(a, b).run()
    assert b.adapter.ports[0].q_key_violations == 1
    assert b.adapter.ports[0].p_key_violations == 0
    told = WrongKey(KeyViolation.Q_KEY, 0x12, 1, 2, 3, source_qp=a.qp.number, dest_qp=b.qp.number)
    assert list(b.adapter.ports[0].untold) == [told]
    assert not b.received()


def test_a_q_key_with_its_highest_bit_set_stands_for_the_queue_pairs_own() -> None:
    a, b = connected(QpType.UD)
    b.receive(0, 64)
    post(a, b, 0x8000_0000)
    wire_between(a, b).run()
    assert len(b.received()) == 1


def routed(kind: QpType) -> tuple[End, End]:
    """Two ends whose packets carry a GRH."""
    ends = make_end(1, kind), make_end(2, kind)
    for end, peer in (ends, ends[::-1]):
        port = peer.adapter.ports[0]
        bring_up(end, AddressVector(port.lid, route=GlobalRoute(port.gids[0], hop_limit=3)), peer.qp.number)
    return ends


def test_with_a_global_route_packets_carry_a_grh_in_both_directions() -> None:
    a, b = routed(QpType.RC)
    b.receive(0, 1024)
    a.send(0, 600)
    wire = wire_between(a, b)
    wire.run()
    assert len(b.received()) == 1
    assert len(a.sent()) == 1
    for packet in wire.packets():
        grh = packet.header(GRH)
        assert (grh.ip_ver, grh.nxt_hdr, grh.hop_lmt) == (6, 0x1B, 3)
        assert grh.pay_len == packet.lrh.pkt_len * 4 - 48
        assert packet.icrc_good
    assert wire.packets(0)[0].header(GRH).dgid == b.adapter.ports[0].gids[0]


@pytest.mark.parametrize("name", ["sgid", "dgid", "ip_ver", "nxt_hdr"])
def test_a_grh_that_is_not_of_the_path_is_dropped(name: str) -> None:
    a, b = routed(QpType.RC)
    b.receive(0, 64)
    a.send(0, 8)
    data = a.adapter.poll(0).data
    good = GRH[name].read(data, 8)
    b.adapter.receive(GRH[name].write(data, good ^ 1, 8), 1)
    assert b.adapter.poll(1) is None
    b.adapter.receive(data, 2)
    assert b.adapter.poll(2) is not None


def test_a_grh_is_needed_where_the_path_has_one_and_refused_where_it_has_none() -> None:
    (a, b), (c, d) = routed(QpType.RC), connected()
    for sender, receiver in ((a, d), (c, b)):
        receiver.receive(0, 64)
        sender.send(0, 8)
        receiver.adapter.receive(sender.adapter.poll(0).data, 1)
        assert receiver.adapter.poll(1) is None


def test_a_port_takes_packets_for_each_lid_that_it_has() -> None:
    a, b = make_end(4), make_end(8)
    for end in (a, b):
        end.adapter.ports[0].lmc = 2
    bring_up(a, AddressVector(8 + 1, src_path_bits=3), b.qp.number)
    bring_up(b, AddressVector(4 + 3, src_path_bits=1), a.qp.number)
    b.receive(0, 64)
    a.send(0, 8)
    wire = wire_between(a, b)
    wire.run()
    assert [(packet.lrh.slid, packet.lrh.dlid) for packet in wire.packets()] == [(7, 9), (9, 7)]
    assert len(a.sent()) == 1


@pytest.mark.parametrize("with_grh", [False, True])
def test_a_datagram_lies_behind_40_bytes_for_its_grh(with_grh: bool) -> None:
    a, b = connected(QpType.UD)
    a.put(0, b"datagram")
    b.put(0, b"?" * 64)
    b.receive(0, 64, wr_id=9)
    route = GlobalRoute(b.adapter.ports[0].gids[0]) if with_grh else None
    handle = a.adapter.create_ah(a.pd, AddressVector(2, sl=3, route=route))
    a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
    wire = wire_between(a, b)
    wire.run()
    [received] = b.received()
    assert (received.wr_id, received.byte_len, received.src_qp, received.slid, received.sl) == (
        9,
        48,
        a.qp.number,
        1,
        3,
    )
    assert b.get(40, 8) == b"datagram"
    assert bool(received.flags & CompletionFlag.GRH) is with_grh
    assert b.get(0, 40) == (parse(wire.log[0][1]).data[8:48] if with_grh else b"?" * 40)


def garbled(end: End, draw: random.Random) -> Through:
    """An end to which some packets come with bytes changed or missing."""

    def garble(data: bytes) -> bytes:
        if draw.random() >= 0.3:
            return data
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(data))] = draw.getrandbits(8)
        return bytes(changed[: draw.choice([len(data), draw.randrange(len(data))])])

    return Through(end.adapter, garble)


@pytest.mark.parametrize("kind", [QpType.RC, QpType.UC, QpType.UD])
def test_packets_with_random_bytes_changed_do_no_harm(kind: QpType) -> None:
    seed = 8
    print(f"seed {seed}")
    draw = random.Random(seed)
    dropped = 0
    for _ in range(20):
        a, b = connected(kind, retry_cnt=1, rnr_retry=1)
        for _ in range(4):
            b.receive(0, 1024)
            post(a, b)
            if kind is not QpType.UD:
                a.send(0, 600, SendOpcode.RDMA_WRITE_WITH_IMM, to=(b, 0))
            if kind is QpType.RC:
                a.send(0, 600, SendOpcode.RDMA_READ, to=(b, 0))
                a.send(0, 8, SendOpcode.ATOMIC_FETCH_AND_ADD, to=(b, 0))
        Wire(garbled(a, draw), garbled(b, draw)).run(1 << 26)
        dropped += a.adapter.dropped + b.adapter.dropped
    assert dropped


def test_a_packet_that_comes_by_another_port_than_its_queue_pairs_is_dropped() -> None:
    a, b = connected()
    b.adapter.ports = (*b.adapter.ports, Port(2))
    b.qp.pair.ports = b.adapter.ports
    b.receive(0, 64)
    a.send(0, 8)
    data = a.adapter.poll(0).data
    b.adapter.receive(data, 1, port=2)
    assert not b.received()
    b.adapter.receive(data, 1, port=1)
    assert len(b.received()) == 1


def test_a_datagram_for_a_gid_that_the_port_does_not_have_is_dropped() -> None:
    a, b = connected(QpType.UD)
    for dgid, arrives in ((b.adapter.ports[0].gids[0] ^ 1, 0), (b.adapter.ports[0].gids[0], 1)):
        b.receive(0, 64)
        handle = a.adapter.create_ah(a.pd, AddressVector(2, route=GlobalRoute(dgid)))
        a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
        b.adapter.receive(a.adapter.poll(0).data, 1)
        assert len(b.received()) == arrives


def test_a_port_has_all_lids_that_its_lmc_gives_it() -> None:
    port = Port(8, lmc=2)
    assert [lid for lid in range(32) if port.has_lid(lid)] == [8, 9, 10, 11]
    assert [port.path_bits(lid) for lid in (8, 11)] == [0, 3]
