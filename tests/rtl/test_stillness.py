"""What has nothing to do holds still: the less changes in a cycle, the sooner it is simulated.

In a switch with an adapter at one of its ports, Active and without packets, nothing moves but what is named here. A
change that lets something more rest takes its name out.
"""

from collections import Counter
from collections.abc import Iterator

from tests.rtl.switch.test_switch import make

CYCLES = 2000
"""Some ticks of every clock; the next flow control packets come later."""

WIRES = (
    "link_0_0",  # the cables of this bench
    "link_0_1",
)
NODE = (
    "phase",  # cycles modulo 4, when a 1X port sends
    "agent_port.receive.cycle",  # for records of the trace
)
ADAPTER = ("host_receive.cycle",)  # for records of the trace
SWITCH = (
    "life_time.following",  # the clock of time limits
    "life_time.tick",
    "life_time.tick_follows",
    "congestion_log.phase",  # the clock of TimeStamp
    "congestion_log.stamp",
)
OUTPUT = ("head_of_queue.tick_of",)  # what it has of that clock
PORT = (
    "transmitter.idle.state",  # idle data
    "transmit_trace.cycle",  # for records of the trace
    "xmit_wait.timer.place",  # ticks of PortXmitWait
    "xmit_wait.so_far",  # begins anew with each
)
ACTIVE_PORT = (
    *PORT,
    "flow_control.timer.place",  # FCP_PERIOD
    "watchdog.vl_0.place",  # FC_WATCHDOG
)
INPUT_OF_ACTIVE_PORT = (
    "route.tables.memory.read__data",  # a LID is looked up before its row is known to have one
)


def moving() -> Iterator[str]:
    parts = (
        ("", WIRES),
        ("switch.", NODE),
        ("switch.", SWITCH),
        ("switch.output_0.", OUTPUT),
        ("switch.output_1.", OUTPUT),
        ("switch.port_0.", ACTIVE_PORT),
        ("switch.input_0.", INPUT_OF_ACTIVE_PORT),
        ("switch.port_1.", PORT),  # polls: nothing is plugged in
        ("adapter_0.", NODE),
        ("adapter_0.", ADAPTER),
        ("adapter_0.port.", ACTIVE_PORT),
    )
    return (part + name for part, names in parts for name in names)


def test_what_has_nothing_to_do_holds_still() -> None:
    fabric = make(adapters=1)
    ready = fabric.bring_up(5)
    changes = fabric.changes(ready)
    fabric.run(ready + CYCLES)
    seen, named = Counter(changes), Counter(moving())
    unnamed, resting = seen - named, named - seen
    assert not unnamed
    assert not resting
