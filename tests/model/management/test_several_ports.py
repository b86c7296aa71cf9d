"""The agent behind one of several ports of an adapter (docs/management.md, sections 3, 4 and 6)."""

from dataclasses import replace

import pytest

from tests.model.management.agent_bench import ADAPTER, IDENTITY, Bench, get
from wire.mad import MadMethod, MadStatus, mad_data
from wire.node_info import NODE_INFO, NodeType
from wire.notice import NOTICE
from wire.pma import ALL_PORTS, PORT_COUNTERS, PmaAttribute, perf_request
from wire.port_info import PORT_INFO
from wire.registers import Counter, port_address
from wire.sma import LED_INFO, SmaAttribute
from wire.smp import return_port, smp_request

LINK, HOST = 0, 1
SECOND = replace(IDENTITY, ports=3, port=2)


@pytest.fixture
def second() -> Bench:
    """At port 2 of three."""
    return Bench(ADAPTER, SECOND)


@pytest.mark.parametrize("arrival", [0, 2])
@pytest.mark.parametrize("kind", [NodeType.CA, NodeType.ROUTER])
def test_node_info_is_the_adapters_and_of_this_port(arrival, kind):
    bench = Bench(ADAPTER, replace(SECOND, type=kind))
    info = NODE_INFO.unpack(mad_data(bench.carry_out(get(SmaAttribute.NODE_INFO), arrival=arrival)))
    assert (info.node_type, info.num_ports, info.local_port_num) == (kind, 3, 2)
    assert (info.node_guid, info.port_guid) == (SECOND.node_guid, SECOND.port_guid)


@pytest.mark.parametrize("attribute", [SmaAttribute.PORT_INFO, SmaAttribute.LED_INFO])
def test_0_and_its_own_number_mean_the_port_and_no_other_does(second, attribute):
    assert {port: second.read(attribute, port)[0] == MadStatus.OK for port in range(5)} == {
        0: True,
        1: False,
        2: True,
        3: False,
        4: False,
    }


def test_what_is_set_by_the_ports_number_is_read_by_0(second):
    second.write(SmaAttribute.LED_INFO, LED_INFO.pack(led_mask=1), 2)
    assert LED_INFO.unpack(second.read(SmaAttribute.LED_INFO, 0)[1]).led_mask == 1


def test_port_info_is_of_the_port_and_its_registers_are_those_of_port_1(second):
    second.write(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=7, neighbor_mtu=1), 2)
    info = PORT_INFO.unpack(second.read(SmaAttribute.PORT_INFO, 0)[1])
    assert (info.local_port_num, info.lid, info.neighbor_mtu) == (2, 7, 1)


@pytest.mark.parametrize(("port", "output"), [(1, None), (2, LINK), (3, None)])
def test_a_path_leaves_by_the_ports_own_number(second, port, output):
    second.ask(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(port,)), arrival=0)
    second.run()
    assert [offer[1] for offer in second.of("offer")] == ([] if output is None else [output])


def test_a_path_that_ends_here_came_in_by_the_ports_own_number(second):
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(5,)).replace(hop_pointer=1)
    answer = second.carry_out(smp, arrival=2)
    assert return_port(answer, 1) == 2
    assert [offer[1] for offer in second.of("offer")] == [LINK]


@pytest.mark.parametrize(("select", "status"), [(1, 0x1C), (2, 0), (3, 0x1C), (ALL_PORTS, 0)])
def test_counters_are_those_of_the_port(second, select, status):
    second.registers[port_address(1, Counter.RCV_PKTS)] = 5
    data = PORT_COUNTERS.pack(port_select=select).ljust(192, b"\0")
    second.ask_perf(perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, data, transaction_id=1), arrival=2)
    second.run()
    answer = second.perf_answer()
    assert answer.status == status
    if not status:
        counters = PORT_COUNTERS.unpack(mad_data(answer))
        assert (counters.port_select, counters.port_rcv_pkts) == (select, 5)


def test_a_routers_trap_says_that_a_router_sends_it():
    bench = Bench(ADAPTER, replace(SECOND, type=NodeType.ROUTER))
    bench.write(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=7, master_sm_lid=9, subnet_timeout=18))
    bench.host_sm(bench.kernel.now + 10, True)
    bench.run()
    assert NOTICE.unpack(mad_data(bench.answer())).producer_type == NodeType.ROUTER
