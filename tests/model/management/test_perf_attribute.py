"""The Performance Management Agent: every attribute, by Get and Set, in its cycles (docs/management.md, section 6)."""

import pytest

from tests.agent_steps import LAP, slot_in_set
from tests.model.management.agent_bench import SWITCH, Bench
from tests.model.management.perf_bench import (
    COUNTERS,
    DETAILS,
    HIGHS,
    NAMES,
    OF_A_PORT,
    PORT,
    SLID,
    VALUES,
    WILD,
    A,
    ask,
    get,
    numbers,
    put,
    reads_of,
    request,
    selecting,
    steps,
    switch_of_requests,
)
from wire.mad import CLASS_PORT_INFO, MadMethod, MadStatus
from wire.pma import (
    PMA_ATTRIBUTES,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_SAMPLES_CONTROL,
)
from wire.registers import Counter, PortRegister, lft_address, port_address


@pytest.fixture
def switch():
    return switch_of_requests()


# Gets.


@pytest.mark.parametrize("port", [0, PORT, 255])
def test_class_port_info(switch, port):
    answer, data = ask(switch, get(A.CLASS_PORT_INFO, bytes([0, port])))
    info = CLASS_PORT_INFO.unpack(data + bytes(8))
    assert answer.status == MadStatus.OK
    assert (info.base_version, info.class_version, info.capability_mask, info.resp_time_value) == (1, 1, 0x1300, 8)
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
    found = PORT_COUNTERS_EXTENDED.unpack(data)
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


@pytest.mark.parametrize("mask", [0, 1, 2, 4, 8, 0b1010, 0xF, 0x80, 0xC0, 0xFF00, 0xFFFF])
def test_a_set_of_port_counters_extended_writes_the_lower_half_first(switch, mask):
    values = {name: 0x1111_2222_3333_0000 * index for index, (_, _, name) in enumerate(HIGHS, 1)}
    data = PORT_COUNTERS_EXTENDED.pack(port_select=PORT, counter_select=mask, **values)
    answer, _ = ask(switch, put(A.PORT_COUNTERS_EXTENDED, data))
    expected = []
    for bit, (high, word, name) in enumerate(HIGHS):
        if mask >> bit & 1:
            first = slot_in_set(word + 1) + 2
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


def errors_of(*counts):
    """PortVLXmitFlowCtlUpdateErrors of the first VLs, two bits each, as a word."""
    return sum(count << 30 - 2 * vl for vl, count in enumerate(counts))


@pytest.mark.parametrize("select", [0, 0b101, 0xFFFF])
def test_a_set_of_flow_control_update_errors_says_of_which_vls_whatever_these_are(switch, select):
    switch.registers[port_address(PORT, PortRegister.FLOW_CTL_UPDATE_ERRORS)] = errors_of(1, 2, 3, 0)
    asked = bytes([9, PORT, *select.to_bytes(2, "big"), 0x12, 0x34, 0x56, 0x78])
    answer, data = ask(switch, put(A.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, asked + b"\xff" * 184))
    assert steps(switch, "write") == [
        (26, port_address(PORT, PortRegister.EXTENDED_LOW), select),
        (27, port_address(PORT, PortRegister.FLOW_CTL_UPDATE_ERRORS), 0x12345678),
    ]
    assert steps(switch, "read") == reads_of(A.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS)
    # The registers of this bench are memories.
    assert (answer.status, data) == (MadStatus.OK, bytes([0, *asked[1:]]) + bytes(56))


def test_flow_control_update_errors_of_all_ports_are_sums_that_stop_at_3_for_each_vl(switch):
    for port, counts in enumerate(((1, 0, 3, 2), (1, 0, 3, 2), (0, 0, 3, 0), (0, 1, 3, 0)), 1):
        switch.registers[port_address(port, PortRegister.FLOW_CTL_UPDATE_ERRORS)] = errors_of(*counts)
    answer, data = ask(switch, get(A.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, bytes([0, 255, 0xAB, 0xCD])))
    assert answer.status == MadStatus.OK
    assert data == bytes([0, 255, 0xAB, 0xCD]) + errors_of(2, 1, 3, 3).to_bytes(4, "big") + bytes(56)


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
            (step + LAP * (port - 1), address - (PORT - port << 16), *value)
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
    found = PORT_COUNTERS_EXTENDED.unpack(data)
    assert [found[name] for _, _, name in HIGHS] == [total] * 8


def test_an_adapter_has_one_port_and_all_ports(adapter):
    adapter.registers[port_address(1, Counter.RCV_PKTS)] = 5
    answer, data = ask(adapter, get(A.PORT_COUNTERS, bytes([0, 255])))
    assert (answer.status, PORT_COUNTERS.unpack(data).port_rcv_pkts) == (MadStatus.OK, 5)


def test_there_are_no_samples(switch):
    answer, data = ask(switch, get(A.PORT_SAMPLES_RESULT, WILD))
    assert (answer.status, data) == (MadStatus.OK, bytes(64))
    assert not steps(switch, "read")


def test_every_attribute_of_the_class_is_asked_here():
    assert {A.CLASS_PORT_INFO, A.PORT_SAMPLES_RESULT, *OF_A_PORT} == set(PMA_ATTRIBUTES)
