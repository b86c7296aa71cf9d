"""A fabric of SMIs and SMAs to manage: functional, not cycle-exact. A test double for whatever carries MADs.

It follows IBTA vol 1: 14.2.2 for directed routes, hop by hop; 14.2.5 for what Get and Set do; 14.2.5.1 for traps.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from itertools import count

from sm.mad_client import MadClient, OutgoingMad
from sm.subnet import End, Node, Subnet
from wire.codes import (
    LID_MULTICAST_MIN,
    LID_PERMISSIVE,
    P_KEY_DEFAULT,
    QP_SMI,
    PortPhysicalState,
    PortState,
    is_unicast_lid,
)
from wire.forwarding_tables import (
    BLOCK_MODIFIER,
    LFT_NO_ROUTE,
    MFT_MODIFIER,
    MULTICAST_FORWARDING_TABLE,
    mft_block,
    mft_ports,
)
from wire.layout import Record
from wire.mad import MadMethod, MadStatus, mad_data
from wire.node_info import NODE_INFO, node_description
from wire.notice import ProducerType, TrapNumber, notice
from wire.port_info import LINK_SPEED_ALL, LINK_WIDTH_ALL, PORT_INFO, PORT_INFO_MODIFIER, CapabilityMask
from wire.port_tables import (
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
    VL_ARBITRATION_TABLE,
    VLArbitrationBlock,
)
from wire.sma import SmaAttribute
from wire.smp import SMP_DIRECTED_ROUTE, smp_request, smp_response, unpack_smp
from wire.switch_info import SWITCH_INFO

HOP_CYCLES = 100
SMA_CYCLES = 40
_HOP_POINTER, _HOP_COUNT, _D, _INITIAL, _RETURN = (
    SMP_DIRECTED_ROUTE[name].byte for name in ("hop_pointer", "hop_count", "d", "initial_path", "return_path")
)
_INVALID = MadStatus.INVALID_ATTRIBUTE_VALUE
# fmt: off
_READ_ONLY = [
    "capability_mask", "diag_code", "local_port_num", "link_width_supported", "link_width_active",
    "link_speed_supported", "link_speed_active", "vl_cap", "vl_arbitration_high_cap", "vl_arbitration_low_cap",
    "init_type_reply", "mtu_cap", "guid_cap", "resp_time_value", "link_round_trip_latency", "capability_mask2",
    "client_reregister",
]
# fmt: on


class SmaNode:
    """A node's SMA. `guid` is what it answers; two nodes may have the same."""

    def __init__(self, node: Node, vls: int, mtu: int, lft_cap: int, mft_cap: int, capabilities: int) -> None:
        self.node = node
        self.guid = node.guid
        self.silent = False
        self.switch_info = SWITCH_INFO.record(
            linear_fdb_cap=lft_cap,
            multicast_fdb_cap=mft_cap,
            enhanced_port0=node.enhanced_port_0,
            life_time_value=0,
            partition_enforcement_cap=P_KEY_TABLE.count,
            inbound_enforcement_cap=1,
            outbound_enforcement_cap=1,
        )
        self.lft = bytearray([LFT_NO_ROUTE]) * lft_cap
        self.mft: dict[tuple[int, int], tuple[int, ...]] = {}
        """By block and position: the masks; 0 in those that nobody has written."""
        self.sl_to_vl: dict[tuple[int, int], tuple[int, ...]] = {}
        self.vl_arbitration: dict[tuple[int, VLArbitrationBlock], tuple[int, ...]] = {}
        """By port, 0 of an adapter, and block: the entries."""
        self.p_keys: dict[int, tuple[int, ...]] = {
            number: P_KEY_TABLE.unpack(P_KEY_TABLE.pack([P_KEY_DEFAULT])) for number in range(node.ports + 1)
        }
        """By port: block 0 of its table."""
        self.partition_cap = P_KEY_TABLE.count
        self.ports = {
            number: PORT_INFO.record(
                local_port_num=number,
                port_state=PortState.ACTIVE if number == 0 else PortState.DOWN,
                port_physical_state=PortPhysicalState.LINK_UP if number == 0 else PortPhysicalState.POLLING,
                link_down_default_state=PortPhysicalState.POLLING,
                link_width_supported=3,
                link_width_enabled=3,
                link_speed_supported=1,
                link_speed_enabled=1,
                vl_cap=vls,
                operational_vls=vls,
                mtu_cap=mtu,
                neighbor_mtu=mtu,
                capability_mask=capabilities if number in node.end_ports else 0,
            )
            for number in range(0 if node.is_switch else 1, node.ports + 1)
        }
        if mft_cap and node.is_switch:
            self.change(0, capability_mask=capabilities | CapabilityMask.IS_MULTICAST_FDB_TOP_SUPPORTED)

    @property
    def lid(self) -> int:
        """Of port 0 of a switch."""
        return self.ports[0].lid

    def multicast_ports(self, mlid: int) -> set[int]:
        """The ports that packets to an MLID leave by, but for the one that they came by."""
        info = self.switch_info
        if mlid - LID_MULTICAST_MIN >= info.multicast_fdb_cap or 0 < info.multicast_fdb_top < mlid:
            return set()
        block, index = mft_block(mlid)
        return {
            port
            for (at, position), masks in self.mft.items()
            if at == block
            for port in mft_ports(position, masks[index])
        }

    def change(self, port: int, **values: int) -> None:
        self.ports[port] = self.ports[port].replace(**values)


