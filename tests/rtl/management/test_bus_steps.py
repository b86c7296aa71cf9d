"""The agent's accesses to the register bus (docs/management.md, section 4.3)."""

from typing import Any

import pytest

from tests.rtl.management.agent_bench import Access, Bench
from tests.rtl.management.sma_bench import ADAPTER, SET, SWITCH, answers, arbitration, mft, p_key, pair
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.mad import MadMethod
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO_MODIFIER
from wire.port_tables import (
    P_KEY_TABLE,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_TABLE,
    VLArbitrationBlock,
)
from wire.registers import (
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    lft_address,
    mft_address,
    p_key_address,
    sl_to_vl_address,
    vl_arbitration_address,
)
from wire.sma import SMA_ATTRIBUTES, SmaAttribute
from wire.smp import SMP_DATA_BYTES, smp_request

SMALL = SwitchParameters(ports=4, vls=2, mtu=256, buffer_blocks=16, lft_size=128, mft_size=64)
MODIFIERS = {
    SmaAttribute.PORT_INFO: PORT_INFO_MODIFIER.to_int(port=2),
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: SL_TO_VL_MODIFIER.to_int(input_port=1, output_port=2),
}


@pytest.mark.parametrize("attribute", [SmaAttribute(code) for code in SMA_ATTRIBUTES])
@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
def test_whatever_is_asked_the_answers_way_is_read_at_step_2(method: MadMethod, attribute: SmaAttribute) -> None:
    slid, port = 7, 3
    bench = Bench(SMALL)
    bench.registers[lft_address(slid)] = port

    async def script(bench: Any) -> None:
        modifier = MODIFIERS.get(attribute, 0)
        smp = smp_request(method, attribute, modifier, bytes([port]) * SMP_DATA_BYTES, transaction_id=1)
        work = await bench.smp(smp, slid=slid, dlid=9)
        assert work.reads[0] == (2, lft_address(slid))
        assert work.outputs == (port - 1,)

    bench.run(script)


def test_a_switchs_lft_gets_a_block_entry_by_entry() -> None:
    blocks = {0: bytes(range(64)), 1: bytes(range(100, 164))}
    works = answers(SWITCH, [(SET, SmaAttribute.LINEAR_FORWARDING_TABLE, *block) for block in blocks.items()])
    for (block, data), work in zip(blocks.items(), works, strict=True):
        entries = range(64) if block == 0 else range(100 - 64)
        assert work.accesses == [
            Access(16 + 8 * (entry // 4) + 2 + entry % 4, lft_address(64 * block + entry), data[entry])
            for entry in entries
        ]


@pytest.mark.parametrize(("position", "block"), [(0, 0), (2, 0), (1, 1)])
def test_a_switchs_mft_gets_a_block_entry_by_entry_in_the_part_of_its_position(position: int, block: int) -> None:
    parameters = SwitchParameters(ports=33, mtu=256, buffer_blocks=8, mft_size=64)
    masks = [(0x9731 * entry + 0x1234) % (1 << 16) for entry in range(32)]
    asked = (SET, SmaAttribute.MULTICAST_FORWARDING_TABLE, mft(position, block), MULTICAST_FORWARDING_TABLE.pack(masks))
    (work,) = answers(parameters, [asked])
    assert work.accesses == [
        Access(16 + 8 * (entry // 2) + 2 + entry % 2, mft_address(0xC000 + 32 * block + entry, position), masks[entry])
        for entry in range(32)
    ]
    assert work.answered


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


@pytest.mark.parametrize("port", [0, 1, 3])
def test_a_switchs_external_port_gets_its_p_keys_one_by_one(port: int) -> None:
    table = [(0x9731 * entry + 0x1234) % (1 << 16) for entry in range(32)]
    (work,) = answers(SWITCH, [(SET, SmaAttribute.P_KEY_TABLE, p_key(port), P_KEY_TABLE.pack(table))])
    assert work.attribute == P_KEY_TABLE.pack(table)
    assert work.accesses == [
        Access(16 + 8 * (entry // 2) + 2 + entry % 2, p_key_address(port, entry), table[entry])
        for entry in range(32 if port else 0)
    ]
    assert work.answered


def test_an_adapters_p_keys_stay_with_its_agent() -> None:
    table = P_KEY_TABLE.pack(range(0x8000, 0x8020))
    (work,) = answers(ADAPTER, [(SET, SmaAttribute.P_KEY_TABLE, 0, table)])
    assert (work.attribute, work.accesses, work.answered) == (table, [], True)


@pytest.mark.parametrize(
    ("parameters", "port", "entries"),
    [(SWITCH, 3, 8), (ADAPTER, 1, 8), (AdapterParameters(vls=15), 1, 16), (AdapterParameters(vls=1), 1, 0)],
)
def test_a_ports_lists_of_vl_arbitration_get_their_entries(parameters: NodeParameters, port: int, entries: int) -> None:
    table = [(0x9731 * entry + 0x1234) % (1 << 16) for entry in range(32)]
    blocks = {VLArbitrationBlock.HIGH_0_31: VL_ARBITRATION_HIGH, VLArbitrationBlock.LOW_0_31: VL_ARBITRATION_LOW}
    asked = [
        (SET, SmaAttribute.VL_ARBITRATION_TABLE, arbitration(block, port), VL_ARBITRATION_TABLE.pack(table))
        for block in blocks
    ]
    for first, work in zip(blocks.values(), answers(parameters, asked), strict=True):
        assert work.attribute == VL_ARBITRATION_TABLE.pack(table)
        assert work.accesses == [
            Access(
                16 + 8 * (entry // 2) + 2 + entry % 2, vl_arbitration_address(port, first, entry), table[entry] % 4096
            )
            for entry in range(entries)
        ]
