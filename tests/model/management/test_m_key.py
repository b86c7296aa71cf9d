"""M_Key and its lease (docs/management.md, section 4)."""

import pytest

from model.management.m_key import KeyCheck, check_key
from tests.agent_steps import cycles_to
from tests.model.management.agent_bench import ARRIVES, START, change, get
from wire.mad import MadMethod, mad_data
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute

KEY = 0x5EC0_0000_0000_0001
GET, SET, REPRESS = MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS
LEASE_SECOND = 1000


@pytest.mark.parametrize("protect_bits", range(4))
@pytest.mark.parametrize("method", [GET, SET, REPRESS])
def test_a_key_of_0_lets_everyone_in(method, protect_bits):
    assert check_key(method, 99, 0, protect_bits) == KeyCheck.GOOD


@pytest.mark.parametrize("protect_bits", range(4))
@pytest.mark.parametrize("method", [GET, SET, REPRESS])
def test_the_right_key_is_good(method, protect_bits):
    assert check_key(method, KEY, KEY, protect_bits) == KeyCheck.GOOD


@pytest.mark.parametrize(
    ("protect_bits", "what_a_get_is"),
    [
        (0, KeyCheck.ANSWERED),
        (1, KeyCheck.ANSWERED_WITHOUT_KEY),
        (2, KeyCheck.VIOLATION),
        (3, KeyCheck.VIOLATION),
    ],
)
def test_a_wrong_key(protect_bits, what_a_get_is):
    assert check_key(GET, 0, KEY, protect_bits) == what_a_get_is
    assert check_key(SET, 0, KEY, protect_bits) == KeyCheck.VIOLATION
    assert check_key(REPRESS, 0, KEY, protect_bits) == KeyCheck.VIOLATION


@pytest.fixture
def locked(switch):
    """A switch with a key that even Gets need, and a lease of 3 seconds."""
    switch.agent.lease_second = LEASE_SECOND
    switch.set_port_info(fields={"m_key": KEY, "m_key_protect_bits": 2, "m_key_lease_period": 3})
    switch.events.clear()
    return switch


def violate(bench, at):
    """A violation whose step 0 is in this cycle."""
    bench.ask(change(SmaAttribute.GUID_INFO, b"\xff" * 64), at - 4)


def test_a_violation_has_no_answer_and_frees_the_agent_after_16_steps(locked):
    now = locked.kernel.now
    locked.ask(change(SmaAttribute.GUID_INFO, b"\xff" * 64), now + ARRIVES)
    locked.run(now + 1000)
    assert locked.events == [(now + START + 16, "freed")]


def test_a_violation_changes_nothing(locked):
    violate(locked, locked.kernel.now + START)
    locked.run(locked.kernel.now + 1000)
    assert locked.carry_out(get(SmaAttribute.GUID_INFO, m_key=KEY)).data & 0xFFFF == 0


def test_violations_are_counted_and_a_set_of_0_clears_them(locked):
    for count in range(3):
        assert locked.port_info(m_key=KEY).m_key_violations == count
        assert locked.port_info(m_key=KEY ^ 1) is None
    locked.set_port_info(m_key=KEY, fields={"m_key_violations": 2})
    assert locked.port_info(m_key=KEY).m_key_violations == 3, "only 0 is written"
    locked.set_port_info(m_key=KEY, fields={"m_key_violations": 0})
    assert locked.port_info(m_key=KEY).m_key_violations == 0


@pytest.mark.parametrize(("late", "answered"), [(-1, False), (0, True)])
def test_the_lease_ends_so_many_seconds_after_the_violation(locked, late, answered):
    start = locked.kernel.now + START
    violate(locked, start)
    locked.ask(get(SmaAttribute.NODE_INFO), start + 3 * LEASE_SECOND + late - 4)
    locked.run(start + 5000)
    assert len(locked.of("offer")) == answered


