"""A switch's agent of congestion control: what it answers, to whom, in which steps (docs/management.md, section 7)."""

import pytest

from model.kernel import UPDATE
from tests.agent_steps import CC_WORDS, of_cc_request
from tests.model.management.agent_bench import ADAPTER, ARRIVES, START, SWITCH, Bench
from wire.congestion_control import (
    CC_ATTRIBUTES,
    CC_MAD,
    CONGESTION_KEY_INFO,
    CONGESTION_LOG,
    SWITCH_CONGESTION_SETTING,
    CcAttribute,
    cc_request,
)
from wire.crc import icrc_good
from wire.headers import BTH, DETH
from wire.mad import GET, MadMethod, MadStatus, mad_data
from wire.mad_packet import gmp_packet
from wire.packet import parse
from wire.parameters import SwitchParameters
from wire.registers import PortRegister, congestion_address, lft_address, port_address
from wire.stimulus import Post

A = CcAttribute
SLID, DLID = 9, 7
KEY = 0xCC00_0000_0000_0001
OF_SWITCH = list(CC_WORDS)
SETTABLE = [
    A.CLASS_PORT_INFO,
    A.CONGESTION_KEY_INFO,
    A.SWITCH_CONGESTION_SETTING,
    A.SWITCH_PORT_CONGESTION_SETTING,
]
WILD = bytes(range(1, 225))
LEASE_SECOND = 1000


def switch_of_requests(parameters=SWITCH):
    """A switch with LID 9 behind port 2."""
    bench = Bench(parameters)
    bench.registers[lft_address(SLID)] = 2
    bench.agent.lease_second = LEASE_SECOND
    return bench


@pytest.fixture
def switch():
    return switch_of_requests()


def request(method, attribute, data=b"", **fields):
    return cc_request(method, attribute, data, transaction_id=0xABCD).replace(**fields)


def ask(bench, mad, at=ARRIVES, **where):
    """The answer; None if there is none."""
    before = len(bench.of("offer"))
    bench.ask_perf(mad, at, slid=SLID, dlid=DLID, **where)
    bench.run(at + 2_000)
    return bench.perf_answer() if len(bench.of("offer")) > before else None


def accesses(bench, what):
    """(step, address, ...), without the look at the LFT."""
    numbers = of_cc_request(bench.asked.method, bench.asked.attribute_id)
    events = [(numbers[cycle - START], *rest) for cycle, *rest in bench.of(what)]
    return [event for event in events if event[1] != lft_address(SLID)]


def address(attribute, word, block=0):
    """Where a word is, or nowhere."""
    if attribute != A.SWITCH_PORT_CONGESTION_SETTING:
        return congestion_address(attribute, word)
    port = 32 * block + word - 8
    return port_address(port, PortRegister.CONGESTION) if 1 <= port <= SWITCH.ports else None


def words(data):
    return [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]


# What every answer is.


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("attribute", [*A, 0, 0xFFFF])
def test_an_answer_is_offered_after_its_steps(switch, method, attribute):
    answer = ask(switch, request(method, attribute))
    offered, output, data, slot = switch.of("offer")[0]
    assert (offered, output, slot) == (START + len(of_cc_request(method, attribute)), 1, 0)
    assert icrc_good(data)
    assert (answer.method, answer.transaction_id, answer.attribute_id) == (0x81, 0xABCD, attribute)


def test_an_answer_goes_from_qp_1_to_where_the_request_came_from(switch):
    ask(switch, request(MadMethod.GET, A.TIME_STAMP), sl=5, src_qp=0x7654)
    packet = parse(switch.of("offer")[0][2])
    assert (packet.lrh.slid, packet.lrh.dlid, packet.lrh.sl) == (DLID, SLID, 5)
    assert (packet.bth.dest_qp, packet.header(DETH).src_qp) == (0x7654, 1)


def test_a_request_with_a_grh_has_an_answer_with_one(switch):
    grh = {"ip_ver": 6, "nxt_hdr": 0x1B, "sgid": 1, "dgid": 2}
    ask(switch, request(MadMethod.GET, A.CONGESTION_INFO), grh=grh)
    data = switch.of("offer")[0][2]
    packet = parse(data)
    assert (packet.grh.sgid, packet.grh.dgid, packet.grh.hop_lmt) == (2, 1, 255)
    assert (BTH.unpack(data, 48).dest_qp, CC_MAD.unpack(packet.payload).method) == (1, 0x81)


def test_an_adapters_agent_drops_it():
    bench = Bench(ADAPTER)
    bench.ask_perf(request(MadMethod.GET, A.CONGESTION_INFO))
    bench.run()
    assert [event[:2] for event in bench.events] == [(START, "freed")]


@pytest.mark.parametrize("method", [MadMethod.SEND, MadMethod.TRAP, MadMethod.GET_RESP])
def test_of_other_methods_nothing_is_answered(switch, method):
    assert ask(switch, request(method, A.CONGESTION_INFO)) is None
    assert [event[:2] for event in switch.events] == [(START, "freed")]


# Windows.


