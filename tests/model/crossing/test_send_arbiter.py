"""What a host or an agent offers, and when it is taken (docs/pipeline.md, section 9)."""

import pytest

from model.crossing.matcher import Matcher
from model.crossing.send_arbiter import SendArbiter
from model.kernel import DECIDE, Kernel
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Post
from wire.trace import Kind

SMP = smp_packet(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=())).data
SLOT = 1
BLOCKS = 5
RETURN = 200
"""The cycle in which the first packet's blocks are free again."""


@pytest.mark.parametrize("offered_first", [False, True])
@pytest.mark.parametrize("late", [-1, 0, 1])
def test_a_packet_is_taken_as_soon_as_it_is_offered_and_has_room(late: int, offered_first: bool) -> None:
    kernel = Kernel()
    packets = []
    matcher = Matcher(kernel, 1, 1)
    matcher.join = lambda packet, cycle: None
    arbiter = SendArbiter(matcher, 0, [0, BLOCKS], 0, packets.append)

    def offer(cycle: int) -> None:
        arbiter.offer(SLOT, iter([Post(cycle, 0, SLOT, SMP)]))

    def release(_: None) -> None:
        arbiter.input.buffer.release(1, packets[0], RETURN - 1)

    offered = RETURN + late
    kernel.at(10, DECIDE, offer, 10)
    if offered_first:
        kernel.at(offered, DECIDE, offer, offered)
    kernel.at(RETURN - 2, DECIDE, release)
    if not offered_first:
        kernel.at(RETURN - 1, DECIDE, lambda _: kernel.at(offered, DECIDE, offer, offered))
    sent = [record.cycle for record in kernel.run(1000) if record.kind == Kind.SEND]
    assert sent == [11, max(offered, RETURN) + 1]
