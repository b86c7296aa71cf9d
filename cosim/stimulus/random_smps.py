"""SMPs at random to an agent: every attribute that there is, with values that mostly leave the fabric usable.

Where a Set makes a table of a switch wrong, packets are refused or swallowed, none goes astray.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, TypeAlias

from cosim.stimulus.agents import agent_lids, agent_routes
from cosim.stimulus.random_packets import random_p_key
from cosim.stimulus.rare_fields import (
    LEASED_PORT_0_SHARE,
    RARE_PORT_0_SHARE,
    leased_m_key,
    with_long_lease,
    with_rare_fields,
)
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, P_KEY_DEFAULT, VL15, PortState, mtu_code, operational_vls
from wire.forwarding_tables import (
    BLOCK_MODIFIER,
    LFT_NO_ROUTE,
    LINEAR_FORWARDING_TABLE,
    MFT_MODIFIER,
    MULTICAST_FORWARDING_TABLE,
)
from wire.layout import Layout
from wire.mad import MadMethod
from wire.parameters import SwitchParameters
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import (
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
)
from wire.sma import SmaAttribute
from wire.smp import SMP_DATA_BYTES
from wire.switch_info import SWITCH_INFO

__all__ = ["M_KEYS", "Repair", "SetSoFar", "SmpContent", "random_smp_content"]

M_KEYS: Final = (0, 0, 0, 0x77, 0xA5C3 << 48, 0xA5C3_0000_1234_5678)
"""Of nodes and of SMPs: of each word, and of both."""

_SET_SHARE: Final = 0.5
_ANY_MODIFIER_SHARE: Final = 0.08
_WRONG_SHARE: Final = 0.08
"""Of fields that make a difference, the wrong."""

_WRONG_TOP_SHARE: Final = 0.3
"""Of LinearFDBTops, those below the highest LID, or behind the table; likewise those that may be anything above it."""

_ABOVE_TOP_SHARE: Final = 0.4
_PORT_0_SHARE: Final = 0.5
"""Of modifiers of PortInfo at a switch, those of the port that manages it."""

_MOSTLY_PORT_0_SHARE: Final = 0.05
"""Where most SMPs are about one attribute."""

_OTHERS_SHARE: Final = 0.3
"""Of Sets of PortInfo and SwitchInfo, those with anything where nothing is set."""

_OTHER_LID_SHARE: Final = 0.4
_AGAIN_SHARE: Final = 0.3
"""Of SMPs, those for what was set at the same node before; of these, further Sets."""

_SET_AGAIN_SHARE: Final = 0.2
_MOSTLY_SHARE: Final = 0.8
_MOST_SET: Final = 6
_MOST_KEYS: Final = 3
_LAST_KEY_SHARE: Final = 0.7
_NEAR_KEY_SHARE: Final = 0.08
"""Of M_Keys of SMPs, those with a bit that is wrong."""

_NEW_KEY_SHARE: Final = 0.4

_BEYOND_SHARE: Final = 0.4
"""Of modifiers, those that may name the first port or position that there is not."""

_FAULTY_SHARE: Final = 0.6
"""Of tables, those with wrong entries."""

_FAULTS: Final = (1, 2, 3, 16)
"""Of such a table, so many entries."""

_PROBABLE: Final = (
    SmaAttribute.PORT_INFO,
    SmaAttribute.PORT_INFO,
    SmaAttribute.PORT_INFO,
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
    SmaAttribute.SL_TO_VL_MAPPING_TABLE,
    SmaAttribute.VL_ARBITRATION_TABLE,
    SmaAttribute.P_KEY_TABLE,
    SmaAttribute.GUID_INFO,
    SmaAttribute.LED_INFO,
)
_ATTRIBUTES: Final = (*SmaAttribute, *[*_PROBABLE] * 3, 0x0000, 0x0013, 0xFF00)
_LIFE_TIMES: Final = (31, *range(20, 32, 3), 19, 2, 1, 0)
_LEASE_PERIODS: Final = (0, 1, 1, 2, 2)
_STATES: Final = (0,) * 12 + (1, 3, 3, 3, 4, 4, 4, 2, 5, 15)
_PHYSICAL_STATES: Final = (0,) * 40 + (1, 2, 2, 3, 4, 15)
_REFUSED_PHYSICAL_STATES: Final = (0, 0, 1, 2, 3, 15)
"""Where none but 0 is taken, and so none keeps a port out."""

_MOST_SUBNET_TIMEOUT: Final = 2
_MOST_PORT: Final = 0xFF
_M_KEY_BITS: Final[int] = PORT_INFO["m_key"].width


class Repair(NamedTuple):
    """A bus write that makes right what a Set may have made wrong."""

    node: int
    address: int
    value: int


class SmpContent(NamedTuple):
    """What an SMP asks of an agent.

    Attributes:
        method: Get or Set.
        attribute_id: that of an attribute, or any.
        attribute_modifier: mostly one that is allowed.
        data: up to 64 bytes.
        repairs: of the tables of a switch.
    """

    method: MadMethod
    attribute_id: int
    attribute_modifier: int
    data: bytes
    repairs: tuple[Repair, ...] = ()


@dataclass
class SetSoFar:
    """What SMPs have set at a node, as far as they have come there.

    Attributes:
        m_keys: the last, of which one may be its M_Key.
        places: attributes and modifiers of the last Sets.
        mostly: what most SMPs are about, if there is such an attribute.
        rare: draws fields that are rare elsewhere, if there are such.
        leased: draws leases of a few seconds but for a bit, and M_Keys that begin and end them, likewise.
    """

    m_keys: deque[int] = field(default_factory=lambda: deque((0,), maxlen=_MOST_KEYS))
    places: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_MOST_SET))
    mostly: SmaAttribute | None = None
    rare: Random | None = None
    leased: Random | None = None

    def m_key(self, random: Random) -> int:
        """Of an SMP, mostly the one that was set last."""
        if self.leased:
            return leased_m_key(self.leased)
        m_key = self.m_keys[-1] if random.random() < _LAST_KEY_SHARE else random.choice((*self.m_keys, *M_KEYS))
        return m_key ^ 1 << random.randrange(_M_KEY_BITS) if random.random() < _NEAR_KEY_SHARE else m_key

    def note(self, content: SmpContent, *, is_own_port: bool) -> None:
        """A Set is sent; IS_OWN_PORT: a PortInfo in it is that of the port that manages the node."""
        self.places.append((content.attribute_id, content.attribute_modifier))
        if content.attribute_id == SmaAttribute.PORT_INFO and is_own_port:
            self.m_keys.append(PORT_INFO["m_key"].read(content.data))


_Data: TypeAlias = tuple[bytes, tuple[Repair, ...]]


def random_smp_content(topology: Topology, random: Random, node: str, so_far: SetSoFar) -> SmpContent:
    """A Get or Set of any attribute, for the agent of a node; some for what was set before, at times long before."""
    if so_far.places and random.random() < _AGAIN_SHARE:
        attribute, modifier = random.choice(so_far.places)
        set_share = _SET_AGAIN_SHARE
    else:
        attribute, set_share = random.choice(_ATTRIBUTES), _SET_SHARE
        if so_far.mostly is not None and random.random() < _MOSTLY_SHARE:
            attribute = so_far.mostly
        port_0_share = _PORT_0_SHARE if so_far.mostly is None else _MOSTLY_PORT_0_SHARE
        if so_far.rare:
            port_0_share = RARE_PORT_0_SHARE
        if so_far.leased:
            port_0_share = LEASED_PORT_0_SHARE
        modifier = _modifier(topology, random, node, attribute, port_0_share)
    if random.random() >= set_share:
        data = random.choice((b"", random.randbytes(SMP_DATA_BYTES)))
        return SmpContent(MadMethod.GET, attribute, modifier, data)
    make = _DATA.get(attribute)
    made: _Data = (random.randbytes(SMP_DATA_BYTES), ()) if make is None else make(topology, random, node, modifier)
    if so_far.rare and attribute == SmaAttribute.PORT_INFO:
        made = with_rare_fields(so_far.rare, made[0], topology.fabric.nodes[node].mtu), made[1]
    if so_far.leased and attribute == SmaAttribute.PORT_INFO:
        made = with_long_lease(so_far.leased, made[0]), made[1]
    content = SmpContent(MadMethod.SET, attribute, modifier, *made)
    port = PORT_INFO_MODIFIER["port"].read(modifier.to_bytes(4, "big"))
    so_far.note(content, is_own_port=port == 0 or not _is_switch(topology, node))
    return content


def _is_switch(topology: Topology, node: str) -> bool:
    return isinstance(topology.fabric.nodes[node], SwitchParameters)


def _modifier(topology: Topology, random: Random, node: str, attribute: int, port_0_share: float) -> int:
    """Mostly one that is allowed, or just not."""
    if random.random() < _ANY_MODIFIER_SHARE:
        return random.choice((1, 2, 1 << random.randrange(32), random.getrandbits(16), random.getrandbits(32)))
    parameters = topology.fabric.nodes[node]
    most = topology.fabric.port_count(parameters) + (random.random() < _BEYOND_SHARE)
    port, other = random.randint(0, most), random.randint(0, most)
    match attribute:
        case SmaAttribute.PORT_INFO:
            if _is_switch(topology, node) and random.random() < port_0_share:
                port = 0
            return PORT_INFO_MODIFIER.to_int(port=port, extended_speeds=int(random.random() < _WRONG_SHARE))
        case SmaAttribute.LED_INFO:
            return port
        case SmaAttribute.P_KEY_TABLE:
            return P_KEY_TABLE_MODIFIER.to_int(port=port)
        case SmaAttribute.SL_TO_VL_MAPPING_TABLE:
            return SL_TO_VL_MODIFIER.to_int(input_port=port, output_port=other)
        case SmaAttribute.VL_ARBITRATION_TABLE:
            return VL_ARBITRATION_MODIFIER.to_int(block=random.choice((1, 3, 1, 3, random.randint(0, 5))), port=port)
    if not isinstance(parameters, SwitchParameters):
        return 0
    match attribute:
        case SmaAttribute.LINEAR_FORWARDING_TABLE:
            blocks = -(-parameters.lft_size // LINEAR_FORWARDING_TABLE.count)
            return random.choice((0, 0, random.randrange(blocks), blocks - 1, blocks))
        case SmaAttribute.MULTICAST_FORWARDING_TABLE:
            blocks = parameters.mft_size // MULTICAST_FORWARDING_TABLE.count
            position = (parameters.ports + 1) // MULTICAST_FORWARDING_TABLE.entry.width
            return MFT_MODIFIER.to_int(
                block=random.choice((0, 0, random.randrange(blocks), blocks)),
                position=random.randint(0, position + (random.random() < _BEYOND_SHARE)),
            )
    return 0


# What a Set of each attribute holds.


def _switch_info(topology: Topology, random: Random, node: str, modifier: int) -> _Data:
    if not _is_switch(topology, node):
        return SWITCH_INFO.pack(), ()
    top = max(agent_lids(topology).values())
    size, drawn, chosen = _lft_size(topology, node), random.random(), top
    if drawn < _WRONG_TOP_SHARE:
        chosen = random.choice((0, random.randrange(top), size, size | 1 << random.randrange(16), 0xFFFF))
    elif drawn > 1 - _ABOVE_TOP_SHARE:
        chosen = random.randrange(top, size)

    def default() -> int:
        """A port. Elsewhere, what is in no group would go somewhere, and among several switches in circles."""
        none = topology.fabric.port_count(topology.fabric.nodes[node]) + 1
        return random.choice((_MOST_PORT, random.randint(0 if _may_multiply(topology) else none, _MOST_PORT)))

    values = {
        "linear_fdb_cap": random.getrandbits(16),
        "linear_fdb_top": chosen,
        "default_port": random.getrandbits(8),
        "default_multicast_primary_port": default(),
        "default_multicast_not_primary_port": default(),
        "life_time_value": random.choice(_LIFE_TIMES),
        "port_state_change": random.getrandbits(1),
        "lids_per_port": random.getrandbits(16),
        "multicast_fdb_top": random.choice(
            (0, 0, LID_MULTICAST_MIN - 1, LID_MULTICAST_MIN, LID_MULTICAST_MAX, random.getrandbits(16))
        ),
    }
    address = registers.node_address(registers.NodeRegister.LINEAR_FDB_TOP)
    repairs = (Repair(topology.index[node], address, top),) if chosen != top else ()
    return _with_others(SWITCH_INFO, random, values), repairs


def _lft_size(topology: Topology, node: str) -> int:
    """LinearFDBCap of a switch: LinearFDBTop is less."""
    parameters = topology.fabric.nodes[node]
    assert isinstance(parameters, SwitchParameters)
    return parameters.lft_size


def _may_multiply(topology: Topology) -> bool:
    """There are groups, and no links between switches: what is sent to a group may go anywhere."""
    return bool(topology.groups) and topology.has_one_hop


def _port_info(topology: Topology, random: Random, node: str, modifier: int) -> _Data:
    lids = agent_lids(topology)
    own = lids.get(node, 0)
    number = PORT_INFO_MODIFIER["port"].read(modifier.to_bytes(4, "big")) if _is_switch(topology, node) else 1
    port = Port(node, number)
    is_linked = topology.link_at(port) is not None
    mtu = int(mtu_code(topology.mtu(port) if is_linked else topology.fabric.nodes[node].mtu))
    vls = operational_vls(topology.vls(port) if is_linked else topology.fabric.nodes[node].vls)

    def mostly(right: int, bits: int) -> int:
        return right if random.random() >= _WRONG_SHARE else random.getrandbits(bits)

    def lid(right: int) -> int:
        return random.randrange(1, LID_MULTICAST_MIN) if random.random() < _OTHER_LID_SHARE else mostly(right, 16)

    state = random.choice(_STATES)
    is_refused = number == 0 or state > PortState.DOWN
    values = {
        "m_key": random.getrandbits(_M_KEY_BITS) if random.random() < _NEW_KEY_SHARE else random.choice((0, *M_KEYS)),
        "gid_prefix": random.getrandbits(64),
        "lid": lid(own),
        "master_sm_lid": lid(random.choice((0, *lids.values()))),
        "capability_mask": random.getrandbits(32),
        "m_key_lease_period": random.choice((*_LEASE_PERIODS, random.getrandbits(16))),
        "link_width_enabled": _widths(random.choice((0, 3, 0xFF, random.getrandbits(8)))),
        "link_speed_enabled": random.choice((0, 1, 0xF, random.getrandbits(4))),
        "port_state": state,
        "port_physical_state": random.choice(_REFUSED_PHYSICAL_STATES if is_refused else _PHYSICAL_STATES),
        "link_down_default_state": random.choice((0, 1, 2, 2, mostly(2, 4))),
        "m_key_protect_bits": random.getrandbits(2),
        "lmc": mostly(0, 3),
        "neighbor_mtu": mostly(mtu, 4),
        "master_sm_sl": random.getrandbits(4),
        "vl_cap": random.getrandbits(4),
        "init_type": random.getrandbits(4),
        "vl_high_limit": random.choice((0, 1, 255, random.getrandbits(8))),
        "vl_stall_count": random.getrandbits(3),
        "hoq_life": random.choice(_LIFE_TIMES),
        "operational_vls": random.choice((0, mostly(vls, 4))),
        "m_key_violations": mostly(0, 16),
        "p_key_violations": random.getrandbits(1),
        "q_key_violations": random.getrandbits(1),
        "client_reregister": random.getrandbits(1),
        "subnet_timeout": random.randint(0, _MOST_SUBNET_TIMEOUT),
        "local_phy_errors": random.choice((0, 1, 15, random.getrandbits(4))),
        "overrun_errors": random.choice((0, 1, 2, random.getrandbits(4))),
        "link_round_trip_latency": random.getrandbits(24),
    }
    for name in (
        "partition_enforcement_inbound",
        "partition_enforcement_outbound",
        "filter_raw_inbound",
        "filter_raw_outbound",
    ):
        values[name] = int(random.random() < _WRONG_SHARE)
    # A port that is Down or not Active for good would end most of what there is to see.
    if random.random() < 0.5 and number:
        values |= {"port_state": PortState.NO_CHANGE, "port_physical_state": 0}
    return _with_others(PORT_INFO, random, values), ()


def _with_others(layout: Layout, random: Random, values: Mapping[str, int]) -> bytes:
    """An attribute with these values. Bits that are nobody's, and fields that are read only, are 0 or anything."""
    data = random.randbytes(layout.size_bytes) if random.random() < _OTHERS_SHARE else bytes(layout.size_bytes)
    for name, value in values.items():
        data = layout[name].write(data, value)
    return data


