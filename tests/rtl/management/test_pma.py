"""The Performance Management Agent (docs/management.md, section 6)."""

import random
from typing import Any, NamedTuple

import pytest

from tests.rtl.management.agent_bench import MAD_START, Access, Bench, Work
from wire.codes import Q_KEY_GSI
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, GRH, LRH
from wire.layout import Layout, Record
from wire.mad import CLASS_PORT_INFO, MadMethod, MadStatus, MgmtClass
from wire.mad_packet import gmp_packet
from wire.node_info import NODE_INFO
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.pma import (
    PERF_MAD,
    PMA_ATTRIBUTES,
    PMA_CAPABILITIES,
    PMA_DATA_BYTES,
    PMA_RESP_TIME,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_RCV_ERROR_DETAILS,
    PORT_SAMPLES_CONTROL,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
    perf_request,
)
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import COUNTER_WIDTHS, Counter, CounterHigh, Detail, PortRegister, lft_address, port_address
from wire.sma import SmaAttribute

SWITCH = SwitchParameters(ports=3, vls=4, lft_size=128, mft_size=64)
ADAPTER = AdapterParameters(vls=2)
GET, SET = MadMethod.GET, MadMethod.SET
SENDER, SENDERS_QP, OWN = 7, 0xABCDEF, 5
WAY_BACK = 3
"""The port that the LFT names for the sender."""
ONES = b"\xff" * 192

COUNTER_ACCESSES = {
    1: ((Counter.SYMBOL_ERROR, 0), (Counter.LINK_ERROR_RECOVERY, 1), (Counter.LINK_DOWNED, 2)),
    2: ((Counter.RCV_ERRORS, 3), (Counter.RCV_REMOTE_PHYSICAL_ERRORS, 4)),
    3: ((Counter.RCV_SWITCH_RELAY_ERRORS, 5), (Counter.XMIT_DISCARDS, 6)),
    4: ((Counter.LOCAL_LINK_INTEGRITY_ERRORS, 9), (Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, 10)),
    5: ((Counter.VL15_DROPPED, 11),),
    6: ((Counter.XMIT_DATA, 12),),
    7: ((Counter.RCV_DATA, 13),),
    8: ((Counter.XMIT_PKTS, 14),),
    9: ((Counter.RCV_PKTS, 15),),
    10: ((Counter.XMIT_WAIT, 16),),
}
"""By word of PortCounters the registers in the order of their accesses, each with its bit of CounterSelect; 16 is bit 0
of CounterSelect2."""

DETAILS = {
    PmaAttribute.PORT_RCV_ERROR_DETAILS: (
        PORT_RCV_ERROR_DETAILS,
        {
            1: (Detail.LOCAL_PHYSICAL_ERRORS, Detail.MALFORMED_PACKET_ERRORS),
            2: (Detail.BUFFER_OVERRUN_ERRORS, Detail.DLID_MAPPING_ERRORS),
            3: (Detail.VL_MAPPING_ERRORS, Detail.LOOPING_ERRORS),
        },
    ),
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: (
        PORT_XMIT_DISCARD_DETAILS,
        {1: (Detail.INACTIVE_DISCARDS, Detail.NEIGHBOR_MTU_DISCARDS)},
    ),
}
"""The format of each, and by word the registers in the order of their accesses and of their bits."""

EXTENDED_COUNTERS = (
    (2, CounterHigh.XMIT_DATA_HIGH),
    (4, CounterHigh.RCV_DATA_HIGH),
    (6, CounterHigh.XMIT_PKTS_HIGH),
    (8, CounterHigh.RCV_PKTS_HIGH),
)
"""The word of PortCountersExtended in which each counter begins, in the order of the bits."""


def perf(method: MadMethod, attribute: int, data: bytes = b"", **fields: int) -> Record:
    request = perf_request(method, attribute, data, transaction_id=0x0123_4567_89AB_CDEF)
    return request.replace(**{"status": 0x1234, "class_specific": 0x5678, **fields})


def packet(mad: Record, sl: int = 2, slid: int = SENDER) -> bytes:
    return gmp_packet(mad, slid, OWN, sl=sl, vl=1, p_key=0x8001, src_qp=SENDERS_QP, psn=0x123).data


def mad(work: Work) -> Record:
    return PERF_MAD.unpack(work.data, MAD_START)


