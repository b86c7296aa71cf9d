"""Performance management requests to an agent, and what becomes of them."""

from typing import Any

from tests.rtl.management.agent_bench import MAD_START, Access, Bench, Work
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, LRH
from wire.layout import Layout, Record
from wire.mad import MadMethod, MadStatus
from wire.mad_packet import gmp_packet
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.pma import (
    PERF_MAD,
    PMA_DATA_BYTES,
    PORT_COUNTERS,
    PORT_RCV_ERROR_DETAILS,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
    perf_request,
)
from wire.registers import Counter, CounterHigh, Detail, lft_address, port_address

SWITCH = SwitchParameters(ports=3, vls=4, lft_size=128, mft_size=64)
ADAPTER = AdapterParameters(vls=2)
GET, SET = MadMethod.GET, MadMethod.SET
SENDER, SENDERS_QP, OWN = 7, 0xABCDEF, 5
WAY_BACK = 3
"""The port that the LFT names for the sender."""
ONES = b"\xff" * 192

COUNTER_ACCESSES = {
    1: ((Counter.SYMBOL_ERROR, 0), (Counter.LINK_ERROR_RECOVERY, 1), (Counter.LINK_DOWNED, 2)),
    2: ((Counter.RCV_ERRORS, 3), (Counter.RCV_REMOTE_PHYSICAL_ERRORS, 4)),
    3: ((Counter.RCV_SWITCH_RELAY_ERRORS, 5), (Counter.XMIT_DISCARDS, 6)),
    4: (
        (Counter.XMIT_CONSTRAINT_ERRORS, 7),
        (Counter.RCV_CONSTRAINT_ERRORS, 8),
        (Counter.LOCAL_LINK_INTEGRITY_ERRORS, 9),
        (Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, 10),
    ),
    5: ((Counter.VL15_DROPPED, 11),),
    6: ((Counter.XMIT_DATA, 12),),
    7: ((Counter.RCV_DATA, 13),),
    8: ((Counter.XMIT_PKTS, 14),),
    9: ((Counter.RCV_PKTS, 15),),
    10: ((Counter.XMIT_WAIT, 16),),
}
"""By word of PortCounters the registers in the order of their accesses, each with its bit of CounterSelect; 16 is bit 0
of CounterSelect2."""

DETAILS = {
    PmaAttribute.PORT_RCV_ERROR_DETAILS: (
        PORT_RCV_ERROR_DETAILS,
        {
            1: (Detail.LOCAL_PHYSICAL_ERRORS, Detail.MALFORMED_PACKET_ERRORS),
            2: (Detail.BUFFER_OVERRUN_ERRORS, Detail.DLID_MAPPING_ERRORS),
            3: (Detail.VL_MAPPING_ERRORS, Detail.LOOPING_ERRORS),
        },
    ),
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: (
        PORT_XMIT_DISCARD_DETAILS,
        {
            1: (Detail.INACTIVE_DISCARDS, Detail.NEIGHBOR_MTU_DISCARDS),
            2: (Detail.LIFE_TIME_DISCARDS, Detail.HOQ_LIFE_DISCARDS),
        },
    ),
}
"""The format of each, and by word the registers in the order of their accesses and of their bits."""

EXTENDED_COUNTERS = (
    (2, CounterHigh.XMIT_DATA_HIGH),
    (4, CounterHigh.RCV_DATA_HIGH),
    (6, CounterHigh.XMIT_PKTS_HIGH),
    (8, CounterHigh.RCV_PKTS_HIGH),
    (10, CounterHigh.UNICAST_XMIT_PKTS_HIGH),
    (12, CounterHigh.UNICAST_RCV_PKTS_HIGH),
    (14, CounterHigh.MULTICAST_XMIT_PKTS_HIGH),
    (16, CounterHigh.MULTICAST_RCV_PKTS_HIGH),
)
"""The word of PortCountersExtended in which each counter begins, in the order of the bits."""


def perf(method: MadMethod, attribute: int, data: bytes = b"", **fields: int) -> Record:
    request = perf_request(method, attribute, data, transaction_id=0x0123_4567_89AB_CDEF)
    return request.replace(**{"status": 0x1234, "class_specific": 0x5678, **fields})


def packet(mad: Record, sl: int = 2, slid: int = SENDER) -> bytes:
    return gmp_packet(mad, slid, OWN, sl=sl, vl=1, p_key=0x8001, src_qp=SENDERS_QP, psn=0x123).data


def mad(work: Work) -> Record:
    return PERF_MAD.unpack(work.data, MAD_START)


def attribute(work: Work, layout: Layout) -> Record:
    return layout.unpack(work.data, MAD_START + 64)


def written(data: bytes, layout: Layout, start: int, **fields: int) -> bytes:
    for name, value in fields.items():
        data = layout[name].write(data, value, start)
    return data


