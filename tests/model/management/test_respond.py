"""What the agent answers to a Get or Set of whatever attribute (docs/management.md, section 4.1)."""

import pytest

from tests.model.management.agent_bench import ADAPTER, BLOCK, SWITCH, Bench, get
from wire.mad import MadMethod, MadStatus, mad_data
from wire.sma import SMA_ATTRIBUTES, SmaAttribute

A = SmaAttribute

BOTH = {A.NODE_DESCRIPTION, A.NODE_INFO, A.GUID_INFO, A.PORT_INFO, A.P_KEY_TABLE, A.SL_TO_VL_MAPPING_TABLE}
BOTH |= {A.VL_ARBITRATION_TABLE, A.VENDOR_DIAG, A.LED_INFO}
SWITCHES = {A.SWITCH_INFO, A.LINEAR_FORWARDING_TABLE, A.MULTICAST_FORWARDING_TABLE}
MODIFIERS = {A.VL_ARBITRATION_TABLE: 0x10001, A.LED_INFO: 1}
"""Where 0 is not allowed."""


@pytest.mark.parametrize("attribute", [*SMA_ATTRIBUTES, 0, 0xFF00])
@pytest.mark.parametrize("is_switch", [True, False])
def test_the_attributes_of_a_node(attribute, is_switch):
    bench = Bench(SWITCH if is_switch else ADAPTER)
    known = attribute in BOTH or (is_switch and attribute in SWITCHES)
    if attribute == A.SM_INFO and not is_switch:
        bench.ask(get(attribute))
        assert bench.run().answer().method == MadMethod.GET, "it goes to the host"
        return
    for data in (bytes(64), BLOCK):
        request = get(attribute, MODIFIERS.get(attribute, 0)).replace(data=int.from_bytes(data, "big"))
        answer = bench.carry_out(request)
        assert answer.status == (MadStatus.OK if known else MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
        assert known or mad_data(answer) == data


@pytest.mark.parametrize("attribute", [A.NODE_DESCRIPTION, A.NODE_INFO, A.SWITCH_INFO, A.GUID_INFO, A.VENDOR_DIAG])
@pytest.mark.parametrize("modifier", [1, 1 << 16, 1 << 31])
def test_an_attribute_without_modifier_has_none(switch, attribute, modifier):
    data = bytes(64)
    assert switch.read(attribute, modifier) == (MadStatus.INVALID_ATTRIBUTE_VALUE, data)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_class_version_is_answered_so(switch, version):
    answer = switch.carry_out(get(0, class_version=version, attribute_modifier=99))
    assert answer.status == MadStatus.BAD_VERSION


def test_a_directed_answer_s_status_leaves_room_for_d(switch):
    answer = switch.carry_out(get(0))
    assert (answer.d, answer.status) == (1, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
