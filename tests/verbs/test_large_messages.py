"""Messages up to 2^31 bytes, which nobody holds as a whole (IBTA vol 1, 9.7.1)."""

from tests.verbs.ends import ALL_ACCESS, End, connected
from verbs.work import MAX_MESSAGE_BYTES, ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.headers import RETH
from wire.opcodes import Opcode
from wire.packet import parse


class Endless:
    """Memory that has everything, and knows how much was asked for at once."""

    def __init__(self) -> None:
        self.most = 0

    def read(self, address: int, length: int) -> bytes:
        self.most = max(self.most, length)
        return address.to_bytes(8, "big") * (length // 8)

    def write(self, address: int, data: bytes) -> None:
        self.most = max(self.most, len(data))


def endless(end: End) -> tuple[Endless, ScatterGather]:
    memory = Endless()
    region = end.adapter.keys.register(end.pd, memory, 0, MAX_MESSAGE_BYTES, ALL_ACCESS)
    return memory, ScatterGather(0, MAX_MESSAGE_BYTES, region.key)


def test_a_read_of_2_31_bytes_takes_every_psn_that_may_be_outstanding() -> None:
    a, b = connected(psn=5)
    (_here, mine), (there, theirs) = endless(a), endless(b)
    b.receive(0, 64)
    a.qp.post_send(SendRequest(0, SendOpcode.RDMA_READ, [mine], r_key=theirs.l_key))
    a.send(0, 8)
    request = a.adapter.poll(0)
    assert parse(request.data).header(RETH).dma_len == 1 << 31
    assert a.adapter.poll(0) is None  # 2^23 packets of 256 bytes
    b.adapter.receive(request.data, 1)
    first = b.adapter.poll(1)
    assert parse(first.data).bth.opcode == Opcode.RC_RDMA_READ_RESPONSE_FIRST
    a.adapter.receive(first.data, 2)
    following = parse(a.adapter.poll(2).data)
    assert (following.bth.opcode, following.bth.psn) == (Opcode.RC_SEND_ONLY, 5 + (1 << 23))
    assert there.most == 256


def test_a_send_of_2_31_bytes_is_read_and_stored_a_packet_at_a_time() -> None:
    a, b = connected(path_mtu=2048)
    (here, mine), (there, theirs) = endless(a), endless(b)
    b.qp.post_receive(ReceiveRequest(0, [theirs]))
    a.qp.post_send(SendRequest(0, SendOpcode.SEND, [mine]))
    for now in range(100):
        b.adapter.receive(a.adapter.poll(now).data, now)
        while answer := b.adapter.poll(now):
            a.adapter.receive(answer.data, now)
    assert here.most == there.most == 2048
    assert not b.received()
