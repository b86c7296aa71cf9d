"""The agent behind one of several ports of an adapter (docs/management.md, sections 3, 4 and 6)."""

from dataclasses import replace
from typing import Any

from tests.rtl.management.agent_bench import IDENTITY, MAD_START, Bench, Work, packet_bytes, request
from tests.rtl.management.agent_packets import works
from tests.rtl.management.sma_bench import ADAPTER, GET, INVALID, OK, padded
from wire.crc import ICRC_BYTES
from wire.mad import MAD_HEADER
from wire.mad_packet import gmp_packet
from wire.node_info import NODE_INFO, NodeType
from wire.notice import NOTICE
from wire.pma import ALL_PORTS, PORT_COUNTERS, PmaAttribute, perf_request
from wire.port_info import PORT_INFO
from wire.registers import Counter, port_address
from wire.sma import LED_INFO, SmaAttribute
from wire.smp import return_port, smp_request

SECOND = replace(IDENTITY, ports=3, port=2, type=NodeType.ROUTER)
PORTS = range(5)
LINK, HOST = 0, 1


def at_second(script: Any) -> list[Work]:
    """What becomes of what a script asks of the agent at port 2 of three; of routers, as nothing else differs."""
    return works(script, ADAPTER, identity=SECOND)


def test_node_info_is_the_adapters_and_of_this_port() -> None:
    async def script(bench: Bench) -> Any:
        for arrival in (0, 1):
            smp = smp_request(GET, SmaAttribute.NODE_INFO, transaction_id=1, path=[])
            yield await bench.send(packet_bytes(smp), arrival=arrival)

    for work in at_second(script):
        info = NODE_INFO.unpack(work.attribute)
        assert (info.node_type, info.num_ports, info.local_port_num) == (NodeType.ROUTER, 3, 2)
        assert (info.node_guid, info.port_guid) == (SECOND.node_guid, SECOND.port_guid)


def test_0_and_its_own_number_mean_the_port_and_no_other_does() -> None:
    async def script(bench: Bench) -> Any:
        yield await bench.set(SmaAttribute.LED_INFO, padded(LED_INFO.pack(led_mask=1)), 2)
        for attribute in (SmaAttribute.LED_INFO, SmaAttribute.PORT_INFO):
            for port in PORTS:
                yield await bench.get(attribute, port)

    _set, *asked = at_second(script)
    assert [work.status for work in asked] == [OK, INVALID, OK, INVALID, INVALID] * 2
    assert [LED_INFO.unpack(asked[port].attribute).led_mask for port in (0, 2)] == [1, 1]
    assert [PORT_INFO.unpack(asked[len(PORTS) + port].attribute).local_port_num for port in (0, 2)] == [2, 2]


def test_paths_lead_through_the_ports_own_number() -> None:
    async def script(bench: Bench) -> Any:
        for port in PORTS:
            smp = smp_request(GET, SmaAttribute.NODE_INFO, transaction_id=1, path=[port])
            yield await bench.send(packet_bytes(smp), arrival=0)
        yield await bench.smp(request(GET, SmaAttribute.NODE_INFO))

    *sent, came = at_second(script)
    assert [work.outputs for work in sent] == [(), (), (LINK,), (), ()]
    assert came.outputs == (LINK,)
    assert return_port(came.smp, 1) == 2


def test_counters_are_those_of_the_port() -> None:
    async def script(bench: Bench) -> Any:
        bench.registers[port_address(1, Counter.RCV_PKTS)] = 5
        for select in (*PORTS, ALL_PORTS):
            data = PORT_COUNTERS.pack(port_select=select, counter_select=1 << 14).ljust(192, b"\0")
            asked = perf_request(GET, PmaAttribute.PORT_COUNTERS, data, transaction_id=1)
            yield await bench.send(gmp_packet(asked, 9, 7).data, arrival=1, slot=0)

    answers = [(work, MAD_HEADER.unpack(work.data, MAD_START)) for work in at_second(script)]
    assert [mad.status for _work, mad in answers] == [INVALID, INVALID, OK, INVALID, INVALID, OK]
    for work in (answers[2][0], answers[-1][0]):
        assert PORT_COUNTERS.unpack(work.data[MAD_START + 64 : -ICRC_BYTES]).port_rcv_pkts == 5


def test_a_routers_trap_says_that_a_router_sends_it() -> None:
    traps: list[Work] = []

    async def script(bench: Bench) -> None:
        await bench.set(SmaAttribute.PORT_INFO, padded(PORT_INFO.pack(lid=7, master_sm_lid=9)))
        bench.drive(active=1, host_sm=1)
        start = bench.now + 3
        await bench.cycle()
        traps.append(await bench.trap(start))

    Bench(ADAPTER, SECOND).run(script)
    assert NOTICE.unpack(traps[0].attribute).producer_type == NodeType.ROUTER
