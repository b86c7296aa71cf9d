"""Tables written to switches and adapters: only what differs from what they hold."""

import pytest

from sm.discovery import discover
from sm.lids import assign_lids
from sm.mad_client import MadClient
from sm.port_settings import operational_vl_count, port_settings
from sm.programming import Programmed, TableError, learn_tables, program_sl_to_vl, program_switch
from sm.qos_options import QosOptions
from sm.settings import SubnetSettings
from sm.sma_client import SmaClient
from sm.subnet import End, Subnet
from sm.tasks import start
from tests.sm.sma_fabric import SmaFabric
from tests.sm.subnets import HOST_GUID, SWITCH_GUID, fat_tree, first_host_port, star
from wire.codes import MTU, operational_vls
from wire.mad import MadMethod, MadStatus
from wire.node_info import NodeType
from wire.sma import SmaAttribute


class Bench:
    """A discovered subnet, and what its nodes are known to hold."""

    def __init__(self, subnet, settings=None, prepare=lambda fabric: None, **fabric):
        self.mads = MadClient()
        self.sma = SmaClient(self.mads)
        self.fabric = SmaFabric(subnet, first_host_port(subnet), self.mads, **fabric)
        prepare(self.fabric)
        self.settings = settings or SubnetSettings()
        self.programmed = Programmed()
        self.events = []
        self.found = self.run(discover(self.sma, Subnet(), self.events.append))
        self.events.clear()
        self.fabric.requests.clear()

    def run(self, coroutine):
        results = []

        async def keep():
            results.append(await coroutine)

        start(keep())
        self.fabric.run(lambda: bool(results))
        return results[0]

    def program(self, table, guid=SWITCH_GUID):
        self.fabric.lft_writes.clear()
        rest = (self.found, self.settings, self.programmed, self.events.append)
        self.run(program_switch(self.sma, guid, table, *rest))
        return [block for _guid, block in self.fabric.lft_writes]

    def learn(self):
        self.run(learn_tables(self.sma, self.found, self.programmed, self.events.append))

    def map_sls(self, guid):
        rest = (self.found, self.settings, self.programmed, self.events.append)
        self.run(program_sl_to_vl(self.sma, guid, *rest))

    def switch(self):
        return self.fabric.nodes[SWITCH_GUID]


def test_all_blocks_in_use_of_an_unknown_switch_are_written_once():
    bench = Bench(star())
    table = bytes(lid % 8 for lid in range(130))
    assert bench.program(table) == [0, 1, 2]
    assert bench.switch().lft[:130] == table
    assert set(bench.switch().lft[130:192]) == {255}
    assert bench.switch().switch_info.linear_fdb_top == 129
    assert bench.program(table) == []
    assert bench.fabric.requests == {
        (MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE): 3,
        (MadMethod.SET, SmaAttribute.SWITCH_INFO): 1,
    }


def test_only_the_blocks_that_differ_are_written():
    bench = Bench(star())
    table = bytearray(lid % 8 for lid in range(300))
    bench.program(table)
    table[70] = table[256] = 255
    assert bench.program(table) == [1, 4]
    assert bench.switch().lft[:300] == table


def test_linear_fdb_top_counts_entries_only_after_they_are_written():
    bench = Bench(star())
    order = []
    bench.fabric.on_request = lambda end, smp: order.append(smp.attribute_id)
    bench.program(bytes(100))
    assert order == [SmaAttribute.LINEAR_FORWARDING_TABLE] * 2 + [SmaAttribute.SWITCH_INFO]


def test_a_shorter_table_leaves_nothing_behind_and_does_not_lower_linear_fdb_top():
    bench = Bench(star())
    bench.program(bytes(200))
    assert bench.program(bytes(60)) == [0, 1, 2, 3]
    assert set(bench.switch().lft[60:256]) == {255}
    assert bench.switch().switch_info.linear_fdb_top == 199
    assert bench.program(bytes(60)) == []


def test_writing_tables_does_not_hide_a_change_of_a_port():
    bench = Bench(star())
    bench.fabric.fall_back(End(SWITCH_GUID, 2))
    bench.program(bytes(10))
    assert bench.switch().switch_info.port_state_change


