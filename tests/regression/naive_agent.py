"""What a node's agent stores, from the SMPs that it takes: docs/management.md, sections 3 and 4, read naively.

Nothing here knows cycles but of the M_Key's lease, ports' states or where a packet goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wire.codes import LID_PERMISSIVE, LID_UNICAST_MAX, LNH, mtu_code, operational_vls
from wire.crc import ICRC_BYTES, icrc, icrc_good
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE, MFT_MODIFIER
from wire.headers import BTH, DETH, LRH
from wire.mad import BASE_VERSION, CLASS_VERSION, MAD_BYTES, MAD_HEADER, MadMethod, MgmtClass
from wire.opcodes import Opcode
from wire.parameters import AdapterParameters, NodeIdentity, SwitchParameters
from wire.port_info import LINK_SPEED_ALL, LINK_WIDTH_ALL, PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import (
    GUID_INFO,
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
    VL_ARBITRATION_TABLE,
)
from wire.sma import LED_INFO, SmaAttribute
from wire.smp import MAX_HOPS, SMP_DIRECTED_ROUTE, SMP_LID_ROUTED
from wire.switch_info import SWITCH_INFO

__all__ = ["Answer", "NaiveAgent", "Taken", "answer_of", "is_smp"]

_MAD = LRH.size_bytes + BTH.size_bytes + DETH.size_bytes
_BYTES = _MAD + MAD_BYTES + ICRC_BYTES
_DATA = _MAD + SMP_LID_ROUTED["data"].byte
_RETURN_PATH = _MAD + SMP_DIRECTED_ROUTE["return_path"].byte

_OF_THE_NODE = ("m_key", "gid_prefix", "lid", "master_sm_lid", "m_key_lease_period", "m_key_protect_bits")
_OF_THE_NODE += ("master_sm_sl", "init_type", "m_key_violations", "subnet_timeout")
_OF_A_LINK = ("link_width_enabled", "link_speed_enabled", "link_down_default_state", "neighbor_mtu", "vl_high_limit")
_OF_A_LINK += ("vl_stall_count", "hoq_life", "operational_vls", "local_phy_errors", "overrun_errors")
_OF_A_SWITCH_PORT = ("partition_enforcement_inbound", "partition_enforcement_outbound")
_OF_A_SWITCH_PORT += ("filter_raw_inbound", "filter_raw_outbound")
_OF_A_SWITCH = ("linear_fdb_top", "default_port", "default_multicast_primary_port")
_OF_A_SWITCH += ("default_multicast_not_primary_port", "life_time_value", "multicast_fdb_top")


@dataclass(frozen=True)
class Answer:
    """What shows of an answer. ``m_key`` is that of its PortInfo; None where it holds no node's."""

    transaction_id: int
    attribute: int
    modifier: int
    m_key: int | None


@dataclass(frozen=True)
class Taken:
    """What comes of a packet that an agent took: the packet passed on, the answer, or neither."""

    passed_on: bytes | None = None
    answer: Answer | None = None


