"""What a Subnet Manager reports, as lines to read."""

from collections import Counter

import pytest

from sm import events
from sm.credit_loops import Channel
from sm.subnet import End, EndPort, Link, Node
from wire.codes import PortState
from wire.mad import MadMethod
from wire.node_info import NodeType
from wire.sma import SmaAttribute

HOST, PORT = End(0x20, 1), End(0x30, 7)
LINK = Link(HOST, PORT)
NODE = Node(0x30, NodeType.SWITCH, 36, {0: EndPort(0x30)}, "leaf 3")
SMPS = Counter({(MadMethod.GET, SmaAttribute.NODE_INFO): 3, (MadMethod.SET, SmaAttribute.PORT_INFO): 2})


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (events.SweepStarted(False, "timer"), "light sweep: timer"),
        (events.SweepEnded(True, 900, SMPS, True), "heavy sweep took 5 SMPs and 900 cycles"),
        (events.SweepEnded(True, 900, SMPS, False), "heavy sweep took 5 SMPs and 900 cycles, to be continued"),
        (events.SweepEnded(False, 90, SMPS, True), "light sweep took 5 SMPs and 90 cycles"),
        (events.SweepEnded(False, 90, SMPS, False), "light sweep took 5 SMPs and 90 cycles, something has changed"),
        (events.NodeFound(NODE), 'found Switch 0x0000000000000030 "leaf 3", 36 ports'),
        (events.NodeFound(Node(0x20, NodeType.CA, 1, {})), "found CA 0x0000000000000020, 1 port"),
        (events.NodeLost(NODE), 'lost Switch 0x0000000000000030 "leaf 3"'),
        (events.LinkFound(LINK), "link 0x0000000000000020[1] to 0x0000000000000030[7]"),
        (events.LinkLost(LINK), "link 0x0000000000000020[1] to 0x0000000000000030[7] was lost"),
        (events.LinkLost(LINK, True), "link 0x0000000000000020[1] to 0x0000000000000030[7] was lost and is back"),
        (events.ClientsToldToReregister(1), "tells the clients of 1 port to register again"),
        (events.ClientsToldToReregister(3), "tells the clients of 3 ports to register again"),
        (events.LinkFlapping(LINK, 3), "link 0x0000000000000020[1] to 0x0000000000000030[7] flaps: lost 3 times"),
        (events.NodeLeftOut(PORT, "no answer"), "the node behind 0x0000000000000030[7] is left out: no answer"),
        (
            events.DuplicateGuid(0x20, PORT),
            "duplicate GUID 0x0000000000000020: the node behind 0x0000000000000030[7] is left out",
        ),
        (events.Unsettled("something changed"), "something changed"),
        (events.TablesWritten(0x30, (0, 2)), "switch 0x0000000000000030: wrote LFT blocks 0, 2"),
        (
            events.CreditLoopFound((Channel(HOST), Channel(PORT, 1))),
            "credit loop: 0x0000000000000020[1] -> 0x0000000000000030[7] VL 1",
        ),
        (events.PortStateSet(PORT, PortState.ARMED), "port 0x0000000000000030[7] is Armed"),
        (events.PortStuck(PORT, PortState.INITIALIZE), "port 0x0000000000000030[7] stays Initialize"),
        (
            events.PKeysLeftOut(HOST, (5, 0x8006), 3),
            "port 0x0000000000000020[1] goes without P_Keys 0x0005, 0x8006: its table has room for 3",
        ),
        (events.SetRefused("refused"), "refused"),
        (events.TrapReceived(128, 3), "trap 128 from LID 3"),
    ],
)
def test_an_event_is_a_line(event, line):
    assert str(event) == line
