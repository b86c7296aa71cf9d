"""The Performance Management Agent: every attribute, by Get and Set, in its cycles (docs/management.md, section 6)."""

import random

import pytest

from tests.agent_steps import of_request
from tests.model.management.agent_bench import ADAPTER, ARRIVES, START, SWITCH, Bench, change
from wire.crc import icrc, icrc_good
from wire.headers import BTH, DETH
from wire.mad import CLASS_PORT_INFO, MadMethod, MadStatus, mad_data
from wire.mad_packet import gmp_packet
from wire.packet import parse
from wire.pma import (
    PMA_ATTRIBUTES,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_RCV_ERROR_DETAILS,
    PORT_SAMPLES_CONTROL,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
    perf_request,
)
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import Counter, CounterHigh, Detail, PortRegister, lft_address, port_address
from wire.sma import SmaAttribute

A = PmaAttribute
SLID, DLID = 9, 7
"""Of the requests: the node's own LID is not looked at."""
OF_A_PORT = (
    A.PORT_SAMPLES_CONTROL,
    A.PORT_COUNTERS,
    A.PORT_COUNTERS_EXTENDED,
    A.PORT_RCV_ERROR_DETAILS,
    A.PORT_XMIT_DISCARD_DETAILS,
)
PORT = 3
WILD = bytes(range(1, 193))

# (counter, word, access, bit of CounterSelect, or 16 for CounterSelect2), as the contract has them.
COUNTERS = [
    (Counter.SYMBOL_ERROR, 1, 0, 0),
    (Counter.LINK_ERROR_RECOVERY, 1, 1, 1),
    (Counter.LINK_DOWNED, 1, 2, 2),
    (Counter.RCV_ERRORS, 2, 0, 3),
    (Counter.RCV_REMOTE_PHYSICAL_ERRORS, 2, 1, 4),
    (Counter.RCV_SWITCH_RELAY_ERRORS, 3, 0, 5),
    (Counter.XMIT_DISCARDS, 3, 1, 6),
    (Counter.XMIT_CONSTRAINT_ERRORS, 4, 0, 7),
    (Counter.RCV_CONSTRAINT_ERRORS, 4, 1, 8),
    (Counter.LOCAL_LINK_INTEGRITY_ERRORS, 4, 2, 9),
    (Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, 4, 3, 10),
    (Counter.VL15_DROPPED, 5, 0, 11),
    (Counter.XMIT_DATA, 6, 0, 12),
    (Counter.RCV_DATA, 7, 0, 13),
    (Counter.XMIT_PKTS, 8, 0, 14),
    (Counter.RCV_PKTS, 9, 0, 15),
    (Counter.XMIT_WAIT, 10, 0, 16),
]
FIELDS = [field.name for field in PORT_COUNTERS.fields if field.name not in ("port_select", "counter_select")]
FIELDS.remove("counter_select2")
NAMES = {counter: FIELDS[bit] for counter, _, _, bit in COUNTERS}
# (attribute, its format, and by bit of CounterSelect register, field, word and access).
DETAILS = [
    (
        A.PORT_RCV_ERROR_DETAILS,
        PORT_RCV_ERROR_DETAILS,
        [
            (Detail.LOCAL_PHYSICAL_ERRORS, "port_local_physical_errors", 1, 0),
            (Detail.MALFORMED_PACKET_ERRORS, "port_malformed_packet_errors", 1, 1),
            (Detail.BUFFER_OVERRUN_ERRORS, "port_buffer_overrun_errors", 2, 0),
            (Detail.DLID_MAPPING_ERRORS, "port_dlid_mapping_errors", 2, 1),
            (Detail.VL_MAPPING_ERRORS, "port_vl_mapping_errors", 3, 0),
            (Detail.LOOPING_ERRORS, "port_looping_errors", 3, 1),
        ],
    ),
    (
        A.PORT_XMIT_DISCARD_DETAILS,
        PORT_XMIT_DISCARD_DETAILS,
        [
            (Detail.INACTIVE_DISCARDS, "port_inactive_discards", 1, 0),
            (Detail.NEIGHBOR_MTU_DISCARDS, "port_neighbor_mtu_discards", 1, 1),
            (Detail.LIFE_TIME_DISCARDS, "port_sw_lifetime_limit_discards", 2, 0),
            (Detail.HOQ_LIFE_DISCARDS, "port_sw_hoq_limit_discards", 2, 1),
        ],
    ),
]
HIGHS = [
    (CounterHigh.XMIT_DATA_HIGH, 2, "port_xmit_data"),
    (CounterHigh.RCV_DATA_HIGH, 4, "port_rcv_data"),
    (CounterHigh.XMIT_PKTS_HIGH, 6, "port_xmit_pkts"),
    (CounterHigh.RCV_PKTS_HIGH, 8, "port_rcv_pkts"),
]