def answer(request: bytes, data: bytes, status: int = MadStatus.OK) -> bytes:
    """The packet that answers this one, with these bytes of data, and 0 behind them."""
    lrh = LRH.unpack(request)
    body = written(request[:-ICRC_BYTES], LRH, 0, dlid=lrh.slid, slid=lrh.dlid)
    body = written(body, BTH, 8, dest_qp=DETH.unpack(request, 20).src_qp)
    body = written(body, DETH, 20, src_qp=1)
    body = written(body, PERF_MAD, MAD_START, method=MadMethod.GET_RESP, status=status)
    body = body[: MAD_START + 64] + data.ljust(PMA_DATA_BYTES, b"\0")
    return body + icrc(body)


def run(script: Any, parameters: NodeParameters = SWITCH, **settings: Any) -> Any:
    """What a script returns that acts on an agent."""
    bench = Bench(parameters)
    bench.registers[lft_address(SENDER)] = WAY_BACK
    for name, value in settings.items():
        setattr(bench, name, value)
    found = []

    async def act(bench: Bench) -> None:
        found.append(await script(bench))

    bench.run(act)
    return found[0]


def works(
    requests: list[bytes], parameters: NodeParameters = SWITCH, registers: Any = None, **settings: Any
) -> list[Work]:
    """What becomes of requests, one after the other, from port 1 on slot 0."""

    async def script(bench: Bench) -> list[Work]:
        bench.registers.update(registers or {})
        return [await bench.send(request, slot=0) for request in requests]

    found: list[Work] = run(script, parameters, **settings)
    return found


def work_of(request: bytes, parameters: NodeParameters = SWITCH, registers: Any = None) -> Work:
    (work,) = works([request], parameters, registers)
    return work


def of_port(work: Work) -> list[Access]:
    """The accesses except the one to the LFT."""
    return [access for access in work.accesses if access.step != 2]


COUNTS = {
    Counter.SYMBOL_ERROR: 0x1234,
    Counter.LINK_ERROR_RECOVERY: 0x56,
    Counter.LINK_DOWNED: 0x78,
    Counter.RCV_ERRORS: 0x9ABC,
    Counter.RCV_REMOTE_PHYSICAL_ERRORS: 0xDEF0,
    Counter.RCV_SWITCH_RELAY_ERRORS: 0x1357,
    Counter.XMIT_DISCARDS: 0x9BDF,
    Counter.XMIT_CONSTRAINT_ERRORS: 0xC3,
    Counter.RCV_CONSTRAINT_ERRORS: 0xD7,
    Counter.LOCAL_LINK_INTEGRITY_ERRORS: 0xA,
    Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS: 0xB,
    Counter.VL15_DROPPED: 0xFEDC,
    Counter.XMIT_DATA: 0xFFFF_FFFF,
    Counter.RCV_DATA: 0x8765_4321,
    Counter.XMIT_PKTS: 0x1111_2222,
    Counter.RCV_PKTS: 0x3333_4444,
    Counter.XMIT_WAIT: 0x5555_6666,
}


SHOWN = PORT_COUNTERS.record(
    port_select=3,
    counter_select=0xBEEF,
    counter_select2=0x42,
    symbol_error_counter=0x1234,
    link_error_recovery_counter=0x56,
    link_downed_counter=0x78,
    port_rcv_errors=0x9ABC,
    port_rcv_remote_physical_errors=0xDEF0,
    port_rcv_switch_relay_errors=0x1357,
    port_xmit_discards=0x9BDF,
    port_xmit_constraint_errors=0xC3,
    port_rcv_constraint_errors=0xD7,
    local_link_integrity_errors=0xA,
    excessive_buffer_overrun_errors=0xB,
    vl15_dropped=0xFEDC,
    port_xmit_data=0xFFFF_FFFF,
    port_rcv_data=0x8765_4321,
    port_xmit_pkts=0x1111_2222,
    port_rcv_pkts=0x3333_4444,
    port_xmit_wait=0x5555_6666,
)


def counter_reads(port: int) -> list[Access]:
    return [
        Access(144 + 8 * word + j, port_address(port, counter), None)
        for word, accesses in COUNTER_ACCESSES.items()
        for j, (counter, _) in enumerate(accesses)
    ]


def counter_write(counter: Counter) -> Access:
    """The write that sets this counter of port 3 to what SHOWN says."""
    for word, accesses in COUNTER_ACCESSES.items():
        for j, (one, _) in enumerate(accesses):
            if one is counter:
                return Access(16 + 8 * word + 2 + j, port_address(3, counter), COUNTS[counter])
    raise AssertionError(counter)


def selecting(bits: int, base: Record = SHOWN) -> bytes:
    """A Set of PortCounters that names the counters of these 24 bits."""
    return base.replace(counter_select=bits & 0xFFFF, counter_select2=bits >> 16).pack()
