"""Management asks an adapter about congestion control, and sets it (IBTA vol 1, A10.4)."""

import pytest

from tests.verbs.congestion_control.notices import cnp
from tests.verbs.congestion_control.settings import NS, UNIT, settings_with
from tests.verbs.ends import End, connected, make_end
from verbs.congestion_control.agent import CongestionAgent
from verbs.congestion_control.flows import Flows
from verbs.congestion_control.log import CongestionLog
from wire.congestion_control import (
    CA_CONGESTION_ENTRY,
    CA_CONGESTION_LOG,
    CA_CONGESTION_LOG_EVENT,
    CA_CONGESTION_SETTING,
    CC_CAPABILITIES,
    CC_CLASS_PORT_INFO,
    CC_DATA_BYTES,
    CC_MAD,
    CC_RESP_TIME,
    CCT_ENTRY,
    CONGESTION_CONTROL_TABLE,
    CONGESTION_INFO,
    CONGESTION_KEY_INFO,
    CONGESTION_TIME_STAMP,
    CcAttribute,
    CongestionInfo,
    LogType,
    cc_request,
)
from wire.headers import DETH
from wire.layout import Record
from wire.mad import MadMethod
from wire.mad_packet import gmp_of, gmp_packet
from wire.packet import parse

GET, SET = MadMethod.GET, MadMethod.SET
SECOND = 1_000_000_000 // NS
KEY = 0x1234


class Manager:
    """Asks an agent."""

    def __init__(self) -> None:
        self.flows = Flows(NS)
        self.log = CongestionLog()
        self.agent = CongestionAgent(self.flows, self.log, NS)
        self.now = 0

    def try_to(self, method: int, attribute: int, data: bytes = b"", **more: int) -> Record | None:
        request = cc_request(method, attribute, data, transaction_id=5, **more)
        answer = self.agent.answer(request.pack(), self.now, slid=9)
        return None if answer is None else CC_MAD.unpack(answer)

    def ask(self, method: int, attribute: int, data: bytes = b"", **more: int) -> Record:
        answer = self.try_to(method, attribute, data, **more)
        assert answer is not None
        assert (answer.method, answer.attribute_id, answer.transaction_id) == (MadMethod.GET_RESP, attribute, 5)
        return answer

    def key(self, **fields: int) -> None:
        cc_key = fields.pop("old", 0)
        self.ask(SET, CcAttribute.CONGESTION_KEY_INFO, CONGESTION_KEY_INFO.pack(**fields), cc_key=cc_key)

    def key_info(self, cc_key: int = 0) -> Record:
        return CONGESTION_KEY_INFO.unpack(data_of(self.ask(GET, CcAttribute.CONGESTION_KEY_INFO, cc_key=cc_key)))


def data_of(mad: Record) -> bytes:
    return mad.data.to_bytes(CC_DATA_BYTES, "big")


@pytest.fixture
def manager() -> Manager:
    return Manager()


def test_it_says_what_it_is_and_can_do(manager: Manager) -> None:
    info = CC_CLASS_PORT_INFO.unpack(data_of(manager.ask(GET, CcAttribute.CLASS_PORT_INFO)))
    assert (info.base_version, info.class_version, info.resp_time_value) == (1, 2, CC_RESP_TIME)
    assert info.capability_mask == CC_CAPABILITIES
    info = CONGESTION_INFO.unpack(data_of(manager.ask(GET, CcAttribute.CONGESTION_INFO)))
    assert info.congestion_info == CongestionInfo.QP_BASED | CongestionInfo.SL_BASED
    assert info.control_table_cap == 2


def test_where_traps_go_may_be_set_and_nothing_else_of_class_port_info(manager: Manager) -> None:
    everything = b"\xff" * CC_CLASS_PORT_INFO.size_bytes
    before = CC_CLASS_PORT_INFO.unpack(data_of(manager.ask(GET, CcAttribute.CLASS_PORT_INFO)))
    after = CC_CLASS_PORT_INFO.unpack(data_of(manager.ask(SET, CcAttribute.CLASS_PORT_INFO, everything)))
    changed = {name for name in dict(after) if after[name] != before[name]}
    assert changed == {"trap_sl", "trap_lid", "trap_p_key", "trap_qp", "trap_q_key"}
    assert all(before[name] == 0 for name in changed)
    assert (after.trap_sl, after.trap_lid, after.trap_p_key) == (0xF, 0xFFFF, 0xFFFF)
    assert (after.trap_qp, after.trap_q_key) == (0xFFFFFF, 0xFFFFFFFF)
    assert after == CC_CLASS_PORT_INFO.unpack(data_of(manager.ask(GET, CcAttribute.CLASS_PORT_INFO)))


