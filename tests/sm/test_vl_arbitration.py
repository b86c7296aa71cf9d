"""VL arbitration as a Subnet Manager writes it."""

from dataclasses import replace

from sm.lids import assign_lids
from sm.port_settings import port_settings
from sm.qos_options import QosOptions
from sm.settings import SubnetSettings
from sm.vl_arbitration import program_vl_arbitration
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, star
from tests.sm.test_programming import Bench
from wire.codes import operational_vls
from wire.node_info import NodeType
from wire.port_tables import VLArbitrationBlock
from wire.vl_arbitration import VlArbitration, VlWeight

LISTS = VlArbitration(high=(VlWeight(1, 4),), low=(VlWeight(0, 8), VlWeight(2, 16)), high_limit=7)


def bench(entries, vls=4):
    """Nodes whose ports hold lists of so many entries."""

    def prepare(fabric):
        for node in fabric.nodes.values():
            for port in node.ports:
                node.change(port, vl_arbitration_high_cap=entries, vl_arbitration_low_cap=entries)

    return Bench(star(), SubnetSettings(qos=QosOptions(vl_arbitration=LISTS)), prepare, vls=operational_vls(vls))


def program(made, guid):
    rest = (made.found, made.settings, made.programmed, made.events.append)
    made.run(program_vl_arbitration(made.sma, guid, *rest))
    return made.fabric.nodes[guid].vl_arbitration


def test_both_lists_of_every_linked_port_are_written_once():
    made = bench(8)
    written = program(made, SWITCH_GUID)
    linked = [port for port, _far in made.found.subnet.neighbours(SWITCH_GUID)]
    assert written == {
        (port, block): entries + (0,) * (32 - len(entries))
        for port in linked
        for block, entries in (
            (VLArbitrationBlock.LOW_0_31, (0x0008, 0x0210)),
            (VLArbitrationBlock.HIGH_0_31, (0x0104,)),
        )
    }
    made.fabric.requests.clear()
    program(made, SWITCH_GUID)
    assert not made.fabric.requests


def test_an_adapters_port_is_named_0():
    assert {port for port, _block in program(bench(8), HOST_GUID)} == {0}


def test_ports_with_more_than_32_entries_have_two_blocks_of_each_list():
    assert {block for _port, block in program(bench(64), HOST_GUID)} == set(VLArbitrationBlock)


def test_a_port_without_lists_is_left_alone():
    assert program(bench(0), SWITCH_GUID) == {}


def test_vls_are_modulo_those_in_use_and_what_there_is_no_room_for_is_left_out():
    low = program(bench(8, vls=2), HOST_GUID)[0, VLArbitrationBlock.LOW_0_31]
    assert low[:3] == (0x0008, 0x0010, 0)
    low = program(bench(1), HOST_GUID)[0, VLArbitrationBlock.LOW_0_31]
    assert low[:2] == (0x0008, 0)


def test_the_ports_of_a_type_of_nodes_may_have_lists_of_their_own():
    made = bench(8)
    own = QosOptions(vl_arbitration=VlArbitration(low=(VlWeight(3, 1),), high_limit=9))
    made.settings = replace(made.settings, qos_by_type={NodeType.CA: own})
    assert program(made, HOST_GUID)[0, VLArbitrationBlock.LOW_0_31][:2] == (0x0301, 0)
    lows = [entries[:2] for (_p, block), entries in program(made, SWITCH_GUID).items() if block == 1]
    assert set(lows) == {(0x0008, 0x0210)}
    wanted = port_settings(made.found, assign_lids(made.found.subnet, 0, {}), made.settings, {})
    limits = {(end.guid, values["vl_high_limit"]) for end, values in wanted.items() if "vl_high_limit" in values}
    assert {(HOST_GUID, 9), (SWITCH_GUID, 7)} <= limits


def test_the_limit_of_high_priority_is_a_field_of_portinfo():
    for entries, expected in ((8, {7}), (0, {None})):
        made = bench(entries)
        wanted = port_settings(made.found, assign_lids(made.found.subnet, 0, {}), made.settings, {})
        linked = [values for end, values in wanted.items() if made.found.subnet.peer(end) is not None]
        assert {values.get("vl_high_limit") for values in linked} == expected