def test_tables_that_a_switch_comes_with_are_read():
    def prepare(fabric):
        node = fabric.nodes[SWITCH_GUID]
        node.lft[:80] = bytes(80)
        node.switch_info = node.switch_info.replace(linear_fdb_top=69)
        node.change(0, lid=5)

    bench = Bench(star(), prepare=prepare)
    bench.learn()
    assert bench.fabric.requests == {(MadMethod.GET, SmaAttribute.LINEAR_FORWARDING_TABLE): 2}
    assert bench.programmed.tables[SWITCH_GUID] == bytes(80) + b"\xff" * 48
    assert bench.program(bytes(80)) == []
    assert bench.program(bytes(70)) == [1]
    bench.learn()
    assert bench.fabric.requests[MadMethod.GET, SmaAttribute.LINEAR_FORWARDING_TABLE] == 2


def test_a_switch_whose_tables_cannot_be_read_is_told_and_keeps_no_other_from_being_read():
    leaf, mute, spine = (SWITCH_GUID + number for number in range(3))

    def prepare(fabric):
        for guid in (leaf, mute, spine):
            node = fabric.nodes[guid]
            node.switch_info = node.switch_info.replace(linear_fdb_top=9)
            node.change(0, lid=1 + guid - SWITCH_GUID)

    bench = Bench(fat_tree(2, 1, hosts=1), prepare=prepare)
    bench.fabric.nodes[mute].silent = True
    bench.learn()
    assert set(bench.programmed.tables) == {leaf, spine}
    assert [str(event) for event in bench.events] == [
        "Get(LinearForwardingTable, modifier 0x0) by way of ports 1,2,2: no answer"
    ]


def test_nothing_is_read_of_a_switch_that_was_reset_and_nothing_remembered():
    bench = Bench(star())
    bench.program(bytes(10))
    bench.programmed.sl_to_vl[End(SWITCH_GUID, 1), 2] = (0,) * 16
    bench.learn()
    assert bench.programmed == Programmed()
    assert (MadMethod.GET, SmaAttribute.LINEAR_FORWARDING_TABLE) not in bench.fabric.requests


def test_a_lid_beyond_the_table_is_told_in_one_line():
    bench = Bench(star(), lft_cap=128)
    bench.program(bytes(128))
    with pytest.raises(TableError, match=r"LID 0x0080 is beyond its forwarding table, expected at most 0x007f$"):
        bench.program(bytes(129))


@pytest.mark.parametrize("vls", [1, 2, 4])
def test_sl_to_vl_tables_are_left_alone_where_ports_use_all_vls_they_have(vls):
    bench = Bench(star(), vls=operational_vls(vls))
    bench.map_sls(SWITCH_GUID)
    bench.map_sls(HOST_GUID)
    assert (MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE) not in bench.fabric.requests


def test_sls_are_mapped_to_the_vls_in_use_where_a_port_uses_fewer_than_it_has():
    def prepare(fabric):
        fabric.nodes[HOST_GUID + 4].change(1, vl_cap=operational_vls(2))

    bench = Bench(star(hosts=3), vls=operational_vls(4), prepare=prepare)
    two = tuple(sl % 2 for sl in range(16))
    bench.map_sls(SWITCH_GUID)
    assert bench.switch().sl_to_vl == {(0, 2): two, (1, 2): two, (3, 2): two}
    bench.map_sls(HOST_GUID + 4)
    assert bench.fabric.nodes[HOST_GUID + 4].sl_to_vl == {}
    writes = bench.fabric.requests[MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE]
    bench.map_sls(SWITCH_GUID)
    assert bench.fabric.requests[MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE] == writes == 3


def test_sls_are_mapped_as_the_settings_say():
    settings = SubnetSettings(qos=QosOptions(sl_to_vl=(3, 1, *range(2, 16))))
    bench = Bench(star(hosts=2), settings, vls=operational_vls(4))
    bench.map_sls(SWITCH_GUID)
    wanted = (3, 1, *(sl % 4 for sl in range(2, 16)))
    assert bench.switch().sl_to_vl == {(into, out): wanted for out in (1, 2) for into in (0, 1, 2) if into != out}


def test_adapters_have_one_sl_to_vl_table():
    bench = Bench(star(), SubnetSettings(qos=QosOptions(max_vls=1)), vls=operational_vls(4))
    bench.map_sls(HOST_GUID)
    bench.map_sls(HOST_GUID)
    assert bench.fabric.nodes[HOST_GUID].sl_to_vl == {(0, 0): (0,) * 16}
    assert bench.fabric.requests == {(MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE): 1}


