"""CounterSelect names the port counters one by one, in their order."""

from wire.pma import PMA_ATTRIBUTES, PMA_COUNTERS, PMA_COUNTERS_EXTENDED, PORT_COUNTERS, PmaAttribute
from wire.registers import COUNTER_WIDTHS, Counter


def test_bits_of_counter_select_stand_for_the_counters_in_order():
    assert [field.name for field in PMA_COUNTERS] == [
        "symbol_error_counter",
        "link_error_recovery_counter",
        "link_downed_counter",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_rcv_switch_relay_errors",
        "port_xmit_discards",
        "port_xmit_constraint_errors",
        "port_rcv_constraint_errors",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "vl15_dropped",
        "port_xmit_data",
        "port_rcv_data",
        "port_xmit_pkts",
        "port_rcv_pkts",
        "port_xmit_wait",
    ]
    assert [field.name for field in PMA_COUNTERS_EXTENDED][:4] == [
        "port_xmit_data",
        "port_rcv_data",
        "port_xmit_pkts",
        "port_rcv_pkts",
    ]
    assert len(PMA_COUNTERS_EXTENDED) == 8


def test_counters_on_the_register_bus_are_as_wide_as_in_the_standard():
    constraints = (Counter.XMIT_CONSTRAINT_ERRORS, Counter.RCV_CONSTRAINT_ERRORS)
    narrow = dict.fromkeys((Counter.LINK_ERROR_RECOVERY, Counter.LINK_DOWNED, *constraints), 8)
    nibbles = {Counter.LOCAL_LINK_INTEGRITY_ERRORS: 4, Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS: 4}
    wide = (Counter.XMIT_DATA, Counter.RCV_DATA, Counter.XMIT_PKTS, Counter.RCV_PKTS, Counter.XMIT_WAIT)
    assert dict.fromkeys(Counter, 16) | narrow | nibbles | dict.fromkeys(wide, 32) == COUNTER_WIDTHS


def test_a_port_counters_attribute_is_found_by_its_code():
    assert PMA_ATTRIBUTES[PmaAttribute.PORT_COUNTERS].format is PORT_COUNTERS
