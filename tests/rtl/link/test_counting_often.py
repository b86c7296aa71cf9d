"""Counters of what comes as often as it can: nothing that waits for its turn at the adder is lost."""

import pytest

from tests.rtl.link.bench import ACTIVE_FROM, PortBench
from wire.codes import PortState
from wire.registers import Counter, Detail, PacketCounter, PortRegister
from wire.symbols import Control, Row

START = ACTIVE_FROM + 2
TIMES = 60

ROW_0 = Row(Control.SDP << 24 | 0x000200, 8)
LINK_ROW_0 = Row(Control.SLP << 24 | 0x123456, 8)
END, END_BAD = (Row(0x112233 << 8 | end, 1) for end in (Control.EGP, Control.EBP))
BAD_PACKET = Row(Control.SDP << 24 | Control.COM, 9)
VIOLATION = Row(0x00BC0000, 4)


def counted(counter: int, rows: list[Row], registers: dict[int, int] | None = None) -> int:
    """What a counter has after these rows, again and again."""
    port = PortBench()
    port.activate()
    for place, (register, value) in enumerate((registers or {}).items()):
        port.write(ACTIVE_FROM - 1 + place, register, value)
    port.watch, port.watch_from = counter, START + len(rows) * TIMES + 5
    port.receive(START, rows * TIMES)
    port.run(port.watch_from + 10)
    return port.last_watched()


@pytest.mark.parametrize(
    "counter",
    [
        Counter.RCV_PKTS,
        Counter.RCV_DATA,
        PacketCounter.UNICAST_RCV_PKTS,
        Counter.RCV_ERRORS,
        Detail.LOCAL_PHYSICAL_ERRORS,
    ],
)
def test_packets_of_two_rows(counter: int) -> None:
    assert counted(counter, [ROW_0, END]) == TIMES


def test_packets_marked_bad_of_two_rows() -> None:
    assert counted(Counter.RCV_REMOTE_PHYSICAL_ERRORS, [ROW_0, END_BAD]) == TIMES


def test_link_packets_without_a_right_crc() -> None:
    for counter in (Counter.RCV_ERRORS, Detail.LOCAL_PHYSICAL_ERRORS):
        assert counted(counter, [LINK_ROW_0, END]) == TIMES
    integrity = Counter.LOCAL_LINK_INTEGRITY_ERRORS
    assert counted(integrity, [LINK_ROW_0, END], {PortRegister.LOCAL_PHY_ERRORS: 0}) == 15


@pytest.mark.parametrize("counter", [Counter.RCV_ERRORS, Detail.LOCAL_PHYSICAL_ERRORS])
def test_a_packet_that_is_bad_from_its_start_behind_one_that_is_at_its_end(counter: int) -> None:
    """Two in neighbouring cycles, of three."""
    assert counted(counter, [ROW_0, END, BAD_PACKET]) == 2 * TIMES


def test_symbol_errors_in_every_cycle() -> None:
    assert counted(Counter.SYMBOL_ERROR, [VIOLATION]) == TIMES


def test_a_link_that_goes_down_again_and_again() -> None:
    """Down, Initialize, Down, each of a cycle."""
    port = PortBench()
    port.watch, port.watch_from = Counter.LINK_DOWNED, START + 2 * TIMES + 10
    for time in range(TIMES):
        port.at(START + 2 * time, up=0)
        port.at(START + 2 * time + 1, up=1)
    port.run(port.watch_from + 10)
    downs = [record for record in port.records if record.words[0] == PortState.DOWN]
    assert port.last_watched() == len(downs) >= TIMES - 1


def test_a_watchdog_of_one_cycle() -> None:
    port = PortBench()
    port.activate()
    port.write(START, PortRegister.FC_WATCHDOG, 1)  # visible two cycles later
    port.watch, port.watch_from = Counter.LINK_ERROR_RECOVERY, START + 100
    port.run(START + 110)
    cycles = range(port.watch_from + 2, port.watch_from + 5)
    assert [port.watched[cycle] for cycle in cycles] == [cycle - START - 2 for cycle in cycles]