@dataclass
class NaiveAgent:
    """The agent of a node.

    Attributes:
        lease_second: cycles.
        settings: what PortInfo stores, by port; what an adapter has is at 0.
        switch_info: what SwitchInfo stores.
        tables: bytes of the other attributes that have been set, by attribute and modifier.
    """

    node: SwitchParameters | AdapterParameters
    identity: NodeIdentity
    lease_second: int
    settings: dict[int, dict[str, int]] = field(default_factory=dict)
    switch_info: dict[str, int] = field(default_factory=dict)
    tables: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _lease_ends: int | None = None

    def __post_init__(self) -> None:
        link = dict.fromkeys(_OF_A_LINK, 0) | {
            "link_width_enabled": 3,
            "link_speed_enabled": 1,
            "link_down_default_state": 2,
            "neighbor_mtu": int(mtu_code(self.node.mtu)),
            "hoq_life": 31,
            "operational_vls": operational_vls(self.node.vls),
            "local_phy_errors": 15,
            "overrun_errors": 15,
        }
        self.settings[0] = dict.fromkeys(_OF_THE_NODE, 0) | {"gid_prefix": 0xFE80_0000_0000_0000}
        if isinstance(self.node, SwitchParameters):
            self.settings |= {port: link | dict.fromkeys(_OF_A_SWITCH_PORT, 0) for port in range(1, self.ports + 1)}
            at_reset = {"linear_fdb_top": self.node.lft_size - 1, "life_time_value": 31}
            nowhere = ("default_multicast_primary_port", "default_multicast_not_primary_port")
            self.switch_info = dict.fromkeys(_OF_A_SWITCH, 0) | at_reset | dict.fromkeys(nowhere, 255)
        else:
            self.settings[0] |= link | {"lmc": 0}

    @property
    def is_switch(self) -> bool:
        return isinstance(self.node, SwitchParameters)

    @property
    def ports(self) -> int:
        return self.node.ports if isinstance(self.node, SwitchParameters) else 1

    def takes(self, packet: bytes, port: int, cycle: int) -> Taken:
        """A whole packet from a port (0: the adapter's host); ``cycle`` is that of step 0."""
        if not is_smp(packet):
            return Taken()
        if _read(packet, "mgmt_class") == MgmtClass.SUBN_DIRECTED_ROUTE:
            passed_on = self._directed(packet, port)
        else:
            passed_on = self._lid_routed(packet, port)
        if passed_on is not None:
            return Taken(passed_on or None)
        return Taken(answer=self._works_on(packet, cycle))

    # The SMI: None is "to the agent", no bytes is dropped or given to the host.

    def _lid_routed(self, packet: bytes, port: int) -> bytes | None:
        own = self.settings[0]
        lmc = own.get("lmc", 0)
        if self.is_switch or port or (own["lid"] and LRH["dlid"].read(packet) >> lmc == own["lid"] >> lmc):
            return None
        return packet

    def _directed(self, packet: bytes, port: int) -> bytes | None:
        read = {name: _read_directed(packet, name) for name in ("d", "hop_pointer", "hop_count", "dr_slid", "dr_dlid")}
        d, hp, hc = read["d"], read["hop_pointer"], read["hop_count"]
        host, switch = port == 0, self.is_switch
        lid_routed_before = LRH["dlid"].read(packet) != LID_PERMISSIVE
        own_lid = self.settings[0]["lid"]
        direct = {"dlid": LID_PERMISSIVE, "slid": LID_PERMISSIVE}
        if hc > MAX_HOPS:
            return b""
        if d == 0:
            if hp == 0 and hc == 0:
                return None
            if host:
                if hp != 0:
                    return b""
                return packet if read["dr_slid"] != LID_PERMISSIVE else _changed(packet, 1, direct)
            if hp == 0:
                return _changed(packet, 1, direct) if switch and lid_routed_before else b""
            if hp < hc:
                return _changed(packet, hp + 1, direct, (hp, port)) if switch else b""
            if hp == hc:
                if read["dr_dlid"] == LID_PERMISSIVE:
                    return None
                lids = {"dlid": read["dr_dlid"], "slid": own_lid}
                return _changed(packet, hp + 1, lids, (hp, port)) if switch else b""
            return None if hp == hc + 1 else b""
        if hc > 0 and hp == hc + 1:
            if host and read["dr_dlid"] != LID_PERMISSIVE:
                return packet
            return _changed(packet, hc, direct) if host or (switch and lid_routed_before) else b""
        if host or not switch:
            return b""
        if 2 <= hp <= hc:
            return _changed(packet, hp - 1, direct)
        if hp == 1 and read["dr_slid"] != LID_PERMISSIVE:
            return _changed(packet, 0, {"dlid": read["dr_slid"], "slid": own_lid})
        return b""

    # The SMA.

    def _works_on(self, packet: bytes, cycle: int) -> Answer | None:
        method, attribute, modifier = (_read(packet, name) for name in ("method", "attribute_id", "attribute_modifier"))
        if method not in (MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS):
            return None
        if attribute == SmaAttribute.SM_INFO and not self.is_switch:
            return None
        shown = self._key_check(method, SMP_LID_ROUTED["m_key"].read(packet, _MAD), cycle)
        if shown is None or method == MadMethod.TRAP_REPRESS:
            return None
        answer = Answer(_read(packet, "transaction_id"), attribute, modifier, None)
        if _read(packet, "class_version") != CLASS_VERSION or not self._has(attribute, modifier):
            return answer
        if method == MadMethod.SET:
            self._sets(attribute, modifier, packet[_DATA:])
        if attribute != SmaAttribute.PORT_INFO:
            return answer
        m_key = 0 if not shown or self._port(modifier) else self.settings[0]["m_key"]
        return Answer(answer.transaction_id, attribute, modifier, m_key)

    def _key_check(self, method: int, key: int, cycle: int) -> bool | None:
        """Whether an answer may show the M_Key; None if there is a violation."""
        own = self.settings[0]
        if self._lease_ends is not None and cycle >= self._lease_ends:
            own["m_key_protect_bits"] = 0
            self._lease_ends = None
        if own["m_key"] in (0, key):
            self._lease_ends = None
            return True
        if method == MadMethod.GET and own["m_key_protect_bits"] <= 1:
            return own["m_key_protect_bits"] == 0
        own["m_key_violations"] = min(own["m_key_violations"] + 1, PORT_INFO["m_key_violations"].max)
        if self._lease_ends is None and own["m_key_lease_period"]:
            self._lease_ends = cycle + own["m_key_lease_period"] * self.lease_second
        return None

    def _port(self, modifier: int) -> int:
        """The key of ``settings`` that a PortInfo is about."""
        return PORT_INFO_MODIFIER["port"].read(modifier.to_bytes(4)) if self.is_switch else 0

    def _has(self, attribute: int, modifier: int) -> bool:
        """Whether a Get of it is answered with the attribute."""
        word = modifier.to_bytes(4)
        ports: Sequence[int] = range(self.ports + 1) if self.is_switch else (0, self.identity.port)
        switch = self.node if isinstance(self.node, SwitchParameters) else None
        match attribute:
            case SmaAttribute.NODE_DESCRIPTION | SmaAttribute.NODE_INFO | SmaAttribute.VENDOR_DIAG:
                return modifier == 0
            case SmaAttribute.GUID_INFO:
                return modifier == 0
            case SmaAttribute.SWITCH_INFO:
                return switch is not None and modifier == 0
            case SmaAttribute.PORT_INFO:
                return PORT_INFO_MODIFIER["port"].read(word) in ports
            case SmaAttribute.P_KEY_TABLE:
                port, block = P_KEY_TABLE_MODIFIER["port"].read(word), P_KEY_TABLE_MODIFIER["block"].read(word)
                return block == 0 and (switch is None or port in ports)
            case SmaAttribute.SL_TO_VL_MAPPING_TABLE:
                both = SL_TO_VL_MODIFIER.unpack(word)
                return switch is None or (
                    modifier >> 16 == 0 and both.input_port in ports and both.output_port in ports
                )
            case SmaAttribute.VL_ARBITRATION_TABLE:
                where = VL_ARBITRATION_MODIFIER.unpack(word)
                return where.block in (1, 3) and (switch is None or where.port in ports[1:])
            case SmaAttribute.LED_INFO:
                return modifier in (ports if switch is None else ports[1:])
            case SmaAttribute.LINEAR_FORWARDING_TABLE:
                return switch is not None and modifier < -(-switch.lft_size // LINEAR_FORWARDING_TABLE.count)
            case SmaAttribute.MULTICAST_FORWARDING_TABLE:
                at = MFT_MODIFIER.unpack(word)
                return switch is not None and at.block < switch.mft_size // 32 and at.position <= self.ports // 16
        return False

    def _place(self, attribute: int, modifier: int) -> tuple[int, int]:
        """Where ``tables`` has it: an adapter does not look at the port."""
        if not self.is_switch:
            if attribute == SmaAttribute.VL_ARBITRATION_TABLE:
                return attribute, modifier >> 16
            return attribute, 0
        return attribute, modifier

    def table(self, attribute: int, modifier: int) -> bytes:
        """What a Get of one of the tables, of LedInfo or GUIDInfo reads."""
        initial: Mapping[int, Callable[[], bytes]] = {
            SmaAttribute.P_KEY_TABLE: lambda: P_KEY_TABLE.pack([0xFFFF]),
            SmaAttribute.SL_TO_VL_MAPPING_TABLE: lambda: SL_TO_VL_MAPPING_TABLE.pack(
                sl % self.node.vls for sl in range(16)
            ),
            SmaAttribute.VL_ARBITRATION_TABLE: VL_ARBITRATION_TABLE.pack,
            SmaAttribute.LINEAR_FORWARDING_TABLE: lambda: LINEAR_FORWARDING_TABLE.pack([LFT_NO_ROUTE] * 64),
            SmaAttribute.MULTICAST_FORWARDING_TABLE: lambda: bytes(64),
            SmaAttribute.LED_INFO: LED_INFO.pack,
            SmaAttribute.GUID_INFO: lambda: GUID_INFO.pack([self.identity.port_guid]),
        }
        return self.tables.get(self._place(attribute, modifier)) or initial[attribute]()

    def _sets(self, attribute: int, modifier: int, data: bytes) -> None:
        match attribute:
            case SmaAttribute.NODE_DESCRIPTION | SmaAttribute.NODE_INFO | SmaAttribute.VENDOR_DIAG:
                return
            case SmaAttribute.PORT_INFO:
                self._sets_port_info(self.settings[self._port(modifier)], data)
            case SmaAttribute.SWITCH_INFO:
                given = {name: SWITCH_INFO[name].read(data) for name in _OF_A_SWITCH}
                if given["linear_fdb_top"] >= self.node.lft_size:
                    del given["linear_fdb_top"]
                self.switch_info |= given
            case SmaAttribute.LED_INFO:
                self.tables[self._place(attribute, modifier)] = LED_INFO.pack(led_mask=data[0] >> 7)
            case SmaAttribute.GUID_INFO:
                guids = GUID_INFO.unpack(data)
                self.tables[self._place(attribute, modifier)] = GUID_INFO.pack([self.identity.port_guid, *guids[1:]])
            case SmaAttribute.SL_TO_VL_MAPPING_TABLE:
                self.tables[self._place(attribute, modifier)] = data[: SL_TO_VL_MAPPING_TABLE.size_bytes]
            case _:
                self.tables[self._place(attribute, modifier)] = data[:64]

    def _sets_port_info(self, port: dict[str, int], data: bytes) -> None:
        most_mtu, most_vls = mtu_code(self.node.mtu), operational_vls(self.node.vls)
        for name in port:
            value = PORT_INFO[name].read(data)
            match name:
                case "lid" | "master_sm_lid":
                    allowed = 1 <= value <= LID_UNICAST_MAX
                case "link_width_enabled":
                    value = 3 if value == LINK_WIDTH_ALL else value
                    allowed = value in (1, 2, 3)
                case "link_speed_enabled":
                    value = 1 if value == LINK_SPEED_ALL else value
                    allowed = value == 1
                case "link_down_default_state":
                    allowed = value in (1, 2)
                case "neighbor_mtu":
                    allowed = 1 <= value <= most_mtu
                case "operational_vls":
                    allowed = 1 <= value <= most_vls
                case "m_key_violations":
                    allowed = value == 0
                case _:
                    allowed = True
            if allowed:
                port[name] = value


def answer_of(packet: bytes) -> Answer | None:
    """The answer that a packet holds."""
    if not is_smp(packet) or _read(packet, "method") != MadMethod.GET_RESP:
        return None
    what = [_read(packet, name) for name in ("transaction_id", "attribute_id", "attribute_modifier")]
    return Answer(*what, PORT_INFO["m_key"].read(packet, _DATA))


def is_smp(packet: bytes) -> bool:
    """Whether an agent works on it."""
    return (
        len(packet) == _BYTES
        and LRH["lnh"].read(packet) == LNH.IBA_LOCAL
        and BTH["opcode"].read(packet, LRH.size_bytes) == Opcode.UD_SEND_ONLY
        and BTH["dest_qp"].read(packet, LRH.size_bytes) == 0
        and icrc_good(packet)
        and _read(packet, "base_version") == BASE_VERSION
        and _read(packet, "mgmt_class") in (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE)
    )


def _read(packet: bytes, name: str) -> int:
    return MAD_HEADER[name].read(packet, _MAD)


def _read_directed(packet: bytes, name: str) -> int:
    return SMP_DIRECTED_ROUTE[name].read(packet, _MAD)


def _changed(packet: bytes, hop_pointer: int, lids: Mapping[str, int], returns: tuple[int, int] | None = None) -> bytes:
    """With another HopPointer, LIDs of the LRH, and an entry of the ReturnPath: its place and port."""
    made = bytearray(SMP_DIRECTED_ROUTE["hop_pointer"].write(packet, hop_pointer, _MAD))
    for name, lid in lids.items():
        made = bytearray(LRH[name].write(bytes(made), lid))
    if returns is not None:
        made[_RETURN_PATH + returns[0]] = returns[1]
    body = bytes(made[:-ICRC_BYTES])
    return body + icrc(body)