def _widths(drawn: int) -> int:
    """Of the values that are refused, half are one that may be instead: drawn at random, those are rare."""
    return 1 + drawn % 3 if drawn > 3 and drawn % 2 == 0 else drawn


def _p_keys(topology: Topology, random: Random, node: str, modifier: int) -> _Data:
    others = (random.choice((0, P_KEY_DEFAULT, random_p_key(random))) for _ in range(P_KEY_TABLE.count - 1))
    return P_KEY_TABLE.pack((random.choice((P_KEY_DEFAULT, random_p_key(random))), *others)), ()


def _sl_to_vl(topology: Topology, random: Random, node: str, modifier: int) -> _Data:
    """Of a switch's ports what bring-up writes, or a VL that discards. All else is free."""
    in_port, out_port = (SL_TO_VL_MODIFIER[name].read(modifier.to_bytes(4, "big")) for name in _PORTS_OF_MODIFIER)
    out = Port(node, out_port)
    if not _is_switch(topology, node) or not in_port or topology.link_at(out) is None:
        return random.randbytes(SL_TO_VL_MAPPING_TABLE.size_bytes), ()
    right = [topology.vl(out, sl, in_port) for sl in range(SL_TO_VL_MAPPING_TABLE.count)]
    wrong = {sl: random.choice((VL15, *range(topology.vls(out), VL15))) for sl in _some(random, range(len(right)))}
    entries = [wrong.get(sl, vl) for sl, vl in enumerate(right)]
    if in_port > topology.fabric.port_count(topology.fabric.nodes[node]):
        return SL_TO_VL_MAPPING_TABLE.pack(entries), ()
    index = topology.index[node]
    repairs = (Repair(index, registers.sl_to_vl_address(in_port, out_port, sl), right[sl]) for sl in wrong)
    return SL_TO_VL_MAPPING_TABLE.pack(entries), tuple(repairs)