def reads_of(attribute):
    """(step, address) of what is read for an answer."""
    if attribute == A.PORT_SAMPLES_CONTROL:
        return [(144, port_address(PORT, PortRegister.TICK))]
    if attribute == A.PORT_COUNTERS:
        return [(144 + 8 * word + access, port_address(PORT, counter)) for counter, word, access, _ in COUNTERS]
    for details, _, registers in DETAILS:
        if attribute == details:
            return [(144 + 8 * word + access, port_address(PORT, detail)) for detail, _, word, access in registers]
    reads = []
    for high, word, _ in HIGHS:
        reads.append((144 + 8 * word, port_address(PORT, high)))
        reads.append((144 + 8 * word + 8, port_address(PORT, PortRegister.EXTENDED_LOW)))
    return reads


@pytest.fixture
def switch():
    """LID 9 is behind port 2."""
    bench = Bench(SWITCH)
    bench.registers[lft_address(SLID)] = 2
    return bench


def request(method, attribute, data=b"", **fields):
    return perf_request(method, attribute, data, transaction_id=0xABCD).replace(**fields)


def get(attribute, data=bytes([0, PORT]), **fields):
    return request(MadMethod.GET, attribute, data, **fields)


def put(attribute, data, **fields):
    return request(MadMethod.SET, attribute, data, **fields)


def ask(bench, mad, **where):
    """The answer, and its 64 bytes."""
    bench.ask_perf(mad, **where)
    answer = bench.run().perf_answer()
    return answer, mad_data(answer)[:64]


def numbers(bench):
    """Those of the steps of what was asked last."""
    all_ports = mad_data(bench.asked)[1] == 255
    laps = SWITCH.ports if all_ports and bench.parameters is SWITCH else 1
    return of_request(bench.asked.method, bench.asked.attribute_id, pma=True, laps=laps)


def steps(bench, what):
    """Accesses by their steps, without the look at the LFT."""
    events = [(numbers(bench)[cycle - START], *rest) for cycle, *rest in bench.of(what)]
    return events if what == "write" else events[1:]


# What every answer is.


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("attribute", [*A, 0, 0xFFFF])
def test_an_answer_is_offered_after_its_steps(switch, method, attribute):
    answer, _ = ask(switch, request(method, attribute, bytes([0, PORT])))
    (offered, output, data, slot), (freed,) = switch.of("offer")[0], switch.of("freed")[0]
    assert (offered, output, slot) == (START + len(numbers(switch)), 1, 0)
    assert freed == offered + 73
    assert icrc_good(data)
    assert (answer.method, answer.transaction_id, answer.attribute_id) == (0x81, 0xABCD, attribute)


def test_an_answer_goes_from_qp_1_to_where_the_request_came_from(switch):
    switch.ask_perf(get(A.PORT_COUNTERS), sl=5, src_qp=0x7654, p_key=0x1234)
    packet = parse(switch.run().of("offer")[0][2])
    assert (packet.lrh.slid, packet.lrh.dlid, packet.lrh.sl) == (DLID, SLID, 5)
    assert (packet.bth.dest_qp, packet.bth.p_key) == (0x7654, 0x1234)
    deth = packet.header(DETH)
    assert (deth.src_qp, deth.q_key) == (1, 0x8001_0000)


