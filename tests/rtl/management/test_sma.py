"""The Subnet Management Agent: attributes and what they are kept as."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.rtl.management.agent_bench import IDENTITY, Access, Bench, Work, request
from wire.codes import P_KEY_DEFAULT
from wire.forwarding_tables import (
    LFT_NO_ROUTE,
    LINEAR_FORWARDING_TABLE,
    MFT_MODIFIER,
    MULTICAST_FORWARDING_TABLE,
)
from wire.mad import MadMethod, MadStatus
from wire.node_info import DEVICE_ID, NODE_INFO, NodeType, node_description
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.port_tables import (
    GUID_INFO,
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
)
from wire.registers import NodeRegister, lft_address, node_address, sl_to_vl_address
from wire.sma import LED_INFO, SmaAttribute
from wire.switch_info import SWITCH_INFO

SWITCH = SwitchParameters(ports=3, vls=4, lft_size=100, mft_size=64)
ADAPTER = AdapterParameters(vls=2)
OK, VERSION = MadStatus.OK, MadStatus.BAD_VERSION
UNSUPPORTED, INVALID = MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED, MadStatus.INVALID_ATTRIBUTE_VALUE
GET, SET = MadMethod.GET, MadMethod.SET

Asked = tuple[int, int, int, bytes]
"""Method, attribute, modifier, data."""
Modifiers = dict[int, list[int]]
"""By attribute."""


def answers(parameters: NodeParameters, asked: Iterable[Asked], arrival: int = 1) -> list[Work]:
    """What becomes of requests, one after the other."""
    bench = Bench(parameters)
    found: list[Work] = []

    async def script(bench: Bench) -> None:
        for method, attribute, modifier, data in asked:
            found.append(await bench.smp(request(method, attribute, modifier, data), arrival))  # type: ignore[arg-type]

    bench.run(script)
    return found


def padded(attribute: bytes) -> bytes:
    return attribute.ljust(64, b"\0")


def p_key(port: int, block: int = 0) -> int:
    return P_KEY_TABLE_MODIFIER.to_int(port=port, block=block)


def pair(input_port: int, output_port: int) -> int:
    return SL_TO_VL_MODIFIER.to_int(input_port=input_port, output_port=output_port)


def arbitration(block: int, port: int) -> int:
    return VL_ARBITRATION_MODIFIER.to_int(block=block, port=port)


def mft(position: int, block: int) -> int:
    return MFT_MODIFIER.to_int(position=position, block=block)


NODE_OF_SWITCH = NODE_INFO.pack(
    node_type=NodeType.SWITCH,
    num_ports=3,
    system_image_guid=IDENTITY.node_guid,
    node_guid=IDENTITY.node_guid,
    port_guid=IDENTITY.port_guid,
    partition_cap=32,
    device_id=DEVICE_ID,
    revision=1,
    local_port_num=2,
)
NODE_OF_ADAPTER = NODE_INFO["num_ports"].write(NODE_INFO["node_type"].write(NODE_OF_SWITCH, NodeType.CA), 1)
NODE_OF_ADAPTER = NODE_INFO["local_port_num"].write(NODE_OF_ADAPTER, 1)
LFT = LINEAR_FORWARDING_TABLE.pack([LFT_NO_ROUTE] * 64)
P_KEYS = P_KEY_TABLE.pack([P_KEY_DEFAULT])

AT_RESET_IN_SWITCH = {
    (SmaAttribute.NODE_DESCRIPTION, 0): node_description(IDENTITY.description),
    (SmaAttribute.NODE_INFO, 0): NODE_OF_SWITCH,
    (SmaAttribute.SWITCH_INFO, 0): SWITCH_INFO.pack(
        linear_fdb_cap=100, multicast_fdb_cap=64, linear_fdb_top=99, partition_enforcement_cap=32
    ),
    (SmaAttribute.GUID_INFO, 0): GUID_INFO.pack([IDENTITY.port_guid]),
    (SmaAttribute.P_KEY_TABLE, p_key(0)): P_KEYS,
    (SmaAttribute.P_KEY_TABLE, p_key(3)): P_KEYS,
    (SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(0, 0)): SL_TO_VL_MAPPING_TABLE.pack(sl % 4 for sl in range(16)),
    (SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(3, 3)): SL_TO_VL_MAPPING_TABLE.pack(sl % 4 for sl in range(16)),
    (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(1, 1)): b"",
    (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(3, 3)): b"",
    (SmaAttribute.LINEAR_FORWARDING_TABLE, 0): LFT,
    (SmaAttribute.LINEAR_FORWARDING_TABLE, 1): LFT,
    (SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(0, 1)): b"",
    (SmaAttribute.VENDOR_DIAG, 0): b"",
    (SmaAttribute.LED_INFO, 1): b"",
}

AT_RESET_IN_ADAPTER = {
    (SmaAttribute.NODE_DESCRIPTION, 0): node_description(IDENTITY.description),
    (SmaAttribute.NODE_INFO, 0): NODE_OF_ADAPTER,
    (SmaAttribute.GUID_INFO, 0): GUID_INFO.pack([IDENTITY.port_guid]),
    (SmaAttribute.P_KEY_TABLE, p_key(0)): P_KEYS,
    (SmaAttribute.P_KEY_TABLE, p_key(77)): P_KEYS,
    (SmaAttribute.SL_TO_VL_MAPPING_TABLE, 0xFFFFFFFF): SL_TO_VL_MAPPING_TABLE.pack(sl % 2 for sl in range(16)),
    (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(1, 99)): b"",
    (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(3, 0)): b"",
    (SmaAttribute.VENDOR_DIAG, 0): b"",
    (SmaAttribute.LED_INFO, 0): b"",
    (SmaAttribute.LED_INFO, 1): b"",
}


@pytest.mark.parametrize(
    ("parameters", "arrival", "expected"),
    [(SWITCH, 2, AT_RESET_IN_SWITCH), (ADAPTER, 1, AT_RESET_IN_ADAPTER)],
    ids=["switch", "adapter"],
)
def test_attributes_at_reset(parameters: NodeParameters, arrival: int, expected: dict[Any, bytes]) -> None:
    works = answers(parameters, [(GET, *named, b"\xff" * 64) for named in expected], arrival)
    for (named, attribute), work in zip(expected.items(), works, strict=True):
        assert (work.status, work.attribute, work.accesses) == (OK, padded(attribute), []), named


ALLOWED_IN_SWITCH = {
    SmaAttribute.PORT_INFO: [0, 3, 0x8000_0003],
    SmaAttribute.P_KEY_TABLE: [p_key(0), p_key(3)],
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: [pair(0, 3), pair(3, 0)],
    SmaAttribute.VL_ARBITRATION_TABLE: [arbitration(1, 3), arbitration(3, 1)],
    SmaAttribute.LINEAR_FORWARDING_TABLE: [0, 1],
    SmaAttribute.MULTICAST_FORWARDING_TABLE: [mft(0, 0), mft(0, 1)],
    SmaAttribute.LED_INFO: [1, 3],
}
NOT_ALLOWED_IN_SWITCH = {
    SmaAttribute.NODE_DESCRIPTION: [1, 1 << 31],
    SmaAttribute.NODE_INFO: [1, 1 << 31],
    SmaAttribute.SWITCH_INFO: [1, 1 << 31],
    SmaAttribute.GUID_INFO: [1, 1 << 31],
    SmaAttribute.VENDOR_DIAG: [1],
    SmaAttribute.PORT_INFO: [4, 255, 0x100, 0x4000_0000],
    SmaAttribute.P_KEY_TABLE: [p_key(4), p_key(0, block=1), p_key(0x8000)],
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: [pair(4, 0), pair(0, 4), 1 << 16, 1 << 31],
    SmaAttribute.VL_ARBITRATION_TABLE: [
        *(arbitration(block, 1) for block in (0, 2, 4, 0x101)),
        *(arbitration(1, port) for port in (0, 4, 0x8001)),
    ],
    SmaAttribute.LINEAR_FORWARDING_TABLE: [2, 1 << 31],
    SmaAttribute.MULTICAST_FORWARDING_TABLE: [mft(1, 0), mft(0, 2), mft(0, 1 << 27)],
    SmaAttribute.LED_INFO: [0, 4, 1 << 31],
}
ALLOWED_IN_ADAPTER = {SmaAttribute.PORT_INFO: [0, 1, 0x8000_0001]}
NOT_ALLOWED_IN_ADAPTER = {
    SmaAttribute.NODE_INFO: [1],
    SmaAttribute.PORT_INFO: [2],
    SmaAttribute.P_KEY_TABLE: [p_key(0, block=1), p_key(9, block=1)],
    SmaAttribute.VL_ARBITRATION_TABLE: [arbitration(0, 1), arbitration(2, 1)],
    SmaAttribute.LED_INFO: [2],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "allowed", "not_allowed"),
    [
        (SWITCH, ALLOWED_IN_SWITCH, NOT_ALLOWED_IN_SWITCH),
        (ADAPTER, ALLOWED_IN_ADAPTER, NOT_ALLOWED_IN_ADAPTER),
    ],
    ids=["switch", "adapter"],
)
def test_modifiers(
    parameters: NodeParameters, allowed: dict[int, list[int]], not_allowed: dict[int, list[int]]
) -> None:
    given = b"\x5a" * 64
    cases = [(attribute, modifier, OK) for attribute, modifiers in allowed.items() for modifier in modifiers]
    cases += [(attribute, modifier, INVALID) for attribute, modifiers in not_allowed.items() for modifier in modifiers]
    works = answers(parameters, [(GET, attribute, modifier, given) for attribute, modifier, _ in cases])
    for (attribute, modifier, status), work in zip(cases, works, strict=True):
        assert work.status == status, (attribute, hex(modifier))
        assert work.steps == 288
        if status is INVALID:
            assert (work.attribute, work.accesses) == (given, [])


NOT_OF_ADAPTERS = (
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
)
UNKNOWN = (
    SmaAttribute.NOTICE,
    SmaAttribute.RANDOM_FORWARDING_TABLE,
    SmaAttribute.LINK_SPEED_WIDTH_PAIRS_TABLE,
    0,
    0x110,
)
READ_ONLY = (SmaAttribute.NODE_DESCRIPTION, SmaAttribute.NODE_INFO, SmaAttribute.VENDOR_DIAG)


@pytest.mark.parametrize(
    ("parameters", "unsupported"),
    [(SWITCH, (*UNKNOWN, SmaAttribute.SM_INFO)), (ADAPTER, (*UNKNOWN, *NOT_OF_ADAPTERS))],
    ids=["switch", "adapter"],
)
def test_attributes_and_methods_that_are_not_supported(parameters: NodeParameters, unsupported: Any) -> None:
    given = b"\x5a" * 64
    asked = [(GET, attribute, 0, given) for attribute in unsupported]
    asked += [(SET, attribute, 0, given) for attribute in (*unsupported, *READ_ONLY)]
    asked += [(SET, SmaAttribute.NODE_INFO, 1, given)]
    for work in answers(parameters, asked):
        assert (work.status, work.attribute, work.steps, work.accesses) == (UNSUPPORTED, given, 288, [])


def test_another_class_version_is_not_supported_whatever_is_asked() -> None:
    bench = Bench(SWITCH)
    given = b"\xff" * 64

    async def script(bench: Bench) -> None:
        for attribute in (SmaAttribute.SWITCH_INFO, SmaAttribute.SM_INFO):
            work = await bench.smp(request(SET, attribute, 3, given, class_version=2))
            assert (work.status, work.attribute, work.steps, work.accesses) == (VERSION, given, 288, [])
        work = await bench.get(SmaAttribute.SWITCH_INFO)
        assert SWITCH_INFO.unpack(work.attribute).default_port == 0

    bench.run(script)


def stored(parameters: NodeParameters) -> dict[tuple[int, int], int]:
    """By attribute and modifier of everything that is stored: the bytes that are."""
    if isinstance(parameters, AdapterParameters):
        return {
            (SmaAttribute.P_KEY_TABLE, 0): 64,
            (SmaAttribute.SL_TO_VL_MAPPING_TABLE, 0): 8,
            (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(1, 0)): 64,
            (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(3, 0)): 64,
        }
    assert isinstance(parameters, SwitchParameters)
    ports = range(parameters.ports + 1)
    found = {(SmaAttribute.P_KEY_TABLE, p_key(port)): 64 for port in ports}
    found |= {(SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(i, o)): 8 for i in ports for o in ports}
    found |= {
        (SmaAttribute.VL_ARBITRATION_TABLE, arbitration(block, port)): 64 for port in ports[1:] for block in (1, 3)
    }
    found |= {(SmaAttribute.LINEAR_FORWARDING_TABLE, block): 64 for block in range(-(-parameters.lft_size // 64))}
    found |= {
        (SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(position, block)): 64
        for position in range(-(-len(ports) // 16))
        for block in range(parameters.mft_size // 32)
    }
    return found


@pytest.mark.parametrize(
    "parameters",
    [
        ADAPTER,
        pytest.param(SwitchParameters(ports=2, lft_size=130, mft_size=64), marks=pytest.mark.slow),
        pytest.param(SwitchParameters(ports=16, lft_size=64, mft_size=96), marks=pytest.mark.slow),
    ],
    ids=["adapter", "2 ports", "16 ports"],
)
def test_everything_that_is_stored_is_read_back_from_a_place_of_its_own(parameters: NodeParameters) -> None:
    seed = 4711
    print(f"seed {seed}")
    rng = random.Random(seed)
    places = stored(parameters)
    if len(places) > 60:
        places = {named: places[named] for named in rng.sample(sorted(places), 60)}
    data = {named: rng.randbytes(64) for named in places}
    order = list(places)
    rng.shuffle(order)
    asked = [(SET, *named, data[named]) for named in order] + [(GET, *named, b"") for named in places]
    works = answers(parameters, asked)
    for named, work in zip([*order, *places], works, strict=True):
        assert (work.status, work.attribute) == (OK, padded(data[named][: places[named]])), named


def test_guids_behind_the_first_are_stored() -> None:
    given = bytes(range(64))
    expected = IDENTITY.port_guid.to_bytes(8, "big") + given[8:]
    asked = [(SET, SmaAttribute.GUID_INFO, 0, given), (GET, SmaAttribute.GUID_INFO, 0, b"")]
    assert [work.attribute for work in answers(ADAPTER, asked)] == [expected, expected]


def test_leds() -> None:
    on, off = LED_INFO.pack(led_mask=1), LED_INFO.pack()
    led = SmaAttribute.LED_INFO
    asked = [
        (SET, led, 2, b"\xff" * 64),
        (GET, led, 1, b""),
        (GET, led, 2, b""),
        (SET, led, 2, off),
        (GET, led, 2, b""),
    ]
    found = [work.attribute for work in answers(SWITCH, asked)]
    assert found == [padded(state) for state in (on, off, on, off, off)]


def test_a_switchs_lft_gets_a_block_entry_by_entry() -> None:
    blocks = {0: bytes(range(64)), 1: bytes(range(100, 164))}
    works = answers(SWITCH, [(SET, SmaAttribute.LINEAR_FORWARDING_TABLE, *block) for block in blocks.items()])
    for (block, data), work in zip(blocks.items(), works, strict=True):
        entries = range(64) if block == 0 else range(100 - 64)
        assert work.accesses == [
            Access(16 + 8 * (entry // 4) + 2 + entry % 4, lft_address(64 * block + entry), data[entry])
            for entry in entries
        ]


def test_a_switchs_sl_to_vl_table_gets_the_entries_of_external_ports() -> None:
    table = SL_TO_VL_MAPPING_TABLE.pack((5 * sl + 3) % 16 for sl in range(16))
    pairs = [(2, 3), (0, 3), (2, 0), (3, 3)]
    works = answers(SWITCH, [(SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(*ports), table) for ports in pairs])
    for (input_port, output_port), work in zip(pairs, works, strict=True):
        if not input_port or not output_port:
            assert work.accesses == []
            continue
        assert work.accesses == [
            Access(16 + sl + 2, sl_to_vl_address(input_port, output_port, sl), (5 * sl + 3) % 16) for sl in range(16)
        ]


def test_what_a_set_of_switch_info_changes() -> None:
    ones = b"\xff" * 64
    top = SWITCH_INFO["linear_fdb_top"].write(ones, 98)

    async def script(bench: Bench) -> None:
        work = await bench.set(SmaAttribute.SWITCH_INFO, top)
        expected = SWITCH_INFO.record(
            linear_fdb_cap=100,
            multicast_fdb_cap=64,
            linear_fdb_top=98,
            default_port=255,
            default_multicast_primary_port=255,
            default_multicast_not_primary_port=255,
            life_time_value=31,
            partition_enforcement_cap=32,
            multicast_fdb_top=0xFFFF,
        )
        assert (work.status, work.attribute) == (OK, padded(expected.pack()))
        assert work.accesses == [Access(26, node_address(NodeRegister.LINEAR_FDB_TOP), 98)]

        # A LinearFDBTop that the table does not have is refused, and all else taken.
        other = SWITCH_INFO.record(linear_fdb_top=100, default_port=7)
        work = await bench.set(SmaAttribute.SWITCH_INFO, other.pack())
        expected = SWITCH_INFO.record(
            linear_fdb_cap=100, multicast_fdb_cap=64, linear_fdb_top=98, default_port=7, partition_enforcement_cap=32
        )
        assert (work.status, work.attribute, work.accesses) == (INVALID, padded(expected.pack()), [])

    Bench(SWITCH).run(script)


def test_linear_fdb_top_bounds_the_routes_of_the_agents_own_packets() -> None:
    async def script(bench: Bench) -> None:
        for lid in (50, 51):
            bench.registers[lft_address(lid)] = 2
        for top, outputs in ((99, (1,)), (51, (1,)), (50, ()), (49, ()), (98, (1,))):
            await bench.set(SmaAttribute.SWITCH_INFO, SWITCH_INFO.pack(linear_fdb_top=top))
            work = await bench.smp(request(GET, SmaAttribute.NODE_INFO, dr_dlid=1, hop_pointer=2), slid=51, dlid=1)
            assert work.outputs == outputs, top
            assert work.reads == [(2, lft_address(51))]

    Bench(SWITCH).run(script)


def test_port_state_change_is_set_by_a_state_and_cleared_by_writing_1() -> None:
    clear = SWITCH_INFO.pack(linear_fdb_top=99, port_state_change=1)
    keep = SWITCH_INFO.pack(linear_fdb_top=99)

    def flag(work: Work) -> int:
        return SWITCH_INFO.unpack(work.attribute).port_state_change

    async def change(bench: Bench) -> None:
        bench.drive(state_reported=1)
        await bench.cycle()
        bench.drive(state_reported=0)

    async def script(bench: Bench) -> None:
        assert flag(await bench.get(SmaAttribute.SWITCH_INFO)) == 0
        await change(bench)
        assert flag(await bench.get(SmaAttribute.SWITCH_INFO)) == 1
        assert flag(await bench.set(SmaAttribute.SWITCH_INFO, keep)) == 1
        assert flag(await bench.set(SmaAttribute.SWITCH_INFO, clear)) == 0
        assert flag(await bench.get(SmaAttribute.SWITCH_INFO)) == 0

    Bench(SWITCH).run(script)


@pytest.mark.parametrize(
    ("method", "step", "seen"),
    [
        # Visible in the cycle after: step 160 reads it, step 34 clears it.
        (GET, 158, 1),
        (GET, 159, 1),
        (GET, 160, 0),
        (SET, 33, 0),
        (SET, 34, 1),
        (SET, 35, 1),
    ],
)
def test_in_which_cycles_port_state_change_is_read_and_cleared(method: MadMethod, step: int, seen: int) -> None:
    data = SWITCH_INFO.pack(linear_fdb_top=99, port_state_change=1)
    bench = Bench(SWITCH)

    async def script(bench: Bench) -> None:
        # Step 0 of a packet sent at once comes 80 cycles after its grant.
        bench.at[80 + step] = lambda: bench.drive(state_reported=1)
        bench.at[80 + step + 1] = lambda: bench.drive(state_reported=0)
        work = await bench.smp(request(method, SmaAttribute.SWITCH_INFO, 0, data))
        assert work.start == 80
        assert SWITCH_INFO.unpack(work.attribute).port_state_change == seen
        later = await bench.get(SmaAttribute.SWITCH_INFO)
        assert SWITCH_INFO.unpack(later.attribute).port_state_change == (seen if method is SET else 1)

    bench.run(script)


def test_the_last_port_of_the_largest_switch() -> None:
    table = SL_TO_VL_MAPPING_TABLE.pack(15 - sl for sl in range(16))
    masks = MULTICAST_FORWARDING_TABLE.pack(range(100, 132))
    asked: list[Asked] = [
        (SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(64, 64), table),
        (SET, SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(4, 7), masks),
        (GET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, pair(64, 64), b""),
        (GET, SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(4, 7), b""),
        (GET, SmaAttribute.LED_INFO, 64, b""),
    ]
    works = answers(SwitchParameters(ports=64), asked, arrival=64)
    assert [work.attribute for work in works] == [*[padded(table), padded(masks)] * 2, bytes(64)]
    assert all(work.outputs == (63,) for work in works)