_PORTS_OF_MODIFIER: Final = ("input_port", "output_port")


def _some(random: Random, entries: Sequence[int]) -> list[int]:
    """A few of some entries, mostly none."""
    return random.sample(entries, min(len(entries), random.choice(_FAULTS))) if random.random() < _FAULTY_SHARE else []


def _linear(topology: Topology, random: Random, node: str, modifier: int) -> _Data:
    """The entries of LIDs that there are as bring-up writes them, some of them and all others leading nowhere."""
    table = LINEAR_FORWARDING_TABLE
    parameters = topology.fabric.nodes[node]
    if not isinstance(parameters, SwitchParameters):
        return table.pack(), ()
    block = BLOCK_MODIFIER["block"].read(modifier.to_bytes(4, "big"))
    right = {**topology.tables[node], **agent_routes(topology, node)}
    nowhere = (0, parameters.ports + 1, LFT_NO_ROUTE, LFT_NO_ROUTE)
    lids = range(block * table.count, (block + 1) * table.count)
    wrong = set(_some(random, [lid for lid in lids if lid in right]))
    entries = [random.choice(nowhere) if lid in wrong or lid not in right else right[lid] for lid in lids]
    index = topology.index[node]
    repairs = (Repair(index, registers.lft_address(lid), right[lid]) for lid in sorted(wrong))
    return table.pack(entries), tuple(repairs)


