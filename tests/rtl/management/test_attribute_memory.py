"""Where attributes are kept."""

import random
from typing import Any

import pytest

from rtl.management.attribute_memory import AttributeMap
from tests.rtl.management.agent_bench import IDENTITY
from tests.rtl.management.sma_bench import ADAPTER, GET, OK, SET, SWITCH, answers, arbitration, mft, p_key, padded, pair
from wire.codes import P_KEY_DEFAULT
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE
from wire.node_info import DEVICE_ID, NODE_INFO, NodeType, node_description
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.port_tables import GUID_INFO, P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO


@pytest.mark.parametrize(
    ("ports", "lft_size", "mft_size", "words"),
    [
        # LEDs, SL to VL, four blocks (two are Notices), PortInfo, P_Keys, VL arbitration, SwitchInfo, LFT, MFT
        (2, 64, 32, 3 + 18 + 64 + 48 + 48 + 96 + 16 + 16 + 16),
        (8, 1024, 256, 9 + 162 + 64 + 144 + 144 + 288 + 16 + 256 + 128),
        (64, 1025, 64, 65 + 8450 + 64 + 1040 + 1040 + 2080 + 16 + 272 + 160),
    ],
)
def test_a_switch_keeps_each_attribute_of_each_port_once(ports: int, lft_size: int, mft_size: int, words: int) -> None:
    attributes = AttributeMap(SwitchParameters(ports=ports, lft_size=lft_size, mft_size=mft_size))
    assert len(attributes.init) == words


def test_an_adapter_keeps_everything_once() -> None:
    attributes = AttributeMap(AdapterParameters())
    assert len(attributes.init) == 1 + 2 + 48 + 16 + 16 + 32
    assert SmaAttribute.SWITCH_INFO not in attributes.base


@pytest.mark.parametrize("parameters", [SwitchParameters(ports=2), AdapterParameters()], ids=["switch", "adapter"])
def test_16_words_can_be_read_of_every_attribute(parameters: SwitchParameters | AdapterParameters) -> None:
    attributes = AttributeMap(parameters)
    assert all(base + 16 <= len(attributes.init) for base in attributes.base.values())


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
        linear_fdb_cap=100,
        multicast_fdb_cap=64,
        linear_fdb_top=99,
        default_multicast_primary_port=255,
        default_multicast_not_primary_port=255,
        life_time_value=31,
        partition_enforcement_cap=32,
        inbound_enforcement_cap=1,
        outbound_enforcement_cap=1,
        filter_raw_inbound_cap=1,
        filter_raw_outbound_cap=1,
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
