"""Lists of VL arbitration, and the text that OpenSM's options have for them."""

import pytest

from wire.vl_arbitration import VlArbitration, VlWeight, weights_of_text


def test_a_list_is_written_as_vls_with_weights():
    assert weights_of_text("0:4, 1:255,14:0") == (VlWeight(0, 4), VlWeight(1, 255), VlWeight(14, 0))
    assert weights_of_text("") == ()


@pytest.mark.parametrize("text", ["0", "0:", ":4", "a:4", "0:4;1:4", "-1:4", "1:0000009"])
def test_another_text_is_refused_by_what_is_wrong_in_it(text):
    with pytest.raises(ValueError, match="expected VL:WEIGHT"):
        weights_of_text(text)


@pytest.mark.parametrize("entry", [VlWeight(15, 4), VlWeight(0, 256)])
def test_vl15_is_not_arbitrated_and_a_weight_has_a_byte(entry):
    with pytest.raises(ValueError, match=f"{entry.vl}:{entry.weight}: expected"):
        VlArbitration(low=(entry,))


def test_a_list_longer_than_a_ports_is_refused():
    lists = VlArbitration(high=(VlWeight(0, 1),) * 9)
    lists.check_room([16, 0, 0])
    with pytest.raises(ValueError, match="high list: 9 entries, expected at most the 8"):
        lists.check_room([16, 8])
