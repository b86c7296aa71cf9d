"""Attributes of the Performance Management Agent (docs/management.md, section 6)."""

import random
from typing import Any

import pytest

from tests.agent_steps import LAP, slot_for_answer, slot_in_set
from tests.rtl.management.agent_bench import MAD_START, Access, Bench, Work
from tests.rtl.management.pma_bench import (
    ADAPTER,
    COUNTER_ACCESSES,
    COUNTS,
    DETAILS,
    EXTENDED_COUNTERS,
    GET,
    ONES,
    SENDER,
    SET,
    SHOWN,
    SWITCH,
    WAY_BACK,
    answer,
    attribute,
    counter_reads,
    counter_write,
    mad,
    of_port,
    packet,
    perf,
    run,
    selecting,
    work_of,
    works,
    written,
)
from wire.crc import ICRC_BYTES
from wire.layout import Layout
from wire.mad import MadStatus
from wire.parameters import NodeParameters
from wire.pma import (
    PMA_ATTRIBUTES,
    PMA_DATA_BYTES,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_SAMPLES_CONTROL,
    PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
    PORT_VL_XMIT_WAIT_COUNTERS,
    PmaAttribute,
)
from wire.registers import (
    COUNTER_WIDTHS,
    VL_XMIT_WAIT,
    Counter,
    CounterHigh,
    Detail,
    PortRegister,
    lft_address,
    port_address,
)

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


SELECTED = {counter: bit for accesses in COUNTER_ACCESSES.values() for counter, bit in accesses}


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
        reads.append(Access(slot_for_answer(word), port_address(port, high), None))
        reads.append(Access(slot_for_answer(word + 1), low, None))
    return reads


EXTENDED = PORT_COUNTERS_EXTENDED.record(
    port_select=1,
    port_xmit_data=0x0123_4567_89AB_CDEF,
    port_rcv_data=0xFFFF_FFFF_FFFF_FFFF,
    port_xmit_pkts=0x8000_0000_0000_0001,
    port_rcv_pkts=0x0F1E_2D3C_4B5A_6978,
    port_unicast_xmit_pkts=0x1111_2222_3333_4444,
    port_unicast_rcv_pkts=0x5555_6666_7777_8888,
    port_multicast_xmit_pkts=0xFFFF_FFFF_0000_0000,
    port_multicast_rcv_pkts=0x9999_AAAA_BBBB_CCCC,
)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_port_counters_extended_shows_all_64_bits(seed: int | None) -> None:
    values = [EXTENDED[field.name] for field in PORT_COUNTERS_EXTENDED.fields[2:]]
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
    assert work.data == answer(request, EXTENDED.replace(counter_select=0x1234).pack())


@pytest.mark.parametrize("selected", [0, 1, 8, 0x10, 0x80, 0xF, 0xFF00, 0xFFFF])
@pytest.mark.parametrize("seed", [None, 1])
def test_a_set_of_port_counters_extended_writes_lower_half_and_counter(selected: int, seed: int | None) -> None:
    data = EXTENDED.replace(counter_select=selected).pack()
    settings = {} if seed is None else {"holds": holding(seed)}
    (work,) = works([packet(perf(SET, PmaAttribute.PORT_COUNTERS_EXTENDED, data))], **settings)
    expected = []
    for bit, (word, high) in enumerate(EXTENDED_COUNTERS):
        if selected >> bit & 1:
            upper, lower = (int.from_bytes(data[4 * at : 4 * at + 4], "big") for at in (word, word + 1))
            step = slot_in_set(word + 1) + 2
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


@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
def test_the_waiting_of_each_vl_is_shown_and_set(parameters: NodeParameters) -> None:
    layout, code = PORT_VL_XMIT_WAIT_COUNTERS, PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS
    registers = {port_address(1, VL_XMIT_WAIT + vl): 0xA500 + vl for vl in range(16)}
    shown = {f"port_vl_xmit_wait{vl}": 0xA500 + vl for vl in range(16)}
    reads = [
        Access(slot_for_answer(1 + vl // 2) + vl % 2, port_address(1, VL_XMIT_WAIT + vl), None) for vl in range(16)
    ]
    asked = [
        packet(perf(method, code, written(ONES, layout, 0, port_select=1, counter_select=0x8421)))
        for method in (GET, SET)
    ]
    read, after = works(asked, parameters, registers)
    assert of_port(read) == reads
    chosen = [0, 5, 10, 15]
    writes = [
        Access(slot_in_set(1 + vl // 2) + 2 + vl % 2, port_address(1, VL_XMIT_WAIT + vl), 0xFFFF) for vl in chosen
    ]
    assert of_port(after) == [*writes, *reads]
    for work, values in ((read, shown), (after, shown | {f"port_vl_xmit_wait{vl}": 0xFFFF for vl in chosen})):
        expected = layout.pack(port_select=1, counter_select=0x8421, **values)
        assert work.data[MAD_START + 64 : -ICRC_BYTES] == expected.ljust(PMA_DATA_BYTES, b"\0")


@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
@pytest.mark.parametrize("select", [0, 0x5A01])
def test_flow_control_errors_are_set_as_counter_select_says(parameters: NodeParameters, select: int) -> None:
    layout, code = PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS
    register, low = (port_address(1, of) for of in (PortRegister.FLOW_CTL_UPDATE_ERRORS, PortRegister.EXTENDED_LOW))
    data = written(ONES, layout, 0, port_select=1, counter_select=select, port_vl_xmit_flow_ctl_update_errors1=1)
    asked = [packet(perf(method, code, data)) for method in (GET, SET)]
    read, after = works(asked, parameters, {register: 0x9000_0000})
    reads = [Access(slot_for_answer(1), register, None)]
    step = slot_in_set(1) + 2
    assert of_port(read) == reads
    assert of_port(after) == [Access(step, low, select), Access(step + 1, register, 0xDFFF_FFFF), *reads]
    expected = layout.pack(
        port_select=1,
        counter_select=select,
        port_vl_xmit_flow_ctl_update_errors0=2,
        port_vl_xmit_flow_ctl_update_errors1=1,
    )
    assert read.data[MAD_START + 64 : -ICRC_BYTES] == expected.ljust(PMA_DATA_BYTES, b"\0")


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
        errors = rng.getrandbits(2 * SWITCH.vls) << 32 - 2 * SWITCH.vls
        values[port_address(port, PortRegister.FLOW_CTL_UPDATE_ERRORS)] = errors
        of_vls = [VL_XMIT_WAIT + vl for vl in range(16)]
        for register in (*Counter, *CounterHigh, *Detail, *of_vls, PortRegister.EXTENDED_LOW):
            bits = 16 if register in (*Detail, *of_vls) else COUNTER_WIDTHS.get(register, 32)  # type: ignore[call-overload]
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
    due = [Access(access.step + LAP * lap, *access[1:]) for lap, work in enumerate(alone) for access in of_port(work)]
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
        Access(step + LAP * (port - 1), port_address(port, Counter.RCV_ERRORS), 0xFFFF) for port in (1, 2, 3)
    ]
    extended = written(ONES, PORT_COUNTERS_EXTENDED, 0, port_select=255, counter_select=0b10)
    (work,) = works([packet(perf(SET, PmaAttribute.PORT_COUNTERS_EXTENDED, extended))])
    assert [(access.address, access.value) for access in work.writes] == [
        (port_address(port, register), 0xFFFF_FFFF)
        for port in (1, 2, 3)
        for register in (PortRegister.EXTENDED_LOW, CounterHigh.RCV_DATA_HIGH)
    ]