def test_a_set_is_about_the_entries_of_its_map(manager: Manager) -> None:
    entry = CA_CONGESTION_ENTRY.to_int(ccti_timer=150, ccti_increase=2, trigger_threshold=9, ccti_min=1)
    entries = {f"entry{sl}": entry for sl in range(16)}
    data = CA_CONGESTION_SETTING.pack(port_control=1, control_map=0x8001, **entries)
    answer = manager.ask(SET, CcAttribute.CA_CONGESTION_SETTING, data)
    found = CA_CONGESTION_SETTING.unpack(data_of(answer))
    assert (answer.status, found.port_control, found.control_map) == (0, 1, 0x8001)
    assert [found[f"entry{sl}"] for sl in range(16)] == [entry, *[0] * 14, entry]
    assert answer.data == manager.ask(GET, CcAttribute.CA_CONGESTION_SETTING).data
    settings = manager.flows.settings
    assert settings.by_sl
    assert (settings.entries[15].ccti_timer, settings.entries[15].ccti_increase) == (150, 2)


def test_the_table_is_set_in_two_blocks(manager: Manager) -> None:
    for block in range(2):
        entries = {f"entry{place}": CCT_ENTRY.to_int(shift=block, multiplier=place) for place in range(64)}
        data = CONGESTION_CONTROL_TABLE.pack(ccti_limit=100, **entries)
        answer = manager.ask(SET, CcAttribute.CONGESTION_CONTROL_TABLE, data, modifier=block)
        assert (answer.status, data_of(answer).startswith(data)) == (0, True)
    table = manager.flows.settings.table
    assert (len(table), table[63].multiplier, table[64].shift, table[127].multiplier) == (128, 63, 1, 63)
    assert manager.flows.settings.ccti_limit == 100


def test_a_limit_beyond_the_table_is_refused_and_changes_nothing(manager: Manager) -> None:
    data = CONGESTION_CONTROL_TABLE.pack(ccti_limit=128, entry1=3)
    answer = manager.ask(SET, CcAttribute.CONGESTION_CONTROL_TABLE, data)
    assert (answer.status, answer.data) == (0x1C, 0)


@pytest.mark.parametrize(
    ("method", "attribute", "more", "status"),
    [
        (GET, CcAttribute.CONGESTION_INFO, {"modifier": 1}, 0x1C),
        (GET, CcAttribute.CONGESTION_CONTROL_TABLE, {"modifier": 2}, 0x1C),
        (SET, CcAttribute.CONGESTION_INFO, {}, 0x0C),
        (SET, CcAttribute.TIME_STAMP, {"modifier": 1}, 0x0C),
        (GET, CcAttribute.SWITCH_CONGESTION_SETTING, {}, 0x0C),
        (GET, CcAttribute.SWITCH_PORT_CONGESTION_SETTING, {}, 0x0C),
        (SET, CcAttribute.CLASS_PORT_INFO, {"modifier": 1}, 0x1C),
        (GET, CcAttribute.NOTICE, {}, 0x0C),
        (SET, CcAttribute.NOTICE, {}, 0x0C),
        (GET, 0x10, {}, 0x0C),
    ],
)
def test_what_it_does_not_have_it_refuses_with_the_data_as_they_came(
    manager: Manager, method: int, attribute: int, more: dict[str, int], status: int
) -> None:
    answer = manager.ask(method, attribute, b"\x5a" * 200, **more)
    assert (answer.status, data_of(answer)) == (status, b"\x5a" * 200 + bytes(24))


def test_another_version_of_the_class_is_refused_first(manager: Manager) -> None:
    request = cc_request(GET, 0x10, transaction_id=1).pack()
    answer = manager.agent.answer(request[:2] + b"\x01" + request[3:], 0, slid=9)
    assert answer is not None
    assert CC_MAD.unpack(answer).status == 0x04


def test_a_wrong_key_may_look_but_not_set_and_does_not_see_the_key(manager: Manager) -> None:
    manager.key(cc_key=KEY)
    assert (manager.key_info(KEY).cc_key, manager.key_info().cc_key) == (KEY, 0)
    assert manager.try_to(SET, CcAttribute.CONGESTION_CONTROL_TABLE, cc_key=KEY + 1) is None
    assert manager.key_info(KEY).violations == 1
    assert manager.ask(SET, CcAttribute.CONGESTION_CONTROL_TABLE, cc_key=KEY).cc_key == KEY


def test_a_protected_port_answers_nobody_without_its_key_until_the_lease_is_over(manager: Manager) -> None:
    manager.key(cc_key=KEY, protect_bit=1, lease_period=2)
    assert manager.try_to(GET, CcAttribute.TIME_STAMP) is None
    manager.now = 2 * SECOND - 1
    assert manager.try_to(GET, CcAttribute.TIME_STAMP) is None
    manager.now = 2 * SECOND
    assert manager.key_info().protect_bit == 0
    assert manager.key_info(KEY).violations == 2


