"""LocalLinkIntegrityErrors and ExcessiveBufferOverrunErrors."""

import pytest

from tests.rtl.link.bench import DECIDED, PortBench, data_rows, link_rows
from wire.codes import PortState
from wire.registers import Counter, PortRegister
from wire.symbols import Row
from wire.trace import Kind, Verdict


@pytest.mark.parametrize("threshold", [0, 2, 15])
def test_physical_errors_beyond_the_threshold_are_link_integrity_errors(threshold: int) -> None:
    port = PortBench()
    port.activate()
    port.watch = Counter.LOCAL_LINK_INTEGRITY_ERRORS
    port.write(9, PortRegister.LOCAL_PHY_ERRORS, threshold)
    good = data_rows()
    vcrc_error = [*good[:-1], Row(good[-1].data ^ 0x100, 1)]
    good_link = link_rows()
    lpcrc_error = [good_link[0], Row(good_link[1].data ^ 0x100, 1)]
    malformed = [good_link[0], good[2]]
    marked_bad = data_rows(good=False)
    cycle, errors = 12, []
    for index in range(40):
        rows = (vcrc_error, lpcrc_error, malformed, good, marked_bad, good_link)[index % 6]
        cycle = port.receive(cycle, rows)
        if index % 6 < 3:
            errors.append(cycle - 1)
    port.run(cycle + 5)
    exceeding = errors[threshold :: threshold + 1][:15]  # the counter has 4 bits
    assert port.counts(Counter.LOCAL_LINK_INTEGRITY_ERRORS) == [
        (ended + 3, count) for count, ended in enumerate(exceeding, 1)
    ]


@pytest.mark.parametrize("of_link", [False, True], ids=["data", "flow control"])
@pytest.mark.parametrize(("visible", "exceeded"), [(0, 1), (1, 0)])
def test_an_error_is_judged_by_the_threshold_that_is_visible_in_its_cycle(
    of_link: bool, visible: int, exceeded: int
) -> None:
    rows = link_rows() if of_link else data_rows()
    wrong = [*rows[:-1], Row(rows[-1].data ^ 0x100, 1)]

    def judged(written: int) -> PortBench:
        port = PortBench()
        port.activate()
        port.watch = Counter.LOCAL_LINK_INTEGRITY_ERRORS
        port.write(9, PortRegister.LOCAL_PHY_ERRORS, 15)
        port.write(written, PortRegister.LOCAL_PHY_ERRORS, 0)
        port.run(port.receive(14, wrong) + 12)
        return port

    kind = Kind.RX_FCP if of_link else Kind.RX_DATA
    in_trace = judged(11).of(kind)[-1].cycle
    assert len(judged(in_trace - 2 + visible).counts(Counter.LOCAL_LINK_INTEGRITY_ERRORS)) == exceeded


PERIOD = 40


def overruns(*cycles: int, threshold: int = 2, start: int = 22) -> PortBench:
    """A port whose periods start in `start`, with overruns in the trace in these cycles."""
    port = PortBench()
    port.activate()
    port.watch = Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS
    port.write(9, PortRegister.OVERRUN_ERRORS, threshold)
    port.write(start - 2, PortRegister.FCP_PERIOD, PERIOD)
    for cycle in cycles:
        c_0 = cycle - 12
        port.receive(c_0, data_rows())
        port.pulse(c_0 + 1 + DECIDED, relay=Verdict.OVERRUN, refused=1)
    return port


def test_overruns_in_so_many_periods_on_end_count() -> None:
    port = overruns(61, 101, 120, 142)  # periods 22..61, 62..101, 102..141, 142..181
    port.run(200)
    assert port.counts(Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS) == [(103, 1), (183, 2)]


def test_a_period_without_one_starts_the_count_again() -> None:
    port = overruns(61, 110, 190)
    port.run(240)
    assert port.counts(Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS) == []


def test_a_threshold_of_0_never_counts() -> None:
    port = overruns(30, 70, 110, threshold=0)
    port.run(200)
    assert port.counts(Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS) == []


@pytest.mark.parametrize(("given", "counted"), [(100, 0), (101, 1)])
def test_a_period_is_judged_by_the_limit_visible_in_the_cycle_in_which_the_next_begins(
    given: int, counted: int
) -> None:
    port = overruns(61, 101)  # a period begins at 102
    port.write(given, PortRegister.OVERRUN_ERRORS, 0)
    port.run(150)
    assert port.last_watched() == counted


def test_entering_initialize_starts_the_count_again() -> None:
    port = overruns(40, 100)
    port.write(65, PortRegister.STATE, PortState.DOWN)  # Initialize from 68: periods 68..107, 108..147
    port.write(72, PortRegister.STATE, PortState.ARMED)
    port.run(170)
    assert port.counts(Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS) == []