def attribute(work: Work, layout: Layout) -> Record:
    return layout.unpack(work.data, MAD_START + 64)


def written(data: bytes, layout: Layout, start: int, **fields: int) -> bytes:
    for name, value in fields.items():
        data = layout[name].write(data, value, start)
    return data


def answer(request: bytes, data: bytes, status: int = MadStatus.OK) -> bytes:
    """The packet that answers this one, with these bytes of data, and 0 behind them."""
    lrh = LRH.unpack(request)
    body = written(request[:-ICRC_BYTES], LRH, 0, dlid=lrh.slid, slid=lrh.dlid)
    body = written(body, BTH, 8, dest_qp=DETH.unpack(request, 20).src_qp)
    body = written(body, DETH, 20, src_qp=1)
    body = written(body, PERF_MAD, MAD_START, method=MadMethod.GET_RESP, status=status)
    body = body[: MAD_START + 64] + data.ljust(PMA_DATA_BYTES, b"\0")
    return body + icrc(body)


def run(script: Any, parameters: NodeParameters = SWITCH, **settings: Any) -> Any:
    """What a script returns that acts on an agent."""
    bench = Bench(parameters)
    bench.registers[lft_address(SENDER)] = WAY_BACK
    for name, value in settings.items():
        setattr(bench, name, value)
    found = []

    async def act(bench: Bench) -> None:
        found.append(await script(bench))

    bench.run(act)
    return found[0]


def works(
    requests: list[bytes], parameters: NodeParameters = SWITCH, registers: Any = None, **settings: Any
) -> list[Work]:
    """What becomes of requests, one after the other, from port 1 on slot 0."""

    async def script(bench: Bench) -> list[Work]:
        bench.registers.update(registers or {})
        return [await bench.send(request, slot=0) for request in requests]

    found: list[Work] = run(script, parameters, **settings)
    return found


def work_of(request: bytes, parameters: NodeParameters = SWITCH, registers: Any = None) -> Work:
    (work,) = works([request], parameters, registers)
    return work


def of_port(work: Work) -> list[Access]:
    """The accesses except the one to the LFT."""
    return [access for access in work.accesses if access.step != 2]


# The answer.


def test_an_answer_goes_back_to_the_queue_pair_that_asked() -> None:
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\2" + bytes(range(190))))
    work = work_of(request)
    assert (work.answered, work.outputs, work.free - work.start) == (True, (WAY_BACK - 1,), len(work.numbers) + 73)
    assert work.accesses[0] == Access(2, lft_address(SENDER), None)
    # PortSelect, CounterSelect and CounterSelect2 are as they came, and there are no counts.
    assert work.data == answer(request, bytes([0, 2, 0, 1, *bytes(14), 16]))


def test_the_answer_to_a_request_with_a_grh_has_one_that_leads_back() -> None:
    grh = {"sgid": 5 << 64 | 6, "dgid": 7 << 64 | 8, "t_class": 0xA5, "flow_label": 0x54321, "hop_lmt": 3}
    asked = perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\2" + bytes(range(190)))
    local = packet(asked)
    with_grh = gmp_packet(asked, SENDER, OWN, sl=2, vl=1, p_key=0x8001, src_qp=SENDERS_QP, psn=0x123, grh=grh).data
    first, second, third = works([with_grh, local, with_grh])
    body = second.data[:8] + GRH.pack(**grh, pay_len=280) + second.data[8:-ICRC_BYTES]
    body = written(written(body, LRH, 0, lnh=3, pkt_len=82), GRH, 8, sgid=grh["dgid"], dgid=grh["sgid"], hop_lmt=255)
    assert second.data == answer(local, bytes([0, 2, 0, 1, *bytes(14), 16]))
    assert first.data == third.data == body + icrc(body)
    assert first.free - first.start == len(first.numbers) + 83


@pytest.mark.parametrize("code", list(PmaAttribute))
@pytest.mark.parametrize("method", [GET, SET])
def test_whatever_is_asked_the_answer_takes_its_steps(method: MadMethod, code: int) -> None:
    work = work_of(packet(perf(method, code, b"\0\1")))
    assert (work.answered, work.outputs) == (True, (WAY_BACK - 1,))
    assert mad(work).method == MadMethod.GET_RESP