def test_what_is_not_named_stays_as_it_came(switch):
    """PSN, and the reserved bytes of the MAD."""
    reserved = slice(28 + 24, 28 + 64)
    packet = gmp_packet(get(A.CLASS_PORT_INFO), SLID, DLID, psn=77).data
    body = packet[: reserved.start] + bytes(range(40)) + packet[reserved.stop : -4]
    switch.arrive(body + icrc(body), slot=0)
    offered = switch.run().of("offer")[0][2]
    assert offered[reserved] == bytes(range(40))
    assert BTH["psn"].read(offered, 8) == 77


def test_a_request_with_a_wrong_icrc_is_dropped(switch):
    packet = gmp_packet(get(A.CLASS_PORT_INFO), SLID, DLID).data
    switch.arrive(packet[:100] + bytes([packet[100] ^ 1]) + packet[101:], slot=0)
    switch.run()
    assert [event[:2] for event in switch.events] == [(START - 4, "icrc wrong"), (START, "freed")]


@pytest.mark.parametrize("attribute", A)
def test_what_is_not_the_attributes_is_0_in_an_answer(switch, attribute):
    _, _ = ask(switch, get(attribute, bytes([0, PORT]) + WILD[2:]))
    assert not any(mad_data(switch.perf_answer())[64:])


# Status.


