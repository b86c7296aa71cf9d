"""A Subnet Manager's MADs as packets on VL15: when they are posted, and which deliveries are handed over."""

from cosim.hosts.mad_carrier import REACTION_CYCLES, MadCarrier
from cosim.stimulus.actors import Replay
from sm.mad_client import MadAddress, MadClient
from sm.tasks import start
from wire.codes import LID_PERMISSIVE, QP_GSI, VL15
from wire.mad import MadMethod
from wire.mad_packet import gmp_of, gmp_packet, smp_of, smp_packet
from wire.packet import Packet, build_ud_send, parse
from wire.sa import SA_MAD, SaAttribute
from wire.sma import SmaAttribute
from wire.smp import smp_request, smp_response, unpack_smp
from wire.stimulus import Delivery, Post

NODE, SLOT, START = 3, 2, 500
FIRST = START + REACTION_CYCLES


class Host:
    """A carrier whose Subnet Manager asks for NodeInfo through ports 1 and 4, and ends with the answer."""

    def __init__(self, timeout: int = 1 << 16) -> None:
        self.mads = MadClient(timeout=timeout, retries=1)
        self.answers: list[bytes] = []
        self.carrier = MadCarrier(
            self.mads, NODE, SLOT, start=START, begin=lambda: start(self.ask()), ended=lambda: bool(self.answers)
        )

    async def ask(self) -> None:
        self.answers.append(await self.mads.get((1, 4), SmaAttribute.NODE_INFO))

    def posted_until(self, finished: int) -> list[Post]:
        return list(self.carrier.posts_until(self.carrier.until(finished)))

    def answer(self, cycle: int, post: Post, data: bytes) -> None:
        answer = smp_response(unpack_smp(smp_of(parse(post.data))), data)
        self.carrier.delivered(delivery(cycle, smp_packet(answer)))


def delivery(cycle: int, packet: Packet, node: int = NODE, slot: int = SLOT) -> Delivery:
    return Delivery(cycle, node, slot, packet.data)


def test_an_smp_is_posted_a_fixed_time_after_it_is_sent():
    host = Host()
    assert host.posted_until(0) == []
    (post,) = host.posted_until(START + 1)
    assert (post.cycle, post.node, post.slot) == (FIRST, NODE, SLOT)


def test_the_packet_is_the_one_that_goes_to_the_own_smi():
    host = Host()
    (post,) = host.posted_until(FIRST)
    packet = parse(post.data)
    smp = unpack_smp(smp_of(packet))
    assert (packet.lrh.vl, packet.lrh.slid, packet.lrh.dlid) == (VL15, LID_PERMISSIVE, LID_PERMISSIVE)
    assert packet.icrc_good
    assert (smp.hop_pointer, smp.hop_count, smp.method) == (0, 2, MadMethod.GET)


def test_the_fabric_never_runs_beyond_what_the_subnet_manager_may_still_post():
    host = Host()
    finished = 0
    for _step in range(20):
        reach = host.carrier.until(finished)
        assert reach >= finished
        # What is decided from now on is posted for a later cycle than any that was asked for.
        assert all(post.cycle <= reach for post in host.carrier.posts_until(reach))
        later = [post.cycle for post in host.carrier.posts if post.cycle > reach]
        assert all(cycle >= finished for cycle in later)
        finished = reach


def test_the_answer_is_handed_over_and_the_run_ends():
    host = Host()
    (post,) = host.posted_until(FIRST)
    host.answer(4_000, post, b"node info")
    assert host.answers == [b"node info".ljust(64, b"\0")]
    assert host.carrier.until(4_001) == 4_000 + REACTION_CYCLES
    assert host.carrier.until(4_000 + REACTION_CYCLES) == 4_000 + REACTION_CYCLES


def test_what_is_not_answered_is_posted_again():
    host = Host(timeout=10_000)
    posts = host.posted_until(FIRST) + host.posted_until(START + 10_001)
    assert [post.cycle for post in posts] == [FIRST, FIRST + 10_000]
    assert posts[0].data == posts[1].data


def test_only_smps_at_the_own_adapter_are_handed_over():
    host = Host()
    (post,) = host.posted_until(FIRST)
    answer = smp_packet(smp_response(unpack_smp(smp_of(parse(post.data))), b""))
    for other in (
        delivery(2_000, answer, node=NODE + 1),
        delivery(2_000, answer, slot=0),
        delivery(2_000, build_ud_send(slid=1, dlid=2, dest_qp=5, src_qp=5, q_key=0, payload=bytes(256), vl=VL15)),
        Delivery(2_000, NODE, SLOT, bytes.fromhex("f0020001 00040002") + bytes(8)),
    ):
        host.carrier.delivered(other)
    assert host.answers == []
    host.carrier.delivered(delivery(2_000, answer))
    assert len(host.answers) == 1


def test_a_request_for_the_host_is_no_answer():
    host = Host()
    host.posted_until(FIRST)
    request = smp_request(MadMethod.GET, SmaAttribute.SM_INFO, transaction_id=1)
    host.carrier.delivered(delivery(2_000, smp_packet(request, 5, 6)))
    assert host.answers == []


def test_a_replay_posts_the_same_and_stays_behind():
    host = Host()
    replay = Replay(host.carrier)
    assert replay.until(0) == 0
    host.carrier.until(0)
    assert replay.until(0) == host.carrier.reach
    (post,) = host.posted_until(FIRST)
    assert list(replay.posts_until(FIRST - 1)) == []
    assert list(replay.posts_until(FIRST)) == [post]
    assert list(replay.posts_until(FIRST)) == []
    replay.delivered(delivery(2_000, parse(post.data)))
    host.answer(2_000, post, b"")
    host.carrier.until(2_001)
    end = 2_000 + REACTION_CYCLES
    assert (replay.until(2_001), replay.until(end)) == (end, end)


def test_what_comes_to_qp1_goes_to_the_subnet_administrator_and_back_on_a_data_vl():
    host = Host()
    host.posted_until(FIRST)
    asked: list[MadAddress] = []

    def answer(mad: bytes, source: MadAddress) -> None:
        asked.append(source)
        host.mads.send(mad, source)

    host.mads.on_administration = answer
    query = SA_MAD.record(method=MadMethod.GET, attribute_id=SaAttribute.NODE_RECORD, transaction_id=4)
    host.carrier.delivered(delivery(2_000, gmp_packet(query, 5, 6, vl=1, sl=3), slot=1))
    assert asked == [MadAddress(5, 6, QP_GSI, 3)]
    (post,) = host.posted_until(2_000 + REACTION_CYCLES)
    packet = parse(post.data)
    assert gmp_of(packet) == query.pack()
    assert (post.slot, packet.lrh.vl, packet.lrh.sl) == (1, 1, 3), "SL 3 is VL 3 modulo 2"
    assert (packet.lrh.slid, packet.lrh.dlid) == (6, 5)