def test_no_m_key_is_asked_for() -> None:
    async def script(bench: Bench) -> Work:
        fields = PORT_INFO.record(m_key=5, m_key_protect_bits=3, master_sm_lid=1, lid=1)
        await bench.set(SmaAttribute.PORT_INFO, fields.pack())
        work = await bench.send(packet(perf(SET, PmaAttribute.PORT_COUNTERS, b"\0\1")), slot=0)
        port_info = await bench.get(SmaAttribute.PORT_INFO, m_key=5)
        assert PORT_INFO.unpack(port_info.attribute).m_key_violations == 0
        return work

    assert run(script).answered


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"class_version": 2}, MadStatus.BAD_VERSION),
        ({"class_version": 2, "attribute_id": 0x11}, MadStatus.BAD_VERSION),
        *(({"attribute_id": code}, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED) for code in (0, 0x13, 0x14, 0x19, 0x8012)),
        *(
            ({"attribute_id": code, "attribute_modifier": modifier}, MadStatus.INVALID_ATTRIBUTE_VALUE)
            for code in PmaAttribute
            if code not in (PmaAttribute.CLASS_PORT_INFO, PmaAttribute.PORT_SAMPLES_RESULT)
            for modifier in (1, 1 << 31)
        ),
    ],
)
def test_what_cannot_be_answered_has_a_status_and_the_data_that_came(fields: dict[str, int], status: int) -> None:
    data = bytes([0xFF, 1, *ONES[2:]])
    for method in (GET, SET):
        request = packet(perf(method, PmaAttribute.PORT_COUNTERS, data).replace(**fields))
        work = work_of(request)
        assert (work.answered, of_port(work)) == (True, [])
        assert work.data == answer(request, data, status)


@pytest.mark.parametrize(("parameters", "ports"), [(SWITCH, 3), (ADAPTER, 1)], ids=["switch", "adapter"])
def test_port_select_names_one_port(parameters: NodeParameters, ports: int) -> None:
    codes = (PmaAttribute.PORT_SAMPLES_CONTROL, PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED)
    asked = [(code, port) for code in codes for port in (0, 1, ports, ports + 1, 129, 254)]
    found = works([packet(perf(SET, code, bytes([0, port]))) for code, port in asked], parameters)
    for (_, port), work in zip(asked, found, strict=True):
        there = 1 <= port <= ports
        assert mad(work).status == (MadStatus.OK if there else MadStatus.INVALID_ATTRIBUTE_VALUE)
        assert bool(of_port(work)) == there
        assert all(access.address >> 16 == port for access in of_port(work))


@pytest.mark.parametrize("modifier", [0, 1])
def test_class_port_info_cannot_be_set(modifier: int) -> None:
    request = packet(perf(SET, PmaAttribute.CLASS_PORT_INFO, ONES, attribute_modifier=modifier))
    assert work_of(request).data == answer(request, ONES, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)


def test_class_port_info_has_no_modifier() -> None:
    request = packet(perf(GET, PmaAttribute.CLASS_PORT_INFO, ONES, attribute_modifier=1))
    assert work_of(request).data == answer(request, ONES, MadStatus.INVALID_ATTRIBUTE_VALUE)


def test_class_port_info_is_of_no_port() -> None:
    work = work_of(packet(perf(GET, PmaAttribute.CLASS_PORT_INFO, ONES)))
    expected = CLASS_PORT_INFO.pack(capability_mask=PMA_CAPABILITIES, resp_time_value=PMA_RESP_TIME)
    assert mad(work).status == MadStatus.OK
    assert work.data[MAD_START + 64 : -ICRC_BYTES] == expected.ljust(PMA_DATA_BYTES, b"\0")
    assert of_port(work) == []


# Attributes.


def test_the_tick_is_the_ports_register() -> None:
    address = port_address(2, PortRegister.TICK)
    asked = written(ONES, PORT_SAMPLES_CONTROL, 0, port_select=2, tick=0x5A)
    read, after = works(
        [packet(perf(method, PmaAttribute.PORT_SAMPLES_CONTROL, asked)) for method in (GET, SET)],
        registers={address: 0xA5},
    )
    assert of_port(read) == [Access(144, address, None)]
    assert of_port(after) == [Access(18, address, 0x5A), Access(144, address, None)]
    for work, tick in ((read, 0xA5), (after, 0x5A)):
        expected = PORT_SAMPLES_CONTROL.pack(port_select=2, tick=tick)
        assert work.data[MAD_START + 64 : -ICRC_BYTES] == expected