def test_the_lease_is_as_long_as_it_was_when_it_began(locked):
    start = locked.kernel.now + START
    violate(locked, start)
    locked.run(start + 1)
    locked.agent.lease_second = 1
    locked.ask(get(SmaAttribute.NODE_INFO), start + 3 * LEASE_SECOND - 1 - 4)
    locked.run(start + 5000)
    assert not locked.of("offer")


def test_a_second_violation_does_not_start_the_lease_again(locked):
    start = locked.kernel.now + START
    violate(locked, start)
    violate(locked, start + 1500)
    locked.ask(get(SmaAttribute.NODE_INFO), start + 3 * LEASE_SECOND - 4)
    locked.run(start + 5000)
    assert len(locked.of("offer")) == 1


def test_the_test_bus_does_not_stop_the_lease(locked):
    start = locked.kernel.now + START
    violate(locked, start)
    locked.hold(range(start + 20, start + 2000))
    locked.ask(get(SmaAttribute.NODE_INFO), start + 3 * LEASE_SECOND - 4)
    locked.run(start + 5000)
    assert len(locked.of("offer")) == 1


@pytest.mark.parametrize(
    "smp",
    [
        get(SmaAttribute.NODE_INFO, m_key=KEY),
        get(SmaAttribute.NODE_INFO, m_key=KEY, method=REPRESS),
        get(SmaAttribute.NODE_INFO, m_key=KEY, class_version=9),
    ],
)
def test_an_smp_with_a_good_key_stops_the_lease(locked, smp):
    start = locked.kernel.now + START
    violate(locked, start)
    locked.ask(smp, start + 1000)
    locked.run(start + 5000)
    assert locked.port_info(m_key=0) is None


def test_a_wrong_key_that_is_answered_does_not_stop_the_lease(locked):
    locked.set_port_info({"m_key_protect_bits": 1}, m_key=KEY)
    start = locked.kernel.now + START
    violate(locked, start)
    locked.ask(get(SmaAttribute.NODE_INFO), start + 1000)
    locked.run(start + 5000)
    assert locked.port_info(m_key=KEY).m_key_protect_bits == 0


def test_a_lease_period_of_0_has_no_end(locked):
    locked.set_port_info({"m_key_lease_period": 0}, m_key=KEY)
    violate(locked, locked.kernel.now + START)
    locked.run(locked.kernel.now + 5000)
    assert locked.port_info(m_key=0) is None


@pytest.mark.parametrize(("late", "answered"), [(-1, False), (0, True)])
def test_a_lease_that_ended_may_begin_again(locked, late, answered):
    locked.agent.lease_second = 100
    for _ in range(2):
        locked.set_port_info({"m_key_protect_bits": 2}, m_key=KEY)
        locked.events.clear()
        start = locked.kernel.now + START
        violate(locked, start)
        locked.ask(get(SmaAttribute.NODE_INFO), start + 3 * 100 + late - 4)
        locked.run(start + 2000)
        assert len(locked.of("offer")) == answered


@pytest.mark.parametrize(("protect_bits", "shown"), [(0, KEY), (1, 0)])
def test_a_get_without_the_key_sees_it_only_unprotected(locked, protect_bits, shown):
    locked.set_port_info({"m_key_protect_bits": protect_bits}, m_key=KEY)
    assert locked.port_info(m_key=0).m_key == shown
    assert locked.port_info(m_key=KEY).m_key == KEY


def test_the_bits_in_an_answer_are_those_of_its_step_208(locked):
    steps = cycles_to(208, MadMethod.GET, SmaAttribute.PORT_INFO)
    for late, bits in ((0, 1), (1, 0)):
        locked.set_port_info({"m_key_protect_bits": 1}, m_key=KEY)
        now = locked.kernel.now
        violate(locked, now + START)
        expires = now + START + 3 * 100
        locked.agent.lease_second = 100
        locked.ask(get(SmaAttribute.PORT_INFO), expires - steps - 4 - (1 - late))
        locked.run(now + 2000)
        assert PORT_INFO.unpack(mad_data(locked.answer())).m_key_protect_bits == bits