@pytest.mark.parametrize(
    ("here", "there", "most", "vls"), [(4, 4, 15, 4), (8, 2, 15, 2), (4, 8, 15, 4), (8, 8, 3, 2), (15, 15, 15, 15)]
)
def test_both_ends_of_a_link_use_as_many_vls_as_both_have(here, there, most, vls):
    def prepare(fabric):
        fabric.nodes[HOST_GUID].change(1, vl_cap=operational_vls(here))
        fabric.nodes[SWITCH_GUID].change(1, vl_cap=operational_vls(there))

    bench = Bench(star(), prepare=prepare)
    for end in (End(HOST_GUID, 1), End(SWITCH_GUID, 1)):
        assert operational_vl_count(bench.found, end, SubnetSettings(qos=QosOptions(max_vls=most))) == vls


def test_a_link_has_no_more_vls_than_the_type_of_either_ends_node_is_to_use():
    bench = Bench(star(), vls=operational_vls(8))
    settings = SubnetSettings(qos_by_type={NodeType.CA: QosOptions(4), NodeType.SWITCH: QosOptions(8)})
    assert {operational_vl_count(bench.found, End(guid, 1), settings) for guid in (HOST_GUID, SWITCH_GUID)} == {4}


def test_both_ends_of_a_link_have_the_mtu_that_both_can():
    def prepare(fabric):
        fabric.nodes[HOST_GUID].change(1, mtu_cap=MTU.MTU_512)

    bench = Bench(star(), prepare=prepare, mtu=MTU.MTU_4096)
    wanted = port_settings(bench.found, assign_lids(bench.found.subnet), SubnetSettings(max_mtu=MTU.MTU_2048), {})
    mtus = {end: values["neighbor_mtu"] for end, values in wanted.items() if end.port}
    assert mtus[End(HOST_GUID, 1)] == mtus[End(SWITCH_GUID, 1)] == MTU.MTU_512
    assert mtus[End(HOST_GUID + 4, 1)] == mtus[End(SWITCH_GUID, 2)] == MTU.MTU_2048


def test_end_ports_have_lids_and_switch_ports_lives():
    bench = Bench(fat_tree(2, 1, hosts=1))
    lids = assign_lids(bench.found.subnet, lmc=1)
    wanted = port_settings(bench.found, lids, SubnetSettings(lmc=1), {})
    leaf, spine = SWITCH_GUID, SWITCH_GUID + 2
    host = wanted[End(HOST_GUID + 4, 1)]
    assert (host["lid"], host["lmc"], host["master_sm_lid"]) == (
        lids[HOST_GUID + 5].first,
        1,
        lids[HOST_GUID + 1].first,
    )
    assert host["gid_prefix"] == 0xFE80000000000000
    assert wanted[End(spine, 0)]["lid"] == lids[spine].first
    assert "neighbor_mtu" not in wanted[End(spine, 0)]
    assert wanted[End(leaf, 1)]["hoq_life"] == 0x10, "towards a host"
    assert wanted[End(leaf, 2)]["hoq_life"] == 0x12, "towards a switch"
    assert "hoq_life" not in host
    assert "lid" not in wanted[End(leaf, 1)]


def test_the_ends_of_a_link_come_one_after_the_other():
    bench = Bench(fat_tree(4, 2, hosts=2))
    wanted = port_settings(bench.found, assign_lids(bench.found.subnet), SubnetSettings(), {})
    ends = [end for end in wanted if end.port]
    assert [bench.found.subnet.peer(end) for end in ends[::2]] == ends[1::2]


def test_an_sl_to_vl_table_that_is_refused_is_told_and_not_tried_again():
    bench = Bench(star(), SubnetSettings(qos=QosOptions(max_vls=1)), vls=operational_vls(2))

    def refuses(_end, smp):
        refused = smp.attribute_id == SmaAttribute.SL_TO_VL_MAPPING_TABLE
        return MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED if refused else 0

    bench.fabric.refuses = refuses
    bench.map_sls(HOST_GUID)
    bench.map_sls(HOST_GUID)
    text = "Set(SLtoVLMappingTable, modifier 0x0) by way of ports none: MethodAttributeNotSupported"
    assert [str(event) for event in bench.events] == [text]