class SmaFabric:
    """The subnet as it really is, and Subnet Managers' MAD clients at some of its ports: one at first.

    `vls` and `mtu` are VLCap and MTUCap codes of all nodes unless their SmaNode is changed, `capabilities` a part of
    CapabilityMask of their end ports.
    """

    def __init__(
        self,
        subnet: Subnet,
        origin: End,
        mads: MadClient,
        *,
        vls: int = 1,
        mtu: int = 4,
        lft_cap: int = 1024,
        mft_cap: int = 0,
        capabilities: int = 0,
        lose: Callable[[], bool] = lambda: False,
    ) -> None:
        self.subnet = subnet
        self.mads = mads
        self.managers = {origin: mads}
        self.on_gmp: Callable[[OutgoingMad], None] = lambda out: None
        """Gets what a Subnet Manager sends by QP1."""
        self.now = 0
        self._like = vls, mtu, lft_cap, mft_cap, capabilities
        self.nodes: dict[int, SmaNode] = {}
        for guid in subnet.nodes:
            self.add(guid)
        self.lose = lose
        self.lose_trap: Callable[[], bool] = lambda: False
        """Whether a Trap or TrapRepress is lost."""
        self.on_request: Callable[[End, Record], None] = lambda end, smp: None
        """Called for each request that reaches an SMA, with the port it came in by."""
        self.refuses: Callable[[End, Record], int] = lambda end, smp: 0
        """Status by which an SMA refuses a request that nothing is wrong with; it has done as it was asked."""
        self.refuses_state: Callable[[End, int], bool] = lambda end, wanted: False
        """Whether a port does not go to the state it was asked to."""
        self.loops: set[End] = set()
        """Ports that are cabled to themselves."""
        self.requests: Counter[tuple[MadMethod, SmaAttribute]] = Counter()
        self.lft_writes: list[tuple[int, int]] = []
        """(key of the switch, block) in order."""
        self.on_mft: Callable[[], None] = lambda: None
        """Called when a switch has got other masks."""
        self.p_key_writes: list[tuple[End, tuple[int, ...]]] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self.traps: dict[int, tuple[End, bytes]] = {}
        """By transaction id: port and MAD of traps that are not repressed."""
        for link in subnet.links:
            for end in (link.a, link.b):
                self._train(end, link.width, link.speed)
                node = self.nodes[end.guid]
                node.switch_info = node.switch_info.replace(port_state_change=int(node.node.is_switch))

    # What tests do to it.

    def run(self, until: Callable[[], bool], limit: int = 100_000_000) -> None:
        """Lets time pass until something holds; fails after `limit` cycles."""
        stop = self.now + limit
        while True:
            for origin, mads in list(self.managers.items()):
                for out in mads.poll(self.now):
                    self._sent(out, origin)
            if until():
                return
            due = [self._events[0][0]] if self._events else []
            due += [mads.wake for mads in self.managers.values() if mads.wake is not None]
            assert due, "nothing is under way and nothing will be"
            self.now = max(self.now, min(due))
            assert self.now < stop, f"nothing came of it in {limit} cycles"
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()

    def at(self, cycles: int, what: Callable[[], None]) -> None:
        """Does something so many cycles from now."""
        heapq.heappush(self._events, (self.now + cycles, next(self._numbers), what))

    def add_manager(self, end: End, mads: MadClient) -> None:
        """Starts another Subnet Manager, which its port says to the one there is."""
        self.managers[end] = mads
        for one in self.managers:
            before = self.nodes[one.guid].ports[one.port].capability_mask
            self.nodes[one.guid].change(one.port, capability_mask=before | CapabilityMask.IS_SM)
        lid = self.nodes[end.guid].ports[end.port].lid
        details = {"lid": lid, "capability_mask": CapabilityMask.IS_SM}
        self._trap(end, notice(TrapNumber.LOCAL_CHANGES, ProducerType.CA, lid, **details))

    def cut(self, end: End) -> None:
        """Removes a link; switches report it."""
        link = self.subnet.link(end)
        self.subnet.disconnect(end)
        for one in (link.a, link.b):
            self.nodes[one.guid].change(
                one.port, port_state=PortState.DOWN, port_physical_state=PortPhysicalState.POLLING
            )
            self._state_changed(one)

    def add(self, guid: int) -> None:
        """Switches on a node that is new in the subnet."""
        self.nodes[guid] = SmaNode(self.subnet.nodes[guid], *self._like)

    def join(self, one: End, other: End) -> None:
        """Puts a cable in."""
        self.subnet.connect(one, other)
        self.trained(one)

    def trained(self, end: End) -> None:
        """Both ends of a link that is new in the subnet come up."""
        link = self.subnet.link(end)
        for one in (link.a, link.b):
            self._train(one, link.width, link.speed)
            self._state_changed(one)

    def fall_back(self, end: End) -> None:
        """Takes both ends of a link to Initialize, as when one of them was reset."""
        for one in (end, self.subnet.peer(end)):
            self.nodes[one.guid].change(one.port, port_state=PortState.INITIALIZE)
            self._state_changed(one)

    def state(self, end: End) -> PortState:
        return PortState(self.nodes[end.guid].ports[end.port].port_state)

    def tables(self) -> dict[int, bytearray]:
        """What each switch forwards by, up to LinearFDBTop."""
        return {
            guid: node.lft[: node.switch_info.linear_fdb_top + 1] + bytes([LFT_NO_ROUTE]) * 1024
            for guid, node in self.nodes.items()
            if node.node.is_switch
        }

    # Links and traps.

    def _peer(self, end: End) -> End | None:
        return end if end in self.loops else self.subnet.peer(end)

    def _train(self, end: End, width: int, speed: int) -> None:
        self.nodes[end.guid].change(
            end.port,
            port_state=PortState.INITIALIZE,
            port_physical_state=PortPhysicalState.LINK_UP,
            link_width_active=width,
            link_speed_active=speed,
        )

    def _state_changed(self, end: End) -> None:
        node = self.nodes[end.guid]
        if not node.node.is_switch:
            return
        node.switch_info = node.switch_info.replace(port_state_change=1)
        details = notice(TrapNumber.LINK_STATE_CHANGE, ProducerType.SWITCH, node.lid, lid=node.lid)
        self._trap(End(end.guid, 0), details)

    def _trap(self, end: End, details: Record) -> None:
        """Lets a node with a Subnet Manager report something to it."""
        if not self.nodes[end.guid].ports[end.port].master_sm_lid:
            return
        transaction_id = 0xABC << 32 | next(self._numbers)
        smp = smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, data=details.pack(), transaction_id=transaction_id)
        self.traps[transaction_id] = end, smp.pack()
        self._send_trap(transaction_id)

    def _send_trap(self, transaction_id: int) -> None:
        """Sends a trap to the Subnet Manager's LID; again and again until it is repressed."""
        if transaction_id not in self.traps:
            return
        end, mad = self.traps[transaction_id]
        info = self.nodes[end.guid].ports[end.port]
        switch = end.guid if self.nodes[end.guid].node.is_switch else self._peer(end).guid
        mads = self.managers.get(self.arrives(switch, info.master_sm_lid))
        if mads is not None and not self.lose_trap():
            self.at(5 * HOP_CYCLES, lambda: mads.received(mad, self.now))
        self.at(4096 << info.subnet_timeout >> 2, lambda: self._send_trap(transaction_id))

    def arrives(self, key: int, lid: int) -> End | None:
        """Where a LID-routed packet from a switch ends."""
        for _hop in range(64):
            node = self.nodes[key]
            port = node.lft[lid] if lid <= node.switch_info.linear_fdb_top else LFT_NO_ROUTE
            if port == 0:
                return End(key, 0)
            far = self._peer(End(key, port)) if port <= node.node.ports else None
            if far is None or self.state(End(key, port)) < PortState.ARMED:
                return None
            if not self.subnet.nodes[far.guid].is_switch:
                return far
            key = far.guid
        return None

    # Directed routes.

    def _sent(self, out: OutgoingMad, origin: End) -> None:
        if out.qpn != QP_SMI:
            self.on_gmp(out)
            return
        smp = unpack_smp(out.mad)
        if out.dlid != LID_PERMISSIVE:
            assert smp.method == MadMethod.TRAP_REPRESS
            issuer = self.traps.get(smp.transaction_id)
            lid = issuer and self.nodes[issuer[0].guid].ports[issuer[0].port].lid
            if lid == out.dlid and not self.lose_trap():
                del self.traps[smp.transaction_id]
            return
        mad = bytearray(out.mad)
        if self.lose():
            return
        if smp.d:
            self._return(origin, mad)
            return
        assert mad[_HOP_POINTER] == 0
        if mad[_HOP_COUNT] == 0:
            self.at(SMA_CYCLES, lambda: self._deliver(origin, mad))
        elif mad[_INITIAL + 1] == origin.port or self.subnet.nodes[origin.guid].is_switch:
            mad[_HOP_POINTER] = 1
            self._forward(End(origin.guid, mad[_INITIAL + 1]), mad, 1)

    def _return(self, end: End, answer: bytearray) -> None:
        """Sends an answer from a node back by the way that its request came."""
        hop_count = answer[_HOP_COUNT]
        if hop_count == 0:
            self.managers[end].received(bytes(answer), self.now)
        else:
            assert answer[_HOP_POINTER] == hop_count + 1
            answer[_HOP_POINTER] = hop_count
            self._forward(End(end.guid, answer[_RETURN + hop_count]), answer, 1)

    def _forward(self, out: End, mad: bytearray, hops: int) -> None:
        """Sends out of a port, and on as the SMIs in between do."""
        arrival = self._peer(out)
        if arrival is None:
            return
        pointer, hop_count = mad[_HOP_POINTER], mad[_HOP_COUNT]
        relays = self.subnet.nodes[arrival.guid].is_switch
        if mad[_D] & 0x80:
            if pointer == 1:
                mad[_HOP_POINTER] = 0
                home = next((mads for end, mads in self.managers.items() if end.guid == arrival.guid), None)
                if home is not None:
                    self.at(hops * HOP_CYCLES, lambda: home.received(bytes(mad), self.now))
            elif relays and 2 <= pointer <= hop_count:
                mad[_HOP_POINTER] = pointer - 1
                self._forward(End(arrival.guid, mad[_RETURN + pointer - 1]), mad, hops + 1)
        elif pointer == hop_count:
            mad[_RETURN + pointer] = arrival.port
            mad[_HOP_POINTER] = pointer + 1
            self.at(hops * HOP_CYCLES + SMA_CYCLES, lambda: self._deliver(arrival, mad))
        elif relays and 0 < pointer < hop_count:
            mad[_RETURN + pointer] = arrival.port
            mad[_HOP_POINTER] = pointer + 1
            self._forward(End(arrival.guid, mad[_INITIAL + pointer + 1]), mad, hops + 1)

    def _deliver(self, arrival: End, mad: bytearray) -> None:
        """Lets the SMA of a node answer what came in by a port."""
        smp = unpack_smp(bytes(mad))
        node = self.nodes[arrival.guid]
        method, attribute = MadMethod(smp.method), SmaAttribute(smp.attribute_id)
        self.on_request(arrival, smp)
        if node.silent:
            return
        if attribute == SmaAttribute.SM_INFO and arrival in self.managers:
            self.managers[arrival].received(bytes(mad), self.now)
            return
        self.requests[method, attribute] += 1
        data, status = self._answer(node, arrival, smp)
        status = status or self.refuses(arrival, smp)
        if self.lose():
            return
        self._return(arrival, bytearray(smp_response(smp, data, status).pack()))

    # Attributes.

    def _answer(self, node: SmaNode, arrival: End, smp: Record) -> tuple[bytes, int]:
        is_set = smp.method == MadMethod.SET
        modifier, data = smp.attribute_modifier, mad_data(smp)
        match smp.attribute_id:
            case SmaAttribute.NODE_INFO:
                return self._node_info(node, arrival), 0
            case SmaAttribute.NODE_DESCRIPTION:
                return node_description(node.node.description), 0
            case SmaAttribute.PORT_INFO:
                port = PORT_INFO_MODIFIER.from_int(modifier).port
                if not node.node.is_switch:
                    port = port or arrival.port
                    is_set = is_set and port == arrival.port
                if port not in node.ports:
                    return b"", _INVALID
                status = self._set_port_info(End(node.node.guid, port), PORT_INFO.unpack(data)) if is_set else 0
                echoed = PORT_INFO["client_reregister"].read(data) if is_set else 0
                return node.ports[port].replace(client_reregister=echoed).pack(), status
            case SmaAttribute.SL_TO_VL_MAPPING_TABLE:
                ports = SL_TO_VL_MODIFIER.from_int(modifier)
                assert node.node.is_switch == bool(ports.output_port)
                node.sl_to_vl[ports.input_port, ports.output_port] = SL_TO_VL_MAPPING_TABLE.unpack(data)
                return data, 0
            case SmaAttribute.VL_ARBITRATION_TABLE:
                which = VL_ARBITRATION_MODIFIER.from_int(modifier)
                assert node.node.is_switch == bool(which.port)
                node.vl_arbitration[which.port, VLArbitrationBlock(which.block)] = VL_ARBITRATION_TABLE.unpack(data)
                return data, 0
            case SmaAttribute.P_KEY_TABLE:
                which = P_KEY_TABLE_MODIFIER.from_int(modifier)
                port = which.port if node.node.is_switch else arrival.port
                if which.block or port not in node.ports:
                    return b"", _INVALID
                if is_set:
                    cap = node.switch_info.partition_enforcement_cap if which.port else node.partition_cap
                    node.p_keys[port] = P_KEY_TABLE.unpack(P_KEY_TABLE.pack(P_KEY_TABLE.unpack(data)[:cap]))
                    self.p_key_writes.append((End(node.node.guid, port), node.p_keys[port]))
                return P_KEY_TABLE.pack(node.p_keys[port]), 0
        if not node.node.is_switch:
            return b"", MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
        if smp.attribute_id == SmaAttribute.SWITCH_INFO:
            status = self._set_switch_info(node, SWITCH_INFO.unpack(data)) if is_set else 0
            return node.switch_info.pack(), status
        if smp.attribute_id == SmaAttribute.MULTICAST_FORWARDING_TABLE:
            where = MFT_MODIFIER.from_int(modifier)
            if 32 * where.block >= node.switch_info.multicast_fdb_cap or 16 * where.position > node.node.ports:
                return b"", _INVALID
            place = where.block, where.position
            if is_set:
                node.mft[place] = MULTICAST_FORWARDING_TABLE.unpack(data)
                self.on_mft()
            return MULTICAST_FORWARDING_TABLE.pack(node.mft.get(place, ())), 0
        assert smp.attribute_id == SmaAttribute.LINEAR_FORWARDING_TABLE
        block = BLOCK_MODIFIER.from_int(modifier).block
        if 64 * block >= len(node.lft):
            return b"", _INVALID
        if is_set:
            node.lft[64 * block : 64 * block + 64] = data
            self.lft_writes.append((node.node.guid, block))
        return bytes(node.lft[64 * block : 64 * block + 64]), 0

    def _node_info(self, node: SmaNode, arrival: End) -> bytes:
        what = node.node
        own = what.end_ports[0 if what.is_switch else arrival.port]
        return NODE_INFO.pack(
            node_type=what.type,
            num_ports=what.ports,
            system_image_guid=what.system_image_guid,
            node_guid=node.guid,
            port_guid=own.guid + node.guid - what.guid,
            device_id=what.device_id,
            vendor_id=what.vendor_id,
            local_port_num=arrival.port,
            partition_cap=node.partition_cap,
        )

    def _set_switch_info(self, node: SmaNode, wanted: Record) -> int:
        info = node.switch_info
        valid = wanted.linear_fdb_top < info.linear_fdb_cap
        node.switch_info = info.replace(
            linear_fdb_top=wanted.linear_fdb_top if valid else info.linear_fdb_top,
            multicast_fdb_top=wanted.multicast_fdb_top,
            life_time_value=wanted.life_time_value,
            port_state_change=info.port_state_change and not wanted.port_state_change,
        )
        return 0 if valid else _INVALID

    def _set_port_info(self, end: End, wanted: Record) -> int:
        """What is right of a Set holds even where something else of it is not."""
        node = self.nodes[end.guid]
        info = node.ports[end.port]
        values = dict(wanted)
        status = 0
        kept = [*_READ_ONLY, "port_state", "port_physical_state"]
        if end.port in node.node.end_ports:
            for name in ("lid", "master_sm_lid"):
                if not is_unicast_lid(values[name]):
                    kept.append(name)
                    status = _INVALID
        for name, everything in (("link_width_enabled", LINK_WIDTH_ALL), ("link_speed_enabled", LINK_SPEED_ALL)):
            if values[name] in (0, everything):
                kept.append(name)
        if values["link_down_default_state"] == 0:
            kept.append("link_down_default_state")
        if values["operational_vls"] == 0 or values["operational_vls"] > info.vl_cap:
            kept.append("operational_vls")
            status = _INVALID if values["operational_vls"] else status
        if not 1 <= values["neighbor_mtu"] <= 5:
            kept.append("neighbor_mtu")
            status = _INVALID
        kept += [name for name in ("m_key_violations", "p_key_violations", "q_key_violations") if values[name]]
        node.change(end.port, **{name: value for name, value in values.items() if name not in kept})
        return self._set_port_state(end, wanted.port_state) or status

    def _set_port_state(self, end: End, wanted: int) -> int:
        was = self.state(end)
        peer = self._peer(end)
        step = (was, wanted) in ((PortState.INITIALIZE, PortState.ARMED), (PortState.ARMED, PortState.ACTIVE))
        if wanted == PortState.NO_CHANGE or wanted == was:
            return 0
        # A link is Active only between ports that have both been armed.
        if (
            self.refuses_state(end, wanted)
            or not step
            or peer is None
            or (wanted == PortState.ACTIVE and self.state(peer) < PortState.ARMED)
        ):
            return _INVALID
        self.nodes[end.guid].change(end.port, port_state=wanted)
        return 0