def test_whoever_has_the_key_renews_the_lease_and_clears_violations(manager: Manager) -> None:
    manager.key(cc_key=KEY, protect_bit=1, lease_period=2)
    assert manager.try_to(GET, CcAttribute.TIME_STAMP) is None
    manager.key(old=KEY, cc_key=KEY, protect_bit=1, lease_period=2, violations=1)
    assert manager.key_info(KEY).violations == 1
    manager.key(old=KEY, cc_key=KEY, protect_bit=1, lease_period=2)
    assert manager.key_info(KEY).violations == 0
    manager.now = 5 * SECOND
    assert manager.try_to(GET, CcAttribute.TIME_STAMP) is None


def test_the_log_has_the_latest_event_first_and_counts_from_its_last_reading(manager: Manager) -> None:
    for number in range(15):
        manager.log.add(number % 2 * 3, local_qp=number, time_stamp=number)
    manager.now = 20 * UNIT
    log = CA_CONGESTION_LOG.unpack(data_of(manager.ask(GET, CcAttribute.CONGESTION_LOG)))
    assert (log.log_type, log.threshold_event_counter, log.current_time_stamp) == (LogType.CA, 15, 20)
    assert log.threshold_congestion_event_map == 1 << 0 | 1 << 3
    events = [CA_CONGESTION_LOG_EVENT.from_int(log[f"event{place}"]) for place in range(13)]
    assert [event.local_qp for event in events] == list(range(14, 1, -1))
    log = CA_CONGESTION_LOG.unpack(data_of(manager.ask(GET, CcAttribute.CONGESTION_LOG)))
    assert (log.threshold_event_counter, log.threshold_congestion_event_map) == (0, 0)
    assert CA_CONGESTION_LOG_EVENT.from_int(log.event0).local_qp == 14


def test_the_time_stamp_is_in_units_of_1024_ns(manager: Manager) -> None:
    manager.now = 7 * UNIT + UNIT - 1
    assert CONGESTION_TIME_STAMP.unpack(data_of(manager.ask(GET, CcAttribute.TIME_STAMP))).time_stamp == 7


def answered(end: End, data: bytes) -> bytes | None:
    end.adapter.receive(data, 9)
    outgoing = end.adapter.poll(9)
    return None if outgoing is None else outgoing.data


def test_an_adapter_answers_packets_to_qp1_the_way_they_came() -> None:
    end = make_end(2)
    mad = cc_request(GET, CcAttribute.CONGESTION_INFO, transaction_id=1)
    grh = {"sgid": 5, "dgid": 6, "hop_lmt": 1, "flow_label": 7}
    answer = answered(end, gmp_packet(mad, 1, 2, sl=3, p_key=0x8001, src_qp=9, grh=grh).data)
    assert answer is not None
    packet = parse(answer)
    assert packet.grh is not None
    assert (packet.lrh.slid, packet.lrh.dlid, packet.lrh.sl, packet.bth.p_key) == (2, 1, 3, 0x8001)
    assert (packet.bth.dest_qp, packet.header(DETH).src_qp) == (9, 1)
    assert (packet.grh.sgid, packet.grh.dgid, packet.grh.hop_lmt, packet.grh.flow_label) == (6, 5, 255, 7)
    assert packet.icrc_good


def test_other_mads_are_not_for_the_adapter() -> None:
    end = make_end(2)
    trap = cc_request(MadMethod.TRAP, CcAttribute.CONGESTION_INFO, transaction_id=1)
    assert answered(end, gmp_packet(trap, 1, 2).data) is None
    bad_key = gmp_packet(cc_request(GET, CcAttribute.CONGESTION_INFO, transaction_id=1), 1, 2)
    assert gmp_of(bad_key)
    assert answered(end, DETH["q_key"].write(bad_key.data, 1, 20)) is None
    assert end.adapter.dropped == 2


def test_a_threshold_that_is_reached_is_logged_with_both_ends() -> None:
    a, b = connected()
    control = a.adapter.congestion_control[0]
    control.set(settings_with(trigger_threshold=2), 0)
    for now in (0, 3 * UNIT, 4 * UNIT):
        a.adapter.receive(cnp(a), now)
    answer = control.agent.answer(cc_request(GET, CcAttribute.CONGESTION_LOG, transaction_id=1).pack(), 0, slid=9)
    assert answer is not None
    log = CA_CONGESTION_LOG.unpack(answer, 32)
    assert (log.threshold_event_counter, log.threshold_congestion_event_map) == (1, 1)
    event = CA_CONGESTION_LOG_EVENT.from_int(log.event0)
    assert (event.local_qp, event.remote_qp, event.local_lid, event.remote_lid) == (a.qp.number, b.qp.number, 1, 2)
    assert (event.sl, event.service_type, event.time_stamp) == (0, 0, 3)