@pytest.mark.parametrize("attribute", OF_SWITCH)
def test_a_get_reads_every_word_in_its_slot(switch, attribute):
    places = {word: address(attribute, word) for word in CC_WORDS[attribute]}
    known = {word: place for word, place in places.items() if place is not None}
    switch.registers.update({place: 0xA000_0000 | word for word, place in known.items()})
    answer = ask(switch, request(MadMethod.GET, attribute, WILD))
    assert answer.status == 0
    assert accesses(switch, "read") == [(1024 + 8 * word, place) for word, place in known.items()]
    assert not accesses(switch, "write")
    assert words(mad_data(answer)) == [0xA000_0000 | word if word in known else 0 for word in range(56)]


@pytest.mark.parametrize("attribute", SETTABLE)
def test_a_set_writes_every_word_and_answers_what_it_reads_then(switch, attribute):
    answer = ask(switch, request(MadMethod.SET, attribute, WILD))
    places = {word: place for word in CC_WORDS[attribute] if (place := address(attribute, word)) is not None}
    written = [(512 + 8 * word + 2, place, words(WILD)[word]) for word, place in places.items()]
    assert accesses(switch, "write") == written
    assert accesses(switch, "read") == [(1024 + 8 * word, place) for word, place in places.items()]
    assert words(mad_data(answer)) == [words(WILD)[word] if word in places else 0 for word in range(56)]


@pytest.mark.parametrize(("ports", "block", "first", "last"), [(40, 0, 1, 31), (40, 1, 32, 40), (64, 2, 64, 64)])
def test_a_block_has_32_ports(ports, block, first, last):
    bench = switch_of_requests(SwitchParameters(ports=ports, lft_size=100))
    ask(bench, request(MadMethod.GET, A.SWITCH_PORT_CONGESTION_SETTING, attribute_modifier=block))
    read = {place for _, place in accesses(bench, "read")}
    assert read == {port_address(port, PortRegister.CONGESTION) for port in range(first, last + 1)}


# Status.


def refused(bench, mad, status):
    """Nothing is read or written, so no log is cleared, and the data are those of the request."""
    answer = ask(bench, mad)
    assert (answer.status, mad_data(answer)) == (status, mad_data(mad))
    assert not accesses(bench, "write")
    assert not accesses(bench, "read")
    assert bench.of("offer")[0][0] == START + len(of_cc_request(mad.method, mad.attribute_id))


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("version", [0, 1, 3])
def test_the_class_version_is_2(switch, method, version):
    mad = request(method, A.CONGESTION_LOG, WILD, class_version=version, attribute_modifier=1)
    refused(switch, mad, MadStatus.BAD_VERSION)


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("attribute", [0, A.CA_CONGESTION_SETTING, A.CONGESTION_CONTROL_TABLE, 0x19, 0x0111])
def test_a_switch_has_no_other_attributes(switch, method, attribute):
    refused(switch, request(method, attribute, WILD), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


@pytest.mark.parametrize("attribute", [code for code in OF_SWITCH if CC_ATTRIBUTES[code].methods == GET])
def test_these_cannot_be_set(switch, attribute):
    assert attribute not in SETTABLE
    refused(switch, request(MadMethod.SET, attribute, WILD), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("attribute", OF_SWITCH)
def test_a_modifier_is_a_block_of_ports_that_there_are_or_0(switch, method, attribute):
    mad = request(method, attribute, WILD, attribute_modifier=1)
    is_set_of_other = method == MadMethod.SET and attribute not in SETTABLE
    status = MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED if is_set_of_other else MadStatus.INVALID_ATTRIBUTE_VALUE
    refused(switch, mad, status)


# CC_Key.


def lock(bench, *, protect=1, lease=0):
    """The key is another than 0 then, and all that goes with it."""
    data = CONGESTION_KEY_INFO.pack(cc_key=KEY, protect_bit=protect, lease_period=lease)
    for word in range(8, 12):
        bench.agent.cc_key.write(word, int.from_bytes(data[4 * word : 4 * word + 4].ljust(4, b"\0"), "big"))
    return bench


def key_info(bench):
    return CONGESTION_KEY_INFO.unpack(b"".join(bench.agent.cc_key.read(word).to_bytes(4, "big") for word in range(12)))


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("given", [0, 1, KEY])
def test_a_key_of_0_lets_everyone_in(switch, method, given):
    assert ask(switch, request(method, A.SWITCH_CONGESTION_SETTING, cc_key=given)).cc_key == given


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
def test_the_right_key_is_good_and_stays_in_the_answer(switch, method):
    answer = ask(lock(switch), request(method, A.SWITCH_CONGESTION_SETTING, cc_key=KEY))
    assert (answer.status, answer.cc_key) == (0, KEY)
    assert key_info(switch).violations == 0


@pytest.mark.parametrize(
    "mad",
    [
        request(MadMethod.GET, A.CONGESTION_INFO),
        request(MadMethod.SET, A.SWITCH_CONGESTION_SETTING, cc_key=1),
        request(MadMethod.GET, 0, class_version=1),
    ],
)
def test_a_violation_has_no_answer_whatever_was_asked(switch, mad):
    assert ask(lock(switch), mad) is None
    assert [event for event in switch.events if event[1] != "read"] == [(START + 16, "freed")]
    assert key_info(switch).violations == 1


def test_without_protection_a_get_is_answered_and_a_set_is_not(switch):
    lock(switch, protect=0)
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)).status == 0
    assert key_info(switch).violations == 0
    assert ask(switch, request(MadMethod.SET, A.SWITCH_CONGESTION_SETTING), 5_000) is None
    assert key_info(switch).violations == 1


