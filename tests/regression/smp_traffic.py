"""Random SMPs, right and wrong ones, from every host of a fabric: what no agent may hang on (docs/management.md)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from wire.codes import LID_PERMISSIVE, PortPhysicalState, PortState
from wire.forwarding_tables import BLOCK_MODIFIER, LINEAR_FORWARDING_TABLE, MFT_MODIFIER
from wire.headers import BTH, DETH, LRH
from wire.layout import Layout
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.parameters import AdapterParameters, FabricParameters, SwitchParameters
from wire.port_info import LINK_WIDTH_ALL, PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import P_KEY_TABLE_MODIFIER, SL_TO_VL_MODIFIER, VL_ARBITRATION_MODIFIER, VLArbitrationBlock
from wire.sma import PORT_MODIFIER, SMA_ATTRIBUTES, SmaAttribute
from wire.smp import SMP_DATA_BYTES, smp_request
from wire.stimulus import Post
from wire.switch_info import SWITCH_INFO

__all__ = ["KEYS", "SmpTraffic", "random_smps"]

KEYS: Final = (0, 0x1, 0xFEED_0000_0000_BEEF)
"""M_Keys that are set and used: 0 is none."""

_HEADERS: Final = LRH.size_bytes + BTH.size_bytes + DETH.size_bytes
_MOST_HOPS: Final = 6
_LIDS: Final = 12
"""LIDs 1 to this are given and asked for, so that some of them meet."""

_METHODS: Final = (
    *[MadMethod.GET] * 8,
    *[MadMethod.SET] * 10,
    MadMethod.TRAP_REPRESS,
    MadMethod.TRAP,
    MadMethod.GET_RESP,
    MadMethod.SEND,
)
_ATTRIBUTES: Final = (
    *SMA_ATTRIBUTES,
    *[SmaAttribute.PORT_INFO] * 12,
    *[SmaAttribute.LINEAR_FORWARDING_TABLE] * 4,
    *[SmaAttribute.SWITCH_INFO] * 3,
    *[SmaAttribute.SL_TO_VL_MAPPING_TABLE] * 2,
)
_WRONG_PATH_SHARE: Final = 0.1
_LID_ROUTED_SHARE: Final = 0.2
_COMBINED_SHARE: Final = 0.1
_WILD_MODIFIER_SHARE: Final = 0.1
_WILD_DATA_SHARE: Final = 0.2
_MUTATED_SHARE: Final = 0.2
_BROKEN_SHARE: Final = 0.05
_TAKE_DOWN_SHARE: Final = 0.05
_LOCK_SHARE: Final = 0.1


@dataclass(frozen=True)
class SmpTraffic:
    """Settings of random SMPs.

    Attributes:
        seed: all of it follows from this.
        start: the first cycle.
        count: of SMPs, of all hosts together.
        spacing: mean cycles from one SMP of a host to its next.
    """

    seed: int
    start: int
    count: int
    spacing: int


def random_smps(fabric: FabricParameters, traffic: SmpTraffic) -> Iterator[Post]:
    """SMPs by cycle, on VL15's slot of every adapter: requests that make sense, and others.

    Directed routes mostly lead along links that there are; attributes, modifiers and data are mostly such as a Subnet
    Manager could send. The rest is wrong in the route, the modifier, any bits of the datagram, or its headers.
    """
    hosts = [index for index, node in enumerate(fabric.nodes.values()) if isinstance(node, AdapterParameters)]
    each, more = divmod(traffic.count, len(hosts))
    streams = (_Host(fabric, index, traffic).smps(each + (place < more)) for place, index in enumerate(hosts))
    return heapq.merge(*streams, key=lambda post: post.cycle)


class _Host:
    """One host that sends SMPs."""

    def __init__(self, fabric: FabricParameters, index: int, traffic: SmpTraffic) -> None:
        self._names = list(fabric.nodes)
        self._name = self._names[index]
        self._nodes = fabric.nodes
        self._numbers = {name: fabric.identity(name).port for name in fabric.nodes}
        self._index = index
        self._traffic = traffic
        self._random = Random(f"{traffic.seed}/smps/{self._name}")
        self._peers: dict[tuple[str, int], str] = {}
        for link in fabric.links:
            self._peers[link.a, link.a_port] = link.b
            self._peers[link.b, link.b_port] = link.a

    def smps(self, count: int) -> Iterator[Post]:
        """So many, by cycle."""
        node = self._nodes[self._name]
        cycle = self._traffic.start
        for number in range(count):
            cycle += self._random.randint(0, 2 * self._traffic.spacing)
            yield Post(cycle, self._index, node.vls, self._packet(number))

    def _packet(self, number: int) -> bytes:
        random = self._random
        path, target = self._route()
        attribute = random.choice(_ATTRIBUTES)
        method = random.choice(_METHODS)
        modifier = self._modifier(attribute, target)
        lid_routed = random.random() < _LID_ROUTED_SHARE
        slid = dlid = LID_PERMISSIVE
        ends = {}
        if lid_routed or random.random() < _COMBINED_SHARE:
            slid, dlid = self._lid(), self._lid()
            ends = {} if lid_routed else {"dr_slid": random.choice((slid, LID_PERMISSIVE))}
        if not lid_routed and random.random() < _COMBINED_SHARE:
            ends["dr_dlid"] = self._lid()
        smp = smp_request(
            method,
            attribute,
            modifier,
            self._data(attribute, method),
            transaction_id=self._index << 32 | number,
            m_key=random.choice(KEYS),
            path=None if lid_routed else path,
            **ends,
        )
        payload = smp.pack()
        if random.random() < _MUTATED_SHARE:
            payload = self._mutated(payload)
        data = smp_packet(payload, slid, dlid, number).data
        if random.random() < _BROKEN_SHARE:
            # Past the LRH, so that the links still take it: opcode, QP, or the ICRC at its end.
            place = random.choice((random.randrange(LRH.size_bytes, _HEADERS), len(data) - 1))
            data = data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
        return data

    def _lid(self) -> int:
        return self._random.randint(1, _LIDS)

    def _route(self) -> tuple[list[int], str]:
        """Ports of a directed route, and where it ends; a wrong one ends anywhere."""
        random = self._random
        path: list[int] = []
        place = self._name
        for _hop in range(random.randint(0, _MOST_HOPS)):
            ports = [port for name, port in self._peers if name == place]
            if path and not isinstance(self._nodes[place], SwitchParameters):
                break
            out = random.choice(ports)
            path.append(out if isinstance(self._nodes[place], SwitchParameters) else self._numbers[place])
            place = self._peers[place, out]
        if path and random.random() < _WRONG_PATH_SHARE:
            path[random.randrange(len(path))] = random.choice((0, 1, 2, 63, 64, 255))
        return path, place

    def _modifier(self, attribute: int, target: str) -> int:
        """One that fits the attribute at the target, or not."""
        random = self._random
        if random.random() < _WILD_MODIFIER_SHARE:
            return random.choice((random.getrandbits(32), random.getrandbits(8), 1 << 31))
        node = self._nodes[target]
        ports, lft_blocks, mft_blocks = 1, 1, 1
        if isinstance(node, SwitchParameters):
            ports = node.ports
            lft_blocks = -(-node.lft_size // LINEAR_FORWARDING_TABLE.count)
            mft_blocks = node.mft_size // 32
        port, other = random.randint(0, ports), random.randint(0, ports)
        if ports == 1:
            port = random.choice((port, self._numbers[target]))
        match attribute:
            case SmaAttribute.PORT_INFO:
                return PORT_INFO_MODIFIER.to_int({"port": port})
            case SmaAttribute.LED_INFO:
                return PORT_MODIFIER.to_int({"port": port})
            case SmaAttribute.P_KEY_TABLE:
                return P_KEY_TABLE_MODIFIER.to_int({"port": port})
            case SmaAttribute.SL_TO_VL_MAPPING_TABLE:
                return SL_TO_VL_MODIFIER.to_int({"input_port": port, "output_port": other})
            case SmaAttribute.VL_ARBITRATION_TABLE:
                block = random.choice(tuple(VLArbitrationBlock))
                return VL_ARBITRATION_MODIFIER.to_int({"port": port, "block": block})
            case SmaAttribute.LINEAR_FORWARDING_TABLE:
                return BLOCK_MODIFIER.to_int({"block": random.choice((0, 0, random.randint(0, lft_blocks)))})
            case SmaAttribute.MULTICAST_FORWARDING_TABLE:
                return MFT_MODIFIER.to_int({"block": random.randint(0, mft_blocks), "position": random.randint(0, 4)})
        return 0

    def _data(self, attribute: int, method: int) -> bytes:
        random = self._random
        if method != MadMethod.SET or random.random() < _WILD_DATA_SHARE:
            wild = random.randbytes(SMP_DATA_BYTES)
            # A key that nobody knows would lock a node for good.
            return PORT_INFO["m_key"].write(wild, random.choice(KEYS)) if attribute == SmaAttribute.PORT_INFO else wild
        match attribute:
            case SmaAttribute.PORT_INFO:
                return _filled(random, PORT_INFO, self._port_info())
            case SmaAttribute.SWITCH_INFO:
                return _filled(random, SWITCH_INFO, {"linear_fdb_top": random.randint(0, 2 * _LIDS)})
            case SmaAttribute.LINEAR_FORWARDING_TABLE:
                return bytes(random.choice((0, 1, 2, 3, 4, 255)) for _ in range(SMP_DATA_BYTES))
        return random.randbytes(SMP_DATA_BYTES)

    def _port_info(self) -> Mapping[str, int]:
        """What a Subnet Manager would set; seldom what takes a link or the node's other masters away."""
        random = self._random
        states: tuple[int, ...] = (0, PortState.ARMED, PortState.ARMED, PortState.ACTIVE, PortState.ACTIVE)
        physical = 0
        if random.random() < _TAKE_DOWN_SHARE:
            states = (0, PortState.DOWN)
            physical = random.choice((0, *PortPhysicalState))
        locks = random.random() < _LOCK_SHARE
        return {
            "m_key": random.choice(KEYS) if locks else 0,
            "m_key_protect_bits": random.randrange(4) if locks else 0,
            "m_key_lease_period": random.randrange(3),
            "lid": self._lid(),
            "master_sm_lid": self._lid(),
            "link_width_enabled": random.choice((0, 1, 2, 3, LINK_WIDTH_ALL)),
            "link_speed_enabled": random.choice((0, 1, 15)),
            "port_state": random.choice(states),
            "port_physical_state": physical,
            "link_down_default_state": random.choice((0, 1, 2)),
            "neighbor_mtu": random.randint(1, 5),
            "operational_vls": random.randint(0, 4),
            "subnet_timeout": random.randrange(6),
            "lmc": random.choice((0, 0, 1)),
            "m_key_violations": random.choice((0, 1)),
        }

    def _mutated(self, payload: bytes) -> bytes:
        """With a few of its bytes changed, those of the header and of the paths more often than others."""
        random = self._random
        mad = bytearray(payload)
        for _ in range(random.randint(1, 3)):
            place = random.choice((random.randrange(64), random.randrange(64), random.randrange(len(mad))))
            mad[place] = random.choice((random.getrandbits(8), 0, 255, mad[place] ^ 1 << random.randrange(8)))
        return bytes(mad)


def _filled(random: Random, layout: Layout, values: Mapping[str, int]) -> bytes:
    """The attribute with these values; its other fields are random."""
    fields = {field.name: random.getrandbits(field.width) for field in layout.fields}
    return layout.record(**fields | dict(values)).pack()
