"""Notices carry the details of their trap."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.notice import NOTICE, NOTICE_DETAILS, NOTICE_TYPES, NoticeType, ProducerType, TrapNumber, details_of, notice


@pytest.mark.parametrize("trap", TrapNumber, ids=lambda trap: str(int(trap)))
@settings(max_examples=40)
@given(data=st.data())
def test_the_details_of_every_trap_come_back(trap, data):
    fields = {field.name: data.draw(st.integers(0, field.max)) for field in NOTICE_DETAILS[trap].fields}
    sent = notice(trap, ProducerType.SWITCH, 7, **fields)
    received = NOTICE.unpack(sent.pack())
    assert details_of(received) == fields
    assert (received.is_generic, received.trap_number, received.issuer_lid) == (1, trap, 7)
    assert received.notice_type == NOTICE_TYPES[trap]


def test_a_link_state_change_is_urgent_and_a_wrong_key_a_matter_of_security():
    assert notice(TrapNumber.LINK_STATE_CHANGE, ProducerType.SWITCH, 3, lid=3).pack()[:12] == bytes.fromhex(
        "81 000002 0080 0003 0000 0003"
    )
    assert NOTICE_TYPES[TrapNumber.BAD_M_KEY] is NoticeType.SECURITY
    assert set(NOTICE_TYPES) == set(NOTICE_DETAILS) == set(TrapNumber)


def test_details_of_a_vendor_or_of_another_trap_are_not_known():
    assert details_of(NOTICE.record(is_generic=0, trap_number=128)) is None
    assert details_of(NOTICE.record(trap_number=63)) is None


def test_a_detail_that_the_trap_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"Notice details, link state has no field 'port', it has lid"):
        notice(TrapNumber.LINK_STATE_CHANGE, ProducerType.SWITCH, 1, port=2)
