"""The Performance Management Agent: what it answers, and where its answers go (docs/management.md, section 6)."""

import random
from itertools import product

import pytest

from tests.model.management.agent_bench import ADAPTER, ARRIVES, START, SWITCH, Bench, change
from tests.model.management.perf_bench import (
    DLID,
    OF_A_PORT,
    PORT,
    SLID,
    WILD,
    A,
    ask,
    get,
    numbers,
    put,
    request,
    selecting,
    steps,
    switch_of_requests,
)
from wire.codes import VL15
from wire.crc import icrc, icrc_good
from wire.headers import BTH, DETH
from wire.mad import MadMethod, MadStatus, mad_data
from wire.mad_packet import gmp_packet
from wire.packet import parse
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import VL_XMIT_WAIT, Counter, CounterHigh, Detail, PacketCounter, lft_address, port_address
from wire.sma import SmaAttribute


@pytest.fixture
def switch():
    return switch_of_requests()


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


COUNTED = {*Counter, *Detail, *PacketCounter, *CounterHigh, *(VL_XMIT_WAIT + vl for vl in range(VL15 + 1))}


def test_in_23_steps_are_at_most_eight_accesses_to_a_ports_counters():
    """So with seven of the bus, in whose cycles the agent has no step, they are half of 30 cycles' (docs/pipeline.md,
    section 10)."""

    def most(method, attribute):
        switch = switch_of_requests()
        ask(switch, request(method, attribute, bytes([0, PORT]) + b"\xff" * 62))
        accesses = [*switch.of("read"), *switch.of("write")]
        cycles = [cycle for cycle, address, *_ in accesses if address - port_address(PORT, 0) in COUNTED]
        return max((sum(first <= cycle < first + 23 for cycle in cycles) for first in cycles), default=0)

    assert max(most(*asked) for asked in product((MadMethod.GET, MadMethod.SET), OF_A_PORT)) == 8


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


def test_samples_cannot_be_set(switch):
    refused(switch, put(A.PORT_SAMPLES_RESULT, WILD), MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


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