COUNTS = {
    Counter.SYMBOL_ERROR: 0x1234,
    Counter.LINK_ERROR_RECOVERY: 0x56,
    Counter.LINK_DOWNED: 0x78,
    Counter.RCV_ERRORS: 0x9ABC,
    Counter.RCV_REMOTE_PHYSICAL_ERRORS: 0xDEF0,
    Counter.RCV_SWITCH_RELAY_ERRORS: 0x1357,
    Counter.XMIT_DISCARDS: 0x9BDF,
    Counter.LOCAL_LINK_INTEGRITY_ERRORS: 0xA,
    Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS: 0xB,
    Counter.VL15_DROPPED: 0xFEDC,
    Counter.XMIT_DATA: 0xFFFF_FFFF,
    Counter.RCV_DATA: 0x8765_4321,
    Counter.XMIT_PKTS: 0x1111_2222,
    Counter.RCV_PKTS: 0x3333_4444,
    Counter.XMIT_WAIT: 0x5555_6666,
}
SHOWN = PORT_COUNTERS.record(
    port_select=3,
    counter_select=0xBEEF,
    counter_select2=0x42,
    symbol_error_counter=0x1234,
    link_error_recovery_counter=0x56,
    link_downed_counter=0x78,
    port_rcv_errors=0x9ABC,
    port_rcv_remote_physical_errors=0xDEF0,
    port_rcv_switch_relay_errors=0x1357,
    port_xmit_discards=0x9BDF,
    local_link_integrity_errors=0xA,
    excessive_buffer_overrun_errors=0xB,
    vl15_dropped=0xFEDC,
    port_xmit_data=0xFFFF_FFFF,
    port_rcv_data=0x8765_4321,
    port_xmit_pkts=0x1111_2222,
    port_rcv_pkts=0x3333_4444,
    port_xmit_wait=0x5555_6666,
)


def counter_reads(port: int) -> list[Access]:
    return [
        Access(144 + 8 * word + j, port_address(port, counter), None)
        for word, accesses in COUNTER_ACCESSES.items()
        for j, (counter, _) in enumerate(accesses)
    ]