def _multicast(topology: Topology, random: Random, node: str, modifier: int) -> _Data:
    """Anything where no packet can go in circles, else the entries of groups or none."""
    table = MULTICAST_FORWARDING_TABLE
    fields = modifier.to_bytes(4, "big")
    block, position = MFT_MODIFIER["block"].read(fields), MFT_MODIFIER["position"].read(fields)
    if not _is_switch(topology, node) or not topology.groups:
        return table.pack(), ()
    width = table.entry.width

    def entry(mlid: int) -> int:
        if _may_multiply(topology) and random.random() < 0.5:
            return random.getrandbits(width)
        ports = topology.multicast_tables[node].get(mlid, ())
        right = sum(1 << port % width for port in ports if port // width == position)
        return 0 if random.random() < _WRONG_SHARE else right

    return table.pack(entry(LID_MULTICAST_MIN + block * table.count + place) for place in range(table.count)), ()


_DATA: Final[Mapping[int, Callable[[Topology, Random, str, int], _Data]]] = {
    SmaAttribute.SWITCH_INFO: _switch_info,
    SmaAttribute.PORT_INFO: _port_info,
    SmaAttribute.P_KEY_TABLE: _p_keys,
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: _sl_to_vl,
    SmaAttribute.LINEAR_FORWARDING_TABLE: _linear,
    SmaAttribute.MULTICAST_FORWARDING_TABLE: _multicast,
}
"""The others may hold anything: they move no packet elsewhere."""
