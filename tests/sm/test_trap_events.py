"""What a Subnet Manager reports of traps, as lines to read."""

import pytest

from sm.events import TrapReceived
from sm.trap_events import WrongKeyReported, trap_event
from wire.notice import ProducerType, TrapNumber, notice

PACKET = {"lid1": 1, "lid2": 4, "sl": 2}


@pytest.mark.parametrize(
    ("trap", "details", "text"),
    [
        (TrapNumber.BAD_M_KEY, {"lid": 5, "m_key": 0xABC}, "M_Key 0xabc in an SMP from LID 5"),
        (
            TrapNumber.BAD_P_KEY,
            {**PACKET, "key": 0x8010, "qp2": 0x12},
            "P_Key 0x8010 in a packet from LID 1 to LID 4 queue pair 0x000012",
        ),
        (
            TrapNumber.BAD_Q_KEY,
            {**PACKET, "key": 0x22, "qp1": 0x11, "qp2": 0x12},
            "Q_Key 0x00000022 in a packet from LID 1 queue pair 0x000011 to LID 4 queue pair 0x000012",
        ),
        (
            TrapNumber.BAD_P_KEY_AT_SWITCH,
            {**PACKET, "p_key": 0x10, "port": 7, "sw_lid": 3},
            "port 7 rejects P_Key 0x0010 in a packet from LID 1 to LID 4",
        ),
    ],
)
def test_a_trap_about_a_wrong_key_says_whose(trap, details, text):
    event = trap_event(notice(trap, ProducerType.CA, 3, **details))
    assert isinstance(event, WrongKeyReported)
    assert str(event) == f"hears by trap {trap} from LID 3: {text}"


def test_other_traps_are_told_by_their_numbers():
    assert trap_event(notice(TrapNumber.LINK_STATE_CHANGE, ProducerType.SWITCH, 3, lid=3)) == TrapReceived(128, 3)
