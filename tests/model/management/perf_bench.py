"""Requests to the Performance Management Agent of one node, and what it does step by step."""

from tests.agent_steps import of_request, slot_for_answer
from tests.model.management.agent_bench import START, SWITCH, Bench
from wire.mad import MadMethod, mad_data
from wire.pma import (
    PORT_COUNTERS,
    PORT_RCV_ERROR_DETAILS,
    PORT_VL_XMIT_WAIT_COUNTERS,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
    perf_request,
)
from wire.registers import VL_XMIT_WAIT, Counter, CounterHigh, Detail, PortRegister, lft_address, port_address

A = PmaAttribute
SLID, DLID = 9, 7
"""Of the requests: the node's own LID is not looked at."""
OF_A_PORT = (
    A.PORT_SAMPLES_CONTROL,
    A.PORT_COUNTERS,
    A.PORT_COUNTERS_EXTENDED,
    A.PORT_RCV_ERROR_DETAILS,
    A.PORT_XMIT_DISCARD_DETAILS,
    A.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
    A.PORT_VL_XMIT_WAIT_COUNTERS,
)
PORT = 3
WILD = bytes(range(1, 193))

# (counter, word, access, bit of CounterSelect, or 16 for CounterSelect2), as the contract has them.
COUNTERS = [
    (Counter.SYMBOL_ERROR, 1, 0, 0),
    (Counter.LINK_ERROR_RECOVERY, 1, 1, 1),
    (Counter.LINK_DOWNED, 1, 2, 2),
    (Counter.RCV_ERRORS, 2, 0, 3),
    (Counter.RCV_REMOTE_PHYSICAL_ERRORS, 2, 1, 4),
    (Counter.RCV_SWITCH_RELAY_ERRORS, 3, 0, 5),
    (Counter.XMIT_DISCARDS, 3, 1, 6),
    (Counter.XMIT_CONSTRAINT_ERRORS, 4, 0, 7),
    (Counter.RCV_CONSTRAINT_ERRORS, 4, 1, 8),
    (Counter.LOCAL_LINK_INTEGRITY_ERRORS, 4, 2, 9),
    (Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS, 4, 3, 10),
    (Counter.VL15_DROPPED, 5, 0, 11),
    (Counter.XMIT_DATA, 6, 0, 12),
    (Counter.RCV_DATA, 7, 0, 13),
    (Counter.XMIT_PKTS, 8, 0, 14),
    (Counter.RCV_PKTS, 9, 0, 15),
    (Counter.XMIT_WAIT, 10, 0, 16),
]
FIELDS = [field.name for field in PORT_COUNTERS.fields if field.name not in ("port_select", "counter_select")]
FIELDS.remove("counter_select2")
NAMES = {counter: FIELDS[bit] for counter, _, _, bit in COUNTERS}
# (attribute, its format, and by bit of CounterSelect register, field, word and access).
DETAILS = [
    (
        A.PORT_RCV_ERROR_DETAILS,
        PORT_RCV_ERROR_DETAILS,
        [
            (Detail.LOCAL_PHYSICAL_ERRORS, "port_local_physical_errors", 1, 0),
            (Detail.MALFORMED_PACKET_ERRORS, "port_malformed_packet_errors", 1, 1),
            (Detail.BUFFER_OVERRUN_ERRORS, "port_buffer_overrun_errors", 2, 0),
            (Detail.DLID_MAPPING_ERRORS, "port_dlid_mapping_errors", 2, 1),
            (Detail.VL_MAPPING_ERRORS, "port_vl_mapping_errors", 3, 0),
            (Detail.LOOPING_ERRORS, "port_looping_errors", 3, 1),
        ],
    ),
    (
        A.PORT_XMIT_DISCARD_DETAILS,
        PORT_XMIT_DISCARD_DETAILS,
        [
            (Detail.INACTIVE_DISCARDS, "port_inactive_discards", 1, 0),
            (Detail.NEIGHBOR_MTU_DISCARDS, "port_neighbor_mtu_discards", 1, 1),
            (Detail.LIFE_TIME_DISCARDS, "port_sw_lifetime_limit_discards", 2, 0),
            (Detail.HOQ_LIFE_DISCARDS, "port_sw_hoq_limit_discards", 2, 1),
        ],
    ),
    (
        A.PORT_VL_XMIT_WAIT_COUNTERS,
        PORT_VL_XMIT_WAIT_COUNTERS,
        [(VL_XMIT_WAIT + vl, f"port_vl_xmit_wait{vl}", 1 + vl // 2, vl % 2) for vl in range(16)],
    ),
]
HIGHS = [
    (CounterHigh.XMIT_DATA_HIGH, 2, "port_xmit_data"),
    (CounterHigh.RCV_DATA_HIGH, 4, "port_rcv_data"),
    (CounterHigh.XMIT_PKTS_HIGH, 6, "port_xmit_pkts"),
    (CounterHigh.RCV_PKTS_HIGH, 8, "port_rcv_pkts"),
    (CounterHigh.UNICAST_XMIT_PKTS_HIGH, 10, "port_unicast_xmit_pkts"),
    (CounterHigh.UNICAST_RCV_PKTS_HIGH, 12, "port_unicast_rcv_pkts"),
    (CounterHigh.MULTICAST_XMIT_PKTS_HIGH, 14, "port_multicast_xmit_pkts"),
    (CounterHigh.MULTICAST_RCV_PKTS_HIGH, 16, "port_multicast_rcv_pkts"),
]


def reads_of(attribute):
    """(step, address) of what is read for an answer."""
    if attribute == A.PORT_SAMPLES_CONTROL:
        return [(144, port_address(PORT, PortRegister.TICK))]
    if attribute == A.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS:
        return [(152, port_address(PORT, PortRegister.FLOW_CTL_UPDATE_ERRORS))]
    if attribute == A.PORT_COUNTERS:
        return [(144 + 8 * word + access, port_address(PORT, counter)) for counter, word, access, _ in COUNTERS]
    for details, _, registers in DETAILS:
        if attribute == details:
            return [(144 + 8 * word + access, port_address(PORT, detail)) for detail, _, word, access in registers]
    reads = []
    for high, word, _ in HIGHS:
        reads.append((slot_for_answer(word), port_address(PORT, high)))
        reads.append((slot_for_answer(word + 1), port_address(PORT, PortRegister.EXTENDED_LOW)))
    return reads


def switch_of_requests():
    """A switch with LID 9 behind port 2."""
    bench = Bench(SWITCH)
    bench.registers[lft_address(SLID)] = 2
    return bench


def request(method, attribute, data=b"", **fields):
    return perf_request(method, attribute, data, transaction_id=0xABCD).replace(**fields)


def get(attribute, data=bytes([0, PORT]), **fields):
    return request(MadMethod.GET, attribute, data, **fields)


def put(attribute, data, **fields):
    return request(MadMethod.SET, attribute, data, **fields)


def ask(bench, mad, **where):
    """The answer, and its 64 bytes; of the only attribute that has more, 72."""
    bench.ask_perf(mad, **where)
    answer = bench.run().perf_answer()
    return answer, mad_data(answer)[: 72 if mad.attribute_id == A.PORT_COUNTERS_EXTENDED else 64]


def numbers(bench):
    """Those of the steps of what was asked last."""
    all_ports = mad_data(bench.asked)[1] == 255
    laps = SWITCH.ports if all_ports and bench.parameters is SWITCH else 1
    return of_request(bench.asked.method, bench.asked.attribute_id, pma=True, laps=laps)


def steps(bench, what):
    """Accesses by their steps, without the look at the LFT."""
    events = [(numbers(bench)[cycle - START], *rest) for cycle, *rest in bench.of(what)]
    return events if what == "write" else events[1:]


VALUES = PORT_COUNTERS.unpack(b"\xa5" * 44)
"""What a Set holds: every counter another value than 0."""


def selecting(*bits, layout_values=VALUES):
    mask = sum(1 << bit for bit in bits)
    return layout_values.replace(port_select=PORT, counter_select=mask & 0xFFFF, counter_select2=mask >> 16).pack()