@pytest.mark.parametrize("given", [1, KEY])
def test_the_key_is_shown_to_those_who_have_it(switch, given):
    lock(switch, protect=0)
    switch.registers.update({congestion_address(A.CONGESTION_KEY_INFO, word): 0xFFFF_FFFF for word in range(8, 12)})
    answer = ask(switch, request(MadMethod.GET, A.CONGESTION_KEY_INFO, cc_key=given))
    shown = 0 if given == 1 else 0xFFFF_FFFF
    assert words(mad_data(answer))[8:12] == [shown, shown, 0xFFFF_FFFF, 0xFFFF_FFFF]


def test_violations_stop_at_all_ones(switch):
    lock(switch)
    switch.agent.cc_key.record = key_info(switch).replace(violations=0xFFFF)
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)) is None
    assert key_info(switch).violations == 0xFFFF


def test_protection_ends_with_the_lease(switch):
    """It begins with the first violation; a second one does not prolong it."""
    lock(switch, lease=3)
    expires = START + 3 * LEASE_SECOND
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)) is None
    switch.ask_perf(request(MadMethod.GET, A.CONGESTION_INFO), expires - 500, slid=SLID, dlid=DLID)
    switch.run(expires)
    assert not switch.of("offer")
    assert key_info(switch).violations == 2
    assert key_info(switch).protect_bit == 1
    switch.run(expires + 1)
    assert key_info(switch) == key_info(switch).replace(protect_bit=0, cc_key=KEY, violations=2)


@pytest.mark.parametrize(("late", "protect"), [(-1, 0), (0, 0), (1, 1)])
def test_what_is_written_when_the_lease_ends_does_not_outlive_it(switch, late, protect):
    lock(switch, lease=3)
    expires = START + 3 * LEASE_SECOND
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)) is None
    switch.at(expires + late, UPDATE, lambda: lock(switch, lease=3))
    switch.run(expires + 10)
    assert key_info(switch).protect_bit == protect


def test_a_good_key_stops_the_lease(switch):
    lock(switch, lease=3)
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)) is None
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO, cc_key=KEY), START + 2_500) is not None
    switch.run(START + 4 * LEASE_SECOND)
    assert key_info(switch).protect_bit == 1


def test_a_lease_of_0_never_begins(switch):
    lock(switch)
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)) is None
    switch.run(START + 10 * LEASE_SECOND)
    assert key_info(switch).protect_bit == 1


def test_violations_that_are_cleared_as_one_shows_are_0(switch):
    """As with counters, a write wins."""
    lock(switch)
    switch.at(START + 1, UPDATE, lambda: switch.agent.cc_key.write(11, 0))
    assert ask(switch, request(MadMethod.GET, A.CONGESTION_INFO)) is None
    assert key_info(switch).violations == 0


# In a switch.


def test_a_host_sets_a_threshold_and_reads_the_log(star, ready):
    bench = star(3, buffer_blocks=24, mtu=256, adapter={"mtu": 256})
    bench.write(0, lft_address(4), 0)
    setting = SWITCH_CONGESTION_SETTING.pack(control_map=0x1F, threshold=15)
    requests = (
        (ready, request(MadMethod.SET, A.SWITCH_CONGESTION_SETTING, setting)),
        (ready + 6_000, request(MadMethod.GET, A.CONGESTION_LOG)),
        (ready + 8_000, request(MadMethod.GET, A.CONGESTION_LOG)),
    )
    for cycle, mad in requests:
        bench.posts.append(Post(cycle, 3, 0, gmp_packet(mad, 3, 4).data))
    for source in (1, 2):
        for seed in range(20):
            bench.post(ready + 2_000, source, 3, payload=64, seed=seed)
    bench.run(ready + 10_000)
    packets = [parse(one.data) for one in bench.delivered if one.node == 3]
    answers = [CC_MAD.unpack(packet.payload) for packet in packets if packet.bth.dest_qp == 1]
    marked = sum(packet.bth.fecn for packet in packets)
    assert [mad.status for mad in answers] == [0, 0, 0]
    first, second = (CONGESTION_LOG.unpack(mad_data(mad)) for mad in answers[1:])
    assert first.log_events_counter == marked > 5
    assert (first.port_map, second.port_map, second.log_events_counter) == (1 << 3, 0, 0)
    assert first.event0 == second.event0 != 0
    assert second.current_time_stamp - first.current_time_stamp in (7, 8)
