"""Names of nets and cells, as the design has them."""

import pytest

from verilog.synth.names import readable


@pytest.mark.parametrize(
    ("mapped", "name"),
    [
        ("design.port_0.flow_control.due", "port_0.flow_control.due"),
        ("design.port_0.due_LUT4_A_Z_LUT4_D_Z[2]", "port_0.due"),
        ("design.port_0.free[0][12]", "port_0.free[0][12]"),
        ("design.port_0.last_TRELLIS_FF_Q_3", "port_0.last"),
        ("design.registers.sum_CCU2C_S0$CCU2_COMB1", "registers.sum"),
        ("design.input_3.store.buffer.rows_1.0.3", "input_3.store.buffer.rows_1"),
        ("design.input_3.store.buffer.rows_1.0.3_DOB[4]", "input_3.store.buffer.rows_1"),
        ("design.port_1.urgent$33", "port_1.urgent"),
        ("design.matcher.U$2.place[4]", "matcher.U$2.place[4]"),
    ],
)
def test_names_are_those_of_the_design(mapped, name):
    assert readable(mapped) == name


def test_without_indices_like_components_have_one_name():
    assert readable("design.input_3.store.buffer.rows_1", indices=False) == "input.store.buffer.rows"