def refused(bench, mad, status):
    """Nothing is read or written, and the data are those of the request."""
    answer, _ = ask(bench, mad)
    assert answer.status == status
    assert mad_data(answer) == mad_data(mad)
    assert not steps(bench, "write")
    assert not steps(bench, "read")
    assert bench.of("offer")[0][0] == START + len(numbers(bench))


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_class_version_is_answered_so_before_all_else(switch, method, version):
    refused(switch, request(method, 0, WILD, class_version=version, attribute_modifier=1), MadStatus.BAD_VERSION)


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("attribute", [0, 0x13, 0x14, 0x17, 0x1E, 0x0112])
def test_there_are_no_other_attributes(switch, method, attribute):
    mad = request(method, attribute, WILD, attribute_modifier=1)
    refused(switch, mad, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


def test_class_port_info_cannot_be_set(switch):
    refused(switch, put(A.CLASS_PORT_INFO, WILD), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("modifier", [1, 1 << 31])
@pytest.mark.parametrize("attribute", OF_A_PORT)
def test_no_attribute_has_a_modifier(switch, method, attribute, modifier):
    data = bytes([0, PORT, 0xFF, 0xFF]) + WILD[4:]
    refused(switch, request(method, attribute, data, attribute_modifier=modifier), MadStatus.INVALID_ATTRIBUTE_VALUE)


def test_nor_has_class_port_info(switch):
    refused(switch, get(A.CLASS_PORT_INFO, WILD, attribute_modifier=1), MadStatus.INVALID_ATTRIBUTE_VALUE)


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("port", [0, SWITCH.ports + 1, 254])
@pytest.mark.parametrize("attribute", OF_A_PORT)
def test_port_select_is_a_port_that_there_is(switch, method, attribute, port):
    data = bytes([0, port, 0xFF, 0xFF]) + WILD[4:]
    refused(switch, request(method, attribute, data), MadStatus.INVALID_ATTRIBUTE_VALUE)


@pytest.mark.parametrize(("port", "status"), [(0, 0x1C), (1, 0), (2, 0x1C)])
def test_an_adapter_has_port_1(adapter, port, status):
    answer, _ = ask(adapter, get(A.PORT_COUNTERS, bytes([0, port])))
    assert answer.status == status


# Gets.


@pytest.mark.parametrize("port", [0, PORT, 255])
def test_class_port_info(switch, port):
    answer, data = ask(switch, get(A.CLASS_PORT_INFO, bytes([0, port])))
    info = CLASS_PORT_INFO.unpack(data + bytes(8))
    assert answer.status == MadStatus.OK
    assert (info.base_version, info.class_version, info.capability_mask, info.resp_time_value) == (1, 1, 0x1500, 8)
    assert data[8:] == bytes(56)
    assert not steps(switch, "read")


@pytest.mark.parametrize("attribute", OF_A_PORT)
def test_what_a_get_reads_and_when(switch, attribute):
    ask(switch, get(attribute))
    assert steps(switch, "read") == reads_of(attribute)
    assert not switch.of("write")


def test_port_samples_control_has_a_tick_and_no_samples(switch):
    switch.registers[port_address(PORT, PortRegister.TICK)] = 77
    answer, data = ask(switch, get(A.PORT_SAMPLES_CONTROL, bytes([9, PORT]) + b"\xff" * 190))
    assert answer.status == MadStatus.OK
    assert data == PORT_SAMPLES_CONTROL.pack(port_select=PORT, tick=77)[:64]


def test_port_counters_are_the_counters_of_the_port(switch):
    values = {counter: index + 1 for index, counter in enumerate(Counter)}
    switch.registers.update({port_address(PORT, counter): value for counter, value in values.items()})
    switch.registers.update({port_address(1, counter): 0 for counter in Counter})
    answer, data = ask(switch, get(A.PORT_COUNTERS, bytes([9, PORT]) + b"\xff" * 190))
    expected = {NAMES[counter]: value for counter, value in values.items()}
    expected |= {"port_select": PORT, "counter_select": 0xFFFF, "counter_select2": 0xFF}
    assert answer.status == MadStatus.OK
    assert data == PORT_COUNTERS.pack(expected) + bytes(20), "the rest is 0"


def test_port_counters_extended_have_two_halves(switch):
    switch.registers[port_address(PORT, PortRegister.EXTENDED_LOW)] = 0x89ABCDEF
    for value, (high, _, _) in enumerate(HIGHS, 1):
        switch.registers[port_address(PORT, high)] = value << 28
    answer, data = ask(switch, get(A.PORT_COUNTERS_EXTENDED, bytes([9, PORT]) + b"\xff" * 190))
    found = PORT_COUNTERS_EXTENDED.unpack(data + bytes(8))
    assert answer.status == MadStatus.OK
    assert found == PORT_COUNTERS_EXTENDED.record(
        port_select=PORT,
        counter_select=0xFFFF,
        **{name: value << 60 | 0x89ABCDEF for value, (_, _, name) in enumerate(HIGHS, 1)},
    )
    assert data[4:8] == bytes(4)


# Sets.


def test_a_set_of_port_samples_control_writes_the_tick_and_tells_it(switch):
    answer, data = ask(switch, put(A.PORT_SAMPLES_CONTROL, bytes([0, PORT]) + b"\xc0" * 190))
    assert steps(switch, "write") == [(18, port_address(PORT, PortRegister.TICK), 0xC0)]
    assert steps(switch, "read") == reads_of(A.PORT_SAMPLES_CONTROL)
    assert answer.status == MadStatus.OK
    assert data == PORT_SAMPLES_CONTROL.pack(port_select=PORT, tick=0xC0)[:64]


VALUES = PORT_COUNTERS.unpack(b"\xa5" * 44)
"""What a Set holds: every counter another value than 0."""


def selecting(*bits, layout_values=VALUES):
    mask = sum(1 << bit for bit in bits)
    return layout_values.replace(port_select=PORT, counter_select=mask & 0xFFFF, counter_select2=mask >> 16).pack()


@pytest.mark.parametrize(("counter", "word", "access", "bit"), COUNTERS)
def test_a_counter_is_set_by_its_bit_alone(switch, counter, word, access, bit):
    switch.registers.update({port_address(PORT, other): 1 for other in Counter})
    answer, data = ask(switch, put(A.PORT_COUNTERS, selecting(bit)))
    written = VALUES[NAMES[counter]]
    assert steps(switch, "write") == [(16 + 8 * word + 2 + access, port_address(PORT, counter), written)]
    assert steps(switch, "read") == reads_of(A.PORT_COUNTERS)
    found = PORT_COUNTERS.unpack(data)
    assert answer.status == MadStatus.OK
    assert {other: found[NAMES[other]] for other in Counter} == {**dict.fromkeys(Counter, 1), counter: written}


@pytest.mark.parametrize("bits", [(), (17, 23)])
def test_bits_that_stand_for_no_counter_set_none(switch, bits):
    ask(switch, put(A.PORT_COUNTERS, selecting(*bits)))
    assert not switch.of("write")


def test_a_set_of_all_port_counters(switch):
    ask(switch, put(A.PORT_COUNTERS, selecting(*range(24))))
    assert steps(switch, "write") == [
        (16 + 8 * word + 2 + access, port_address(PORT, counter), VALUES[NAMES[counter]])
        for counter, word, access, _ in COUNTERS
    ]


@pytest.mark.parametrize("mask", [0, 1, 2, 4, 8, 0b1010, 0xF, 0xFFF0, 0xFFFF])
def test_a_set_of_port_counters_extended_writes_the_lower_half_first(switch, mask):
    values = {name: 0x1111_2222_3333_0000 * index for index, (_, _, name) in enumerate(HIGHS, 1)}
    data = PORT_COUNTERS_EXTENDED.pack(port_select=PORT, counter_select=mask, **values)
    answer, _ = ask(switch, put(A.PORT_COUNTERS_EXTENDED, data))
    expected = []
    for bit, (high, word, name) in enumerate(HIGHS):
        if mask >> bit & 1:
            first = 16 + 8 * (word + 1) + 2
            low = port_address(PORT, PortRegister.EXTENDED_LOW)
            expected += [(first, low, values[name] & 0xFFFF_FFFF)]
            expected += [(first + 1, port_address(PORT, high), values[name] >> 32)]
    assert steps(switch, "write") == expected
    assert steps(switch, "read") == reads_of(A.PORT_COUNTERS_EXTENDED)
    assert answer.status == MadStatus.OK


@pytest.mark.parametrize(("attribute", "layout", "registers"), DETAILS)
def test_details_are_read_and_set_one_by_one(switch, attribute, layout, registers):
    values = {detail: index + 0xFF00 for index, (detail, *_) in enumerate(registers)}
    switch.registers.update({port_address(PORT, detail): value for detail, value in values.items()})
    bit = len(registers) - 1
    detail, name, word, access = registers[bit]
    written = layout.record({field.name: 7 for field in layout.fields})
    asked = written.replace(port_select=PORT, counter_select=1 << bit | 1 << 15)
    answer, data = ask(switch, put(attribute, asked.pack() + b"\xff" * 20))
    assert steps(switch, "write") == [(16 + 8 * word + 2 + access, port_address(PORT, detail), 7)]
    shown = {field: values[register] for register, field, *_ in registers}
    expected = layout.record({**shown, name: 7, "port_select": PORT, "counter_select": asked.counter_select})
    assert (answer.status, data[: layout.size_bytes]) == (MadStatus.OK, expected.pack())
    assert not any(data[layout.size_bytes :])


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
@pytest.mark.parametrize("attribute", OF_A_PORT)
def test_all_ports_are_asked_one_after_the_other(switch, attribute, method):
    """In the laps of each slot; what is done in each is what would be done of its port alone."""
    alone = Bench(SWITCH)
    alone.registers[lft_address(SLID)] = 2
    ask(alone, request(method, attribute, bytes([0, PORT, 0xFF, 0xFF]) + WILD[4:]))
    ask(switch, request(method, attribute, bytes([0, 255, 0xFF, 0xFF]) + WILD[4:]))
    for what in ("read", "write"):
        expected = [
            (step + 1024 * (port - 1), address - (PORT - port << 16), *value)
            for step, address, *value in steps(alone, what)
            for port in range(1, SWITCH.ports + 1)
        ]
        order = numbers(switch)
        assert steps(switch, what) == sorted(expected, key=lambda access: order.index(access[0]))


def test_the_counters_of_all_ports_are_their_sums_and_stop_at_all_ones(switch):
    for port in range(1, SWITCH.ports + 1):
        for counter in Counter:
            switch.registers[port_address(port, counter)] = port
    switch.registers[port_address(2, Counter.LINK_DOWNED)] = 0xFF
    switch.registers[port_address(4, Counter.XMIT_DATA)] = 0xFFFF_FFFA
    answer, data = ask(switch, get(A.PORT_COUNTERS, bytes([0, 255])))
    found = PORT_COUNTERS.unpack(data)
    total = sum(range(1, SWITCH.ports + 1))
    expected = dict.fromkeys(Counter, total) | {Counter.LINK_DOWNED: 0xFF, Counter.XMIT_DATA: 0xFFFF_FFFF}
    expected[Counter.XMIT_DATA] = min(0xFFFF_FFFA + total - 4, 0xFFFF_FFFF)
    assert (answer.status, found.port_select) == (MadStatus.OK, 255)
    assert {counter: found[NAMES[counter]] for counter in Counter} == expected


@pytest.mark.parametrize(("high", "total"), [(0x1000_0000, 4 * 0x1000_0000_FFFF_FFFF), (0x4000_0000, (1 << 64) - 1)])
def test_sums_of_64_bits_carry_from_half_to_half(switch, high, total):
    for port in range(1, SWITCH.ports + 1):
        switch.registers[port_address(port, PortRegister.EXTENDED_LOW)] = 0xFFFF_FFFF
        for register, _, _ in HIGHS:
            switch.registers[port_address(port, register)] = high
    _, data = ask(switch, get(A.PORT_COUNTERS_EXTENDED, bytes([0, 255])))
    found = PORT_COUNTERS_EXTENDED.unpack(data + bytes(8))
    assert [found[name] for _, _, name in HIGHS] == [total] * 4


def test_an_adapter_has_one_port_and_all_ports(adapter):
    adapter.registers[port_address(1, Counter.RCV_PKTS)] = 5
    answer, data = ask(adapter, get(A.PORT_COUNTERS, bytes([0, 255])))
    assert (answer.status, PORT_COUNTERS.unpack(data).port_rcv_pkts) == (MadStatus.OK, 5)


def test_there_are_no_samples(switch):
    answer, data = ask(switch, get(A.PORT_SAMPLES_RESULT, WILD))
    assert (answer.status, data) == (MadStatus.OK, bytes(64))
    assert not steps(switch, "read")


def test_samples_cannot_be_set(switch):
    refused(switch, put(A.PORT_SAMPLES_RESULT, WILD), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


# Where an answer goes.


@pytest.mark.parametrize(("slot", "mapping"), [(0, [0] * 16), (1, [1] * 16)])
def test_a_request_of_an_adapter_s_host_is_answered_on_its_slot(slot, mapping):
    """Whatever the table says."""
    bench = Bench(ADAPTER)
    bench.carry_out(change(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE.pack([9] * 16)))
    bench.events.clear()
    bench.ask_perf(get(A.PORT_COUNTERS, bytes([0, 1])), bench.kernel.now + ARRIVES, arrival=0, slot=slot, sl=3)
    bench.run(bench.kernel.now + 1000)
    assert [(output, slot) for _, output, _, slot in bench.of("offer")] == [(1, slot)]
    assert not [event for event in bench.of("read") if event[1] >> 16 != 1]


def with_table(bench, mapping, modifier=0):
    bench.carry_out(change(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE.pack(mapping), modifier))
    bench.events.clear()


MAPPING = [1, 0, 0, 1, 1, 1, 0, 2, 15, 0, 0, 0, 0, 0, 0, 1]
"""VL 2 and 15 are not below V."""


@pytest.mark.parametrize("sl", range(16))
@pytest.mark.parametrize("is_switch", [True, False])
def test_on_a_link_an_answer_is_on_the_vl_of_its_sl(switch, adapter, is_switch, sl):
    """A switch's has a table from port 0 to each output."""
    bench = switch if is_switch else adapter
    with_table(bench, MAPPING, SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=2) if is_switch else 0)
    bench.ask_perf(get(A.PORT_COUNTERS, bytes([0, 1])), bench.kernel.now + ARRIVES, sl=sl)
    begins = bench.kernel.now + START
    bench.run(bench.kernel.now + 1000)
    if MAPPING[sl] < 2:
        ((cycle, output, _, slot),) = bench.of("offer")
        assert (cycle, output, slot) == (begins + len(numbers(bench)), 1 if is_switch else 0, MAPPING[sl])
    else:
        assert not bench.of("offer")
        assert bench.of("freed") == [(begins + len(numbers(bench)),)]


@pytest.mark.parametrize(("sl", "vl"), [(0, 0), (1, 1), (14, 0), (15, 1)])
def test_at_reset_sl_s_is_on_vl_s_mod_v(switch, sl, vl):
    switch.ask_perf(get(A.PORT_COUNTERS), sl=sl, slot=1)
    assert switch.run().of("offer")[0][3] == vl


@pytest.mark.parametrize("pair", [(1, 2), (2, 0), (0, 1), (2, 2)])
def test_other_pairs_of_ports_are_of_no_account(switch, pair):
    with_table(switch, [9] * 16, SL_TO_VL_MODIFIER.to_int(input_port=pair[0], output_port=pair[1]))
    switch.ask_perf(get(A.PORT_COUNTERS), switch.kernel.now + ARRIVES)
    assert len(switch.run().of("offer")) == 1


@pytest.mark.parametrize("entry", [0, 5, 255])
def test_an_answer_without_a_route_is_dropped_after_all_is_done(switch, entry):
    switch.registers[lft_address(SLID)] = entry
    switch.ask_perf(put(A.PORT_COUNTERS, selecting(0)))
    switch.run()
    assert (START + 2, lft_address(SLID)) in switch.of("read")
    assert len(switch.of("write")) == 1
    assert not switch.of("offer")
    assert switch.of("freed") == [(START + len(numbers(switch)),)]


# What is no request.


@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize(
    "mad",
    [
        request(MadMethod.GET_RESP, A.PORT_COUNTERS),
        request(MadMethod.TRAP, A.PORT_COUNTERS),
        request(MadMethod.GET, A.PORT_COUNTERS, mgmt_class=3),
        request(MadMethod.GET, A.PORT_COUNTERS, base_version=2),
    ],
)
def test_another_packet_for_qp_1_is_dropped(switch, mad, slot):
    switch.ask_perf(mad, slot=slot)
    switch.run()
    assert switch.events == [(START, "freed")]


def test_a_request_on_vl15_is_dropped(switch):
    switch.ask_perf(get(A.PORT_COUNTERS), slot=SWITCH.vls)
    switch.run()
    assert switch.events == [(START, "freed")]


# Standing still.


@pytest.mark.parametrize("attribute", OF_A_PORT)
def test_every_step_is_in_a_cycle_without_an_access_of_the_test_bus(attribute):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    data = bytes([0, PORT]) + b"\xff" * 190
    quiet = Bench(SWITCH)
    quiet.registers[lft_address(SLID)] = 2
    quiet.ask_perf(put(attribute, data))
    quiet.run()
    for _ in range(10):
        share = rng.random() / 2
        holds = [cycle for cycle in range(START - 5, START + 600) if rng.random() < share]
        free = [cycle for cycle in range(START, START + 1500) if cycle not in set(holds)]
        bench = Bench(SWITCH)
        bench.registers[lft_address(SLID)] = 2
        bench.hold(holds)
        bench.ask_perf(put(attribute, data))
        bench.run()
        for what in ("read", "write"):
            assert bench.of(what) == [(free[cycle - START], *rest) for cycle, *rest in quiet.of(what)]
        assert bench.of("offer")[0][0] == free[len(numbers(bench)) - 1] + 1


def test_every_attribute_of_the_class_is_asked_here():
    assert {A.CLASS_PORT_INFO, A.PORT_SAMPLES_RESULT, *OF_A_PORT} == set(PMA_ATTRIBUTES)
