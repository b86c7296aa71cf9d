"""Where attributes are kept."""

import pytest

from rtl.management.attribute_memory import AttributeMap
from wire.parameters import AdapterParameters, SwitchParameters
from wire.sma import SmaAttribute


@pytest.mark.parametrize(
    ("ports", "lft_size", "mft_size", "words"),
    [
        # LEDs, SL to VL, three blocks, PortInfo, P_Keys, VL arbitration, SwitchInfo, LFT, MFT
        (2, 64, 32, 3 + 18 + 48 + 48 + 48 + 96 + 16 + 16 + 16),
        (8, 1024, 256, 9 + 162 + 48 + 144 + 144 + 288 + 16 + 256 + 128),
        (64, 1025, 64, 65 + 8450 + 48 + 1040 + 1040 + 2080 + 16 + 272 + 160),
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