def holding(seed: int) -> Any:
    """Random cycles in which the test bus has an access."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    held = {cycle for cycle in range(3000) if rng.random() < (0.2, 0.5, 0.8)[seed % 3]}
    return lambda cycle: cycle in held


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_port_counters_shows_the_counters_as_read_at_their_steps(seed: int | None) -> None:
    asked = written(ONES, PORT_COUNTERS, 0, port_select=3, counter_select=0xBEEF, counter_select2=0x42)
    registers = {port_address(3, counter): value for counter, value in COUNTS.items()}
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, asked))
    settings = {} if seed is None else {"holds": holding(seed)}
    (work,) = works([request], registers=registers, **settings)
    assert of_port(work) == counter_reads(3)
    assert work.data == answer(request, SHOWN.pack())


def counter_write(counter: Counter) -> Access:
    """The write that sets this counter of port 3 to what SHOWN says."""
    for word, accesses in COUNTER_ACCESSES.items():
        for j, (one, _) in enumerate(accesses):
            if one is counter:
                return Access(16 + 8 * word + 2 + j, port_address(3, counter), COUNTS[counter])
    raise AssertionError(counter)


SELECTED = {counter: bit for accesses in COUNTER_ACCESSES.values() for counter, bit in accesses}


def selecting(bits: int, base: Record = SHOWN) -> bytes:
    """A Set of PortCounters that names the counters of these 24 bits."""
    return base.replace(counter_select=bits & 0xFFFF, counter_select2=bits >> 16).pack()


@pytest.mark.slow
@pytest.mark.parametrize("bit", range(24))
def test_a_set_of_port_counters_writes_the_counter_of_each_bit(bit: int) -> None:
    one, others = works(
        [packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(bits))) for bits in (1 << bit, 0xFFFFFF ^ 1 << bit)]
    )
    assert one.writes == [counter_write(counter) for counter, own in SELECTED.items() if own == bit]
    assert others.writes == [counter_write(counter) for counter, own in SELECTED.items() if own != bit]
    assert [access for access in of_port(others) if access.value is None] == counter_reads(3)
    shown = attribute(one, PORT_COUNTERS)
    counts = [shown[name] for name in shown if name not in ("port_select", "counter_select", "counter_select2")]
    assert [count for count in counts if count] == [access.value for access in one.writes]


def test_a_set_that_selects_nothing_reads_only() -> None:
    work = work_of(packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(0))))
    assert of_port(work) == counter_reads(3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_set_of_all_counters_while_the_test_bus_is_busy(seed: int) -> None:
    request = packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(0xFFFFFF)))
    (work,) = works([request], holds=holding(seed))
    assert work.writes == [counter_write(counter) for counter in SELECTED]
    expected = SHOWN.replace(counter_select=0xFFFF, counter_select2=0xFF)
    assert work.data == answer(request, expected.pack() + bytes(20))


class ExtendedPort(dict[int, int]):
    """Registers of a port with counters of 64 bits, of which a read of the upper half keeps the lower."""

    def __init__(self, port: int, counters: dict[CounterHigh, int]) -> None:
        super().__init__()
        self.counters = {port_address(port, high): value for high, value in counters.items()}
        self.low = port_address(port, PortRegister.EXTENDED_LOW)

    def get(self, address: int, default: Any = None) -> Any:
        if address in self.counters:
            self[self.low] = self.counters[address] & 0xFFFF_FFFF
            return self.counters[address] >> 32
        return super().get(address, default)


def extended_reads(port: int) -> list[Access]:
    low = port_address(port, PortRegister.EXTENDED_LOW)
    reads = []
    for word, high in EXTENDED_COUNTERS:
        reads.append(Access(144 + 8 * word, port_address(port, high), None))
        reads.append(Access(144 + 8 * (word + 1), low, None))
    return reads


EXTENDED = PORT_COUNTERS_EXTENDED.record(
    port_select=1,
    port_xmit_data=0x0123_4567_89AB_CDEF,
    port_rcv_data=0xFFFF_FFFF_FFFF_FFFF,
    port_xmit_pkts=0x8000_0000_0000_0001,
    port_rcv_pkts=0x0F1E_2D3C_4B5A_6978,
)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_port_counters_extended_shows_all_64_bits(seed: int | None) -> None:
    values = (EXTENDED.port_xmit_data, EXTENDED.port_rcv_data, EXTENDED.port_xmit_pkts, EXTENDED.port_rcv_pkts)
    registers = ExtendedPort(1, {high: value for (_, high), value in zip(EXTENDED_COUNTERS, values, strict=True)})
    registers[lft_address(SENDER)] = WAY_BACK
    asked = written(ONES, PORT_COUNTERS_EXTENDED, 0, port_select=1, counter_select=0x1234)
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS_EXTENDED, asked))
    settings = {} if seed is None else {"holds": holding(seed)}
    bench_settings = {"registers": registers, **settings}

    async def script(bench: Bench) -> Work:
        return await bench.send(request, slot=0)

    work = run(script, **bench_settings)
    assert of_port(work) == extended_reads(1)
    assert work.data == answer(request, EXTENDED.replace(counter_select=0x1234).pack()[:64])


@pytest.mark.parametrize("selected", [0, 1, 2, 4, 8, 0xF, 0xFFF0, 0xFFFF])
@pytest.mark.parametrize("seed", [None, 1])
def test_a_set_of_port_counters_extended_writes_lower_half_and_counter(selected: int, seed: int | None) -> None:
    data = EXTENDED.replace(counter_select=selected, port_unicast_xmit_pkts=1 << 63).pack()
    settings = {} if seed is None else {"holds": holding(seed)}
    (work,) = works([packet(perf(SET, PmaAttribute.PORT_COUNTERS_EXTENDED, data))], **settings)
    expected = []
    for bit, (word, high) in enumerate(EXTENDED_COUNTERS):
        if selected >> bit & 1:
            upper, lower = (int.from_bytes(data[4 * at : 4 * at + 4], "big") for at in (word, word + 1))
            step = 16 + 8 * (word + 1) + 2
            expected += [
                Access(step, port_address(1, PortRegister.EXTENDED_LOW), lower),
                Access(step + 1, port_address(1, high), upper),
            ]
    assert work.writes == expected
    assert [access for access in of_port(work) if access.value is None] == extended_reads(1)


def test_an_adapters_accesses_are_to_port_1() -> None:
    (work,) = works([packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(0xFFFFFF, SHOWN.replace(port_select=1))))])
    (of_adapter,) = works(
        [packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(0xFFFFFF, SHOWN.replace(port_select=1))))], ADAPTER
    )
    assert of_adapter.accesses == of_port(work)


@pytest.mark.parametrize("code", list(DETAILS))
@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
def test_details_are_shown_and_set_one_by_one(parameters: NodeParameters, code: PmaAttribute) -> None:
    layout, words = DETAILS[code]
    places = [(word, j, detail) for word, details in words.items() for j, detail in enumerate(details)]
    names = [field.name for field in layout.fields[2 : 2 + len(places)]]
    registers = {port_address(1, detail): 0xA500 + bit for bit, (_, _, detail) in enumerate(places)}
    reads = [Access(144 + 8 * word + j, port_address(1, detail), None) for word, j, detail in places]
    for chosen, (word, j, detail) in enumerate(places):
        select = 1 << chosen | 0x8000
        asked = written(ONES, layout, 0, port_select=1, counter_select=select)
        read, after = works([packet(perf(method, code, asked)) for method in (GET, SET)], parameters, registers)
        shown = {name: 0xA500 + bit for bit, name in enumerate(names)}
        assert of_port(read) == reads
        assert of_port(after) == [Access(16 + 8 * word + 2 + j, port_address(1, detail), 0xFFFF), *reads]
        for work, values in ((read, shown), (after, {**shown, names[chosen]: 0xFFFF})):
            expected = layout.pack(port_select=1, counter_select=select, **values)
            assert work.data[MAD_START + 64 : -ICRC_BYTES] == expected.ljust(PMA_DATA_BYTES, b"\0")


def test_there_are_no_samples() -> None:
    read, written_to = works([packet(perf(method, PmaAttribute.PORT_SAMPLES_RESULT, ONES)) for method in (GET, SET)])
    assert read.data == answer(packet(perf(GET, PmaAttribute.PORT_SAMPLES_RESULT, ONES)), b"")
    assert mad(written_to).status == MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
    assert of_port(read) == of_port(written_to) == []


# All ports.


def counters_of_every_port(rng: random.Random) -> dict[int, int]:
    """Small numbers, and some near the end of their field or of half of it."""
    values = {}
    for port in (1, 2, 3):
        for register in (*Counter, *CounterHigh, *Detail, PortRegister.EXTENDED_LOW):
            bits = 16 if isinstance(register, Detail) else COUNTER_WIDTHS.get(register, 32)  # type: ignore[call-overload]
            near = rng.choice((0, (1 << bits - 1) - 1, (1 << bits) - 1, (1 << bits) // 3))
            values[port_address(port, register)] = rng.choice((near, max(near - rng.randrange(4), 0), rng.randrange(4)))
    return values


OF_PORTS = [
    code for code in PmaAttribute if code not in (PmaAttribute.CLASS_PORT_INFO, PmaAttribute.PORT_SAMPLES_RESULT)
]


@pytest.mark.slow
@pytest.mark.parametrize("code", OF_PORTS)
@pytest.mark.parametrize("seed", range(2))
def test_of_all_ports_the_sums_are_shown(seed: int, code: PmaAttribute) -> None:
    print(f"seed {seed}")
    registers = counters_of_every_port(random.Random(f"{seed}/{code}"))
    registers |= {port_address(port, PortRegister.TICK): 0x10 * port for port in (1, 2, 3)}
    layout = PMA_ATTRIBUTES[code].format
    assert isinstance(layout, Layout)
    asked = [packet(perf(GET, code, written(ONES, layout, 0, port_select=port))) for port in (1, 2, 3, 255)]
    settings = {"holds": holding(seed)} if seed else {}
    *alone, shown = works(asked, registers=registers, **settings)
    due = [Access(access.step + 1024 * lap, *access[1:]) for lap, work in enumerate(alone) for access in of_port(work)]
    assert of_port(shown) == sorted(due, key=lambda access: shown.numbers.index(access.step))
    assert seed or shown.answered
    for field in layout.fields:
        found, *values = (attribute(work, layout)[field.name] for work in (shown, *alone))
        if code is PmaAttribute.PORT_SAMPLES_CONTROL:
            assert found == (0xFF if field.name == "port_select" else values[-1])
        elif field.name not in ("port_select", "counter_select", "counter_select2"):
            assert found == min(sum(values), field.max), field.name


def test_a_set_of_all_ports_sets_each() -> None:
    asked = written(ONES, PORT_COUNTERS, 0, port_select=255, counter_select=1 << 3, counter_select2=0)
    (work,) = works([packet(perf(SET, PmaAttribute.PORT_COUNTERS, asked))])
    step = 16 + 8 * 2 + 2
    assert work.writes == [
        Access(step + 1024 * (port - 1), port_address(port, Counter.RCV_ERRORS), 0xFFFF) for port in (1, 2, 3)
    ]
    extended = written(ONES, PORT_COUNTERS_EXTENDED, 0, port_select=255, counter_select=0b10)
    (work,) = works([packet(perf(SET, PmaAttribute.PORT_COUNTERS_EXTENDED, extended))])
    assert [(access.address, access.value) for access in work.writes] == [
        (port_address(port, register), 0xFFFF_FFFF)
        for port in (1, 2, 3)
        for register in (PortRegister.EXTENDED_LOW, CounterHigh.RCV_DATA_HIGH)
    ]


# Where it goes, and on which slot.


@pytest.mark.parametrize(("slid", "entry", "output"), [(7, 2, 1), (7, 0, None), (7, 4, None), (128, 2, None)])
def test_an_answer_without_a_route_is_dropped_with_its_set_done(slid: int, entry: int, output: int | None) -> None:
    request = packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(1)), slid=slid)
    work = work_of(request, registers={lft_address(slid): entry})
    assert work.writes == [counter_write(Counter.SYMBOL_ERROR)]
    assert (work.answered, work.outputs) == (True, () if output is None else (output,))


def test_the_slot_is_the_vl_that_the_stored_table_gives_the_sl() -> None:
    request = [packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"), sl=sl) for sl in range(16)]
    assert [work.slot for work in works(request)] == [sl % 4 for sl in range(16)]
    assert [work.slot for work in works(request, ADAPTER)] == [sl % 2 for sl in range(16)]


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
def test_a_table_that_was_set_holds_for_input_0_and_the_output_of_the_route(parameters: NodeParameters) -> None:
    vls = parameters.vls
    table = [(5 * sl + 3) % 16 for sl in range(16)]
    others = SL_TO_VL_MAPPING_TABLE.pack([0] * 16)

    async def script(bench: Bench) -> list[Work]:
        if isinstance(parameters, SwitchParameters):
            for pair in ((1, WAY_BACK), (0, 1), (0, 2), (WAY_BACK, 0), (0, 0)):
                modifier = SL_TO_VL_MODIFIER.to_int(input_port=pair[0], output_port=pair[1])
                await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, others, modifier)
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=WAY_BACK)
        await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE.pack(table), modifier)
        request = perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1")
        return [await bench.send(packet(request, sl=sl), slot=0) for sl in range(16)]

    for vl, work in zip(table, run(script, parameters), strict=True):
        assert work.answered
        if vl < vls:
            assert work.slot == vl
        else:
            assert work.offered is None


@pytest.mark.parametrize("slot", [0, 1])
def test_an_adapters_answer_goes_to_the_side_that_asked(slot: int) -> None:
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"), sl=2)

    async def script(bench: Bench) -> list[Work]:
        return [await bench.send(request, arrival, slot=slot) for arrival in (1, 0)]

    from_link, from_host = run(script, ADAPTER)
    assert (from_link.outputs, from_link.slot) == ((0,), 0)
    assert (from_host.outputs, from_host.slot) == ((1,), slot)
    assert from_link.data == from_host.data
    assert from_link.accesses == from_host.accesses == counter_reads(1)


# Offers.


def test_an_answer_for_which_there_is_no_room_is_dropped_at_once() -> None:
    request = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"))

    async def script(bench: Bench) -> list[Work]:
        bench.take_after = 1
        dropped = await bench.send(request, slot=0)
        bench.take_after = 0
        taken = await bench.send(request, slot=0)
        bench.take_after = 9
        smp = await bench.get(SmaAttribute.NODE_INFO)
        return [dropped, taken, smp]

    dropped, taken, smp = run(script)
    assert (dropped.answered, dropped.data, dropped.free) == (True, b"", dropped.offered + 1)
    assert taken.free == taken.offered + 73
    assert mad(taken).method == MadMethod.GET_RESP
    # VL15 is waited for.
    assert (smp.free - smp.offered, smp.slot) == (73 + 9, SWITCH.vls)


def test_smps_and_requests_in_turn_do_not_meet() -> None:
    request = packet(perf(SET, PmaAttribute.PORT_COUNTERS, selecting(0xFFFFFF)))

    async def script(bench: Bench) -> list[Work]:
        found = []
        for _ in range(2):
            found.append(await bench.send(request, slot=3))
            found.append(await bench.get(SmaAttribute.NODE_INFO, arrival=2))
        return found

    first, info, second, again = run(script)
    assert first.data == second.data
    assert first.accesses == second.accesses
    assert (info.data, info.slot, info.accesses) == (again.data, SWITCH.vls, [])
    assert NODE_INFO.unpack(info.attribute).local_port_num == 2


# What is a request.


class Changed(NamedTuple):
    """A field to change, of a header at this byte."""

    layout: Layout
    start: int
    fields: dict[str, int]


GOOD = packet(perf(GET, PmaAttribute.PORT_COUNTERS, b"\0\1"))
NO_REQUESTS = {
    "with a GRH": Changed(LRH, 0, {"lnh": 3}),
    "no UD SEND Only": Changed(BTH, 8, {"opcode": 0x04}),
    "to QP0": Changed(BTH, 8, {"dest_qp": 0}),
    "to QP2": Changed(BTH, 8, {"dest_qp": 2}),
    "to QP3": Changed(BTH, 8, {"dest_qp": 3}),
    "with another Q_Key": Changed(DETH, 20, {"q_key": Q_KEY_GSI ^ 1}),
    "with no Q_Key": Changed(DETH, 20, {"q_key": 0}),
    "of another BaseVersion": Changed(PERF_MAD, MAD_START, {"base_version": 2}),
    "of the class of SMPs": Changed(PERF_MAD, MAD_START, {"mgmt_class": MgmtClass.SUBN_LID_ROUTED}),
    "of another class": Changed(PERF_MAD, MAD_START, {"mgmt_class": MgmtClass.BM}),
    **{
        f"of method {method:#04x}": Changed(PERF_MAD, MAD_START, {"method": method})
        for method in (0, MadMethod.SEND, MadMethod.TRAP, MadMethod.GET_RESP, 0x82, 0x12)
    },
}


def changed(change: Changed, data: bytes = GOOD) -> bytes:
    body = written(data[:-ICRC_BYTES], change.layout, change.start, **change.fields)
    return body + icrc(body)


def test_what_is_no_request_is_dropped_and_the_agent_free_from_t_on() -> None:
    async def script(bench: Bench) -> list[Work]:
        found = [await bench.send(changed(change), slot=0) for change in NO_REQUESTS.values()]
        found += [
            await bench.send(GOOD),  # on VL15
            await bench.send(GOOD, slot=0, good=False),
            await bench.send(GOOD[:-1] + bytes([GOOD[-1] ^ 1]), slot=0),
            await bench.send(GOOD + bytes(4), slot=0),
        ]
        return [*found, await bench.send(GOOD, slot=0)]

    *dropped, last = run(script)
    assert [work.steps for work in dropped] == [0] * len(dropped)
    assert last.answered


def test_all_else_in_a_request_does_not_matter() -> None:
    others = [
        Changed(LRH, 0, {"sl": 15}),
        Changed(BTH, 8, {"p_key": 1, "se": 1, "mig_req": 1, "ack_req": 1, "psn": 0xFFFFFF}),
        Changed(DETH, 20, {"src_qp": 1}),
        Changed(PERF_MAD, MAD_START, {"status": 0xFFFF, "transaction_id": 0}),
    ]
    for change, work in zip(others, works([changed(change) for change in others]), strict=True):
        assert work.answered
        assert mad(work).status == MadStatus.OK
        assert work.data[:8] == answer(changed(change), b"")[:8]
        assert DETH.unpack(work.data, 20).src_qp == 1
