"""Random PMA requests and data, right and wrong, from every host of a fabric, and unrest on its register buses."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from wire.codes import Q_KEY_GSI, QP_GSI
from wire.headers import LRH
from wire.mad import MadMethod
from wire.packet import build_ud_send
from wire.parameters import AdapterParameters, FabricParameters
from wire.pma import (
    PMA_DATA_BYTES,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PmaAttribute,
    perf_request,
)
from wire.registers import Counter, CounterHigh, PacketCounter, PortRegister, port_address
from wire.stimulus import Control, Operation, Post

__all__ = ["PerfTraffic", "random_perf_requests", "unrest"]

_METHODS = [MadMethod.GET] * 6 + [MadMethod.SET] * 6 + [MadMethod.GET_RESP, MadMethod.SEND, MadMethod.TRAP]
_ATTRIBUTES = [*PmaAttribute, *[PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED] * 3, 0x17]
_STRANGE_LIDS = (0, 9, 0xC001, 0xFFFF)
_MULTICAST_LIDS = (0xC000, 0xFFFE)
_HEADERS = 28
_GRH_BYTES = 40


@dataclass(frozen=True)
class PerfTraffic:
    """Settings of the requests.

    Attributes:
        seed: all of it follows from this.
        start: the first cycle.
        count: of requests, of all hosts together.
        spacing: mean cycles from one packet of a host to its next.
    """

    seed: int
    start: int
    count: int
    spacing: int


def random_perf_requests(fabric: FabricParameters, lids: Mapping[str, int], traffic: PerfTraffic) -> Iterator[Post]:
    """Requests by cycle, and data packets between them: one packet in four."""
    hosts = [index for index, node in enumerate(fabric.nodes.values()) if isinstance(node, AdapterParameters)]
    each, more = divmod(traffic.count, len(hosts))
    streams = (_Host(fabric, lids, index, traffic).posts(each + (at < more)) for at, index in enumerate(hosts))
    return heapq.merge(*streams, key=lambda post: post.cycle)


def unrest(fabric: FabricParameters, traffic: PerfTraffic, end: int) -> Iterator[Control]:
    """Reads and writes of what the agents access too, which hold them up, and hosts that stall now and then."""
    random = Random(f"{traffic.seed}/unrest")
    nodes = list(fabric.nodes.values())
    hosts = [index for index, node in enumerate(nodes) if isinstance(node, AdapterParameters)]
    cycle = traffic.start
    while True:
        cycle += random.choice((1, 2, 10, random.randint(1, 400)))
        if cycle >= end:
            break
        index = random.randrange(len(nodes))
        port = random.randint(1, fabric.port_count(nodes[index]))
        halves = *CounterHigh, PortRegister.EXTENDED_LOW, PortRegister.FLOW_CTL_UPDATE_ERRORS
        register = random.choice((*halves, *Counter, *PacketCounter))
        if random.random() < 0.2:
            register = random.choice(halves)
            value = random.choice((0, 1, 0xFFFF_FFFF, random.getrandbits(32)))
            yield Control(cycle, Operation.BUS_WRITE, index, (port_address(port, register), value, 0, 0))
        elif random.random() < 0.1:
            host = random.choice(hosts)
            yield Control(cycle, Operation.RECV_STALL, host, (random.choice((0, 0, 0, 1, 2, 3)), 0, 0, 0))
        else:
            yield Control(cycle, Operation.BUS_READ, index, (port_address(port, register), 0, 0, 0))
    for host in hosts:
        cycle += 1
        yield Control(cycle, Operation.RECV_STALL, host, (0, 0, 0, 0))


class _Host:
    """One host that sends requests."""

    def __init__(self, fabric: FabricParameters, lids: Mapping[str, int], index: int, traffic: PerfTraffic) -> None:
        name = list(fabric.nodes)[index]
        self._vls = fabric.nodes[name].vls
        self._lid = lids[name]
        self._lids = list(lids.values())
        self._ports = max(fabric.port_count(node) for node in fabric.nodes.values())
        self._index = index
        self._traffic = traffic
        self._random = Random(f"{traffic.seed}/requests/{name}")

    def posts(self, count: int) -> Iterator[Post]:
        """So many requests, by cycle."""
        random = self._random
        cycle = self._traffic.start
        for number in range(count):
            while True:
                cycle += random.randint(0, 2 * self._traffic.spacing)
                vl = random.randrange(self._vls)
                if random.random() < 0.75:
                    break
                yield Post(cycle, self._index, vl, self._data_packet(vl))
            yield Post(cycle, self._index, vl, self._request(number, vl))

    def _data_packet(self, vl: int) -> bytes:
        random = self._random
        to = random.choice(self._lids if random.random() < 0.8 else _MULTICAST_LIDS)
        size = random.choice((0, 64, 252, 256))
        return build_ud_send(
            slid=self._lid, dlid=to, dest_qp=5, src_qp=6, q_key=1, payload=random.randbytes(size), vl=vl, sl=vl
        ).data

    def _request(self, number: int, vl: int) -> bytes:
        random = self._random
        attribute = random.choice(_ATTRIBUTES)
        mad = perf_request(
            random.choice(_METHODS), attribute, self._attribute(attribute), transaction_id=self._index << 32 | number
        )
        if random.random() < 0.05:
            mad = mad.replace(class_version=random.choice((0, 2)))
        if random.random() < 0.05:
            mad = mad.replace(attribute_modifier=random.choice((1, 1 << 31, random.getrandbits(32))))
        payload = mad.pack()
        if random.random() < 0.2:
            payload = self._mutated(payload)
        has_grh = random.random() < 0.3
        data = build_ud_send(
            slid=self._lid if random.random() < 0.9 else random.choice(self._lids),
            dlid=random.choice(self._lids if random.random() < 0.95 else _STRANGE_LIDS),
            dest_qp=QP_GSI,
            src_qp=random.choice((QP_GSI, random.getrandbits(24))),
            q_key=Q_KEY_GSI,
            payload=payload,
            vl=vl,
            sl=random.choice((vl, vl, vl, random.randrange(16))),
            p_key=random.getrandbits(16),
            psn=number,
            grh=self._grh() if has_grh else None,
        ).data
        if random.random() < 0.05:
            # Past the LRH: GRH, opcode, QPs, Q_Key, or the ICRC at the end.
            headers = _HEADERS + _GRH_BYTES * has_grh
            place = random.choice((random.randrange(LRH.size_bytes, headers), len(data) - 1))
            data = data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
        return data

    def _grh(self) -> dict[str, int]:
        """Mostly right, with anything in what does not matter."""
        random = self._random
        bits = {"t_class": 8, "flow_label": 20, "hop_lmt": 8, "sgid": 128, "dgid": 128}
        wrong = random.choice(({"ip_ver": 4}, {"nxt_hdr": 0x1A})) if random.random() < 0.1 else {}
        return {name: random.getrandbits(width) for name, width in bits.items()} | wrong

    def _attribute(self, attribute: int) -> bytes:
        """Mostly of a port that there may be; counters that are set are set to their ends or near them."""
        random = self._random
        port = random.choice((random.randint(1, self._ports), 1, 1, 2, 3, 0, 255))
        select = random.choice((0xFFFF, 0, random.getrandbits(16)))
        if attribute in (PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED) and random.random() < 0.9:
            layout = PORT_COUNTERS if attribute == PmaAttribute.PORT_COUNTERS else PORT_COUNTERS_EXTENDED
            values = {
                one.name: random.choice((0, one.max, one.max - random.randrange(min(one.max, 200))))
                for one in layout.fields
            }
            if layout is PORT_COUNTERS_EXTENDED and random.random() < 0.5:
                values |= {"port_xmit_data": (1 << 32) - 50, "port_rcv_data": (1 << 32) - 50}
                values |= {"port_xmit_pkts": (1 << 32) - 1, "port_rcv_pkts": (1 << 32) - 1}
            return layout.pack(values | {"port_select": port, "counter_select": select})
        return bytes([random.getrandbits(8), port]) + random.randbytes(PMA_DATA_BYTES - 2)

    def _mutated(self, payload: bytes) -> bytes:
        """With a few of its bytes changed, those of the header and of the selectors more often than others."""
        random = self._random
        mad = bytearray(payload)
        for _ in range(random.randint(1, 3)):
            place = random.choice((random.randrange(24), random.randrange(64, 84), random.randrange(len(mad))))
            mad[place] = random.choice((random.getrandbits(8), 0, 255, mad[place] ^ 1 << random.randrange(8)))
        return bytes(mad)
