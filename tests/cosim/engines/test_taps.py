"""What is seen at the taps of a run."""

from pathlib import Path

from cosim.engines import simulation
from cosim.engines.base import Taps
from cosim.engines.taps import InOrder, RowTaps
from cosim.stimulus.run_spec import RunSpec
from wire.framing import FramedPacket
from wire.packet import build_ud_send
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters
from wire.registers import PortRegister, port_address
from wire.stimulus import Control, Injection, Operation, Post, Trigger
from wire.symbols import frame_link_packet
from wire.trace import Delimiter

PAIR = FabricParameters(
    {"A": AdapterParameters(mtu=256), "B": AdapterParameters(mtu=256)}, (LinkParameters("A", 1, "B", 1, 3),)
)
BOTH = ((0, 0), (0, 1))


def packet(cycle: int) -> FramedPacket:
    return FramedPacket(cycle, False, bytes([cycle]), Delimiter.EGP)


def test_packets_of_several_taps_come_in_the_order_in_which_they_began() -> None:
    taken: list[tuple[int, int]] = []
    in_order = InOrder(Taps(take=lambda tap, one: taken.append((tap, one.cycle))))
    in_order.give([(0, packet(5)), (1, packet(3))], 4)
    assert taken == [(1, 3)]
    in_order.give([(1, packet(5)), (1, packet(9)), (0, packet(4))], 6)
    assert taken[1:] == [(0, 4), (0, 5), (1, 5)]
    in_order.end()
    assert taken[4:] == [(1, 9)]


def test_a_packet_that_has_not_ended_holds_back_those_that_began_later() -> None:
    taken: list[tuple[int, int]] = []
    taps = RowTaps(Taps(BOTH, lambda tap, one: taken.append((tap, one.cycle))))
    first, last = frame_link_packet(bytes(6))
    taps.rows([(3, first.data, 0, first.k), (4, first.data, 1, first.k), (5, last.data, 1, last.k)], 6)
    assert taken == []
    taps.rows([(7, last.data, 0, last.k)], 8)
    assert taken == [(0, 3), (1, 4)]


def spec() -> RunSpec:
    """Two hosts, one link, on which a bit of a packet flips, and which goes down under another."""
    controls = [
        Control(cycle, Operation.BUS_WRITE, node, (port_address(1, PortRegister.STATE), state, 0, 0))
        for cycle, node, state in ((100, 0, 3), (101, 1, 3), (300, 0, 4), (301, 1, 4))
    ]
    flip = Injection(Trigger.DATA, first=3, last=3, flip=1 << 9)
    controls += [
        Control(500, Operation.INJECT, 0, flip.args()),
        Control(640, Operation.LINK_DOWN, 0, (0, 0, 0, 0)),
    ]
    data = [
        build_ud_send(slid=1 + node, dlid=2 - node, dest_qp=5, src_qp=6, q_key=0, payload=bytes(200)).data
        for node in (0, 1)
    ]
    posts = [Post(500 + 10 * number, number % 2, 0, data[number % 2]) for number in range(6)]
    return RunSpec(PAIR, controls, posts, 900)


def seen(engine: str, folder: Path) -> list[tuple[int, FramedPacket]]:
    found: list[tuple[int, FramedPacket]] = []
    taps = Taps(BOTH, lambda tap, one: found.append((tap, one)))
    with simulation.run(engine, spec(), folder, taps=taps) as records:
        for _record in records:
            pass
    return found


def test_taps_of_the_hardware_see_what_those_of_the_model_see(tmp_path: Path) -> None:
    of_model = seen("model", tmp_path)
    assert {tap for tap, _packet in of_model} == {0, 1}
    assert [one.cycle for _tap, one in of_model] == sorted(one.cycle for _tap, one in of_model)
    assert sum(one.end is Delimiter.CUT for _tap, one in of_model) > 0
    assert sum(one.end is Delimiter.EGP and not one.is_link for _tap, one in of_model) > 1
    assert seen("amaranth", tmp_path) == of_model
