"""PortInfo: what a port is and how it is set (docs/management.md, section 4.2)."""

from collections.abc import Callable, Generator
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

from wire.codes import (
    LINK_WIDTHS,
    MTU,
    LinkSpeed,
    LinkWidth,
    PortPhysicalState,
    PortState,
    is_unicast_lid,
    mtu_code,
    operational_vls,
)
from wire.layout import Record
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters, vl_arbitration_entries
from wire.port_info import (
    ADAPTER_CAPABILITIES,
    LINK_SPEED_ALL,
    LINK_WIDTH_ALL,
    NO_CHANGE,
    PORT_INFO,
    PORT_INFO_MODIFIER,
    SMA_RESP_TIME,
    SWITCH_CAPABILITIES,
    CapabilityMask,
)
from wire.port_tables import GUID_INFO
from wire.registers import (
    PORT_RESET_VALUES,
    Detail,
    NodeRegister,
    PartitionCheck,
    PortRegister,
    node_address,
    port_address,
)
from wire.stimulus import KeyViolation
from wire.time_limits import NO_LIMIT

from .agent_node import AgentNode
from .attribute import READ_STEPS, Request, SettableAttribute, answer_step, set_step, word_of
from .steps import COMMIT, SET, SLOT

__all__ = ["Changes", "PortInfo", "PortKind", "at_reset", "set_fields", "set_states", "shown_state"]

_GID_PREFIX: Final = 0xFE80_0000_0000_0000
_STEP_UP_FROM: Final[dict[int, int]] = {
    PortState.ARMED: PortState.INITIALIZE,
    PortState.ACTIVE: PortState.ARMED,
}
_SETTABLE_PHYSICAL_STATES: Final = (PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED)


class PortKind(Enum):
    """Which fields a port has. The values are the contract's marks."""

    MANAGEMENT = "0"
    """Port 0 of a switch."""
    EXTERNAL = "E"
    """A switch's other ports."""
    ADAPTER = "A"
    """An adapter's port."""


def at_reset(kind: PortKind, mtu: int, vls: int) -> Record:
    """PortInfo of a port of a node with this MTU, in bytes, and number of data VLs."""
    values = {
        "mtu_cap": int(mtu_code(mtu)),
        "vl_cap": operational_vls(vls),
        "link_width_enabled": LINK_WIDTHS,
        "link_width_supported": LINK_WIDTHS,
        "link_speed_supported": int(LinkSpeed.SDR),
        "link_speed_active": int(LinkSpeed.SDR),
        "link_speed_enabled": int(LinkSpeed.SDR),
        "link_down_default_state": int(PortPhysicalState.POLLING),
        "neighbor_mtu": int(mtu_code(mtu)),
        "operational_vls": operational_vls(vls),
    }
    if kind != PortKind.EXTERNAL:
        is_adapter = kind == PortKind.ADAPTER
        values |= {
            "gid_prefix": _GID_PREFIX,
            "capability_mask": int(ADAPTER_CAPABILITIES if is_adapter else SWITCH_CAPABILITIES),
            "guid_cap": GUID_INFO.count,
            "resp_time_value": SMA_RESP_TIME,
        }
    if kind == PortKind.MANAGEMENT:
        values |= {
            "link_width_active": int(LinkWidth.X4),
            "port_state": int(PortState.ACTIVE),
            "port_physical_state": int(PortPhysicalState.LINK_UP),
        }
    else:
        values |= {
            "hoq_life": NO_LIMIT,
            "vl_arbitration_high_cap": vl_arbitration_entries(vls),
            "vl_arbitration_low_cap": vl_arbitration_entries(vls),
            "local_phy_errors": PORT_RESET_VALUES[PortRegister.LOCAL_PHY_ERRORS],
            "overrun_errors": PORT_RESET_VALUES[PortRegister.OVERRUN_ERRORS],
        }
    return PORT_INFO.record(values)


# What a Set of `value` makes of a field that holds `stored`; None if that is refused.


def _anything(value: int, stored: Record) -> int | None:
    return value


def _unicast_lid(value: int, stored: Record) -> int | None:
    return value if is_unicast_lid(value) else None


def _link_width_enabled(value: int, stored: Record) -> int | None:
    if value == LINK_WIDTH_ALL:
        return stored.link_width_supported
    return None if value & ~stored.link_width_supported else value


def _link_speed_enabled(value: int, stored: Record) -> int | None:
    return stored.link_speed_supported if value in (LINK_SPEED_ALL, stored.link_speed_supported) else None


def _link_down_default_state(value: int, stored: Record) -> int | None:
    return value if value in (PortPhysicalState.SLEEP, PortPhysicalState.POLLING) else None


_Rule = Callable[[int, Record], int | None]
_RULES: Final[dict[str, tuple[str, _Rule]]] = {
    "m_key": ("0A", _anything),
    "gid_prefix": ("0A", _anything),
    "lid": ("0A", _unicast_lid),
    "master_sm_lid": ("0A", _unicast_lid),
    "m_key_lease_period": ("0A", _anything),
    "link_width_enabled": ("EA", _link_width_enabled),
    "link_speed_enabled": ("EA", _link_speed_enabled),
    "link_down_default_state": ("EA", _link_down_default_state),
    "m_key_protect_bits": ("0A", _anything),
    "lmc": ("A", _anything),
    "neighbor_mtu": ("EA", lambda value, stored: value if MTU.MTU_256 <= value <= stored.mtu_cap else None),
    "master_sm_sl": ("0A", _anything),
    "init_type": ("0A", _anything),
    "vl_high_limit": ("EA", _anything),
    "vl_stall_count": ("EA", _anything),
    "hoq_life": ("EA", _anything),
    "operational_vls": ("EA", lambda value, stored: value if value <= stored.vl_cap else None),
    "partition_enforcement_inbound": ("E", _anything),
    "partition_enforcement_outbound": ("E", _anything),
    "filter_raw_inbound": ("E", _anything),
    "filter_raw_outbound": ("E", _anything),
    "m_key_violations": ("0A", lambda value, stored: 0 if value == 0 else stored.m_key_violations),
    "subnet_timeout": ("0A", _anything),
    "local_phy_errors": ("EA", _anything),
    "overrun_errors": ("EA", _anything),
}
"""The fields that a Set may write: the kinds of port that have them, and what it makes of them."""
_KEPT: Final = frozenset({"link_width_enabled", "link_speed_enabled", "link_down_default_state", "operational_vls"})
"""Those that NO_CHANGE leaves as they are."""


class Changes(NamedTuple):
    """What a Set does.

    Attributes:
        fields: those that it writes, with their values.
        accepted: False if it is refused another one.
    """

    fields: dict[str, int]
    accepted: bool


def set_fields(kind: PortKind, stored: Record, asked: Record) -> Changes:
    """What a Set does to a PortInfo. PortState and PortPhysicalState are another matter."""
    fields: dict[str, int] = {}
    accepted = True
    for name, (kinds, rule) in _RULES.items():
        value = asked[name]
        if kind.value in kinds and not (value == NO_CHANGE and name in _KEPT):
            result = rule(value, stored)
            if result is None:
                accepted = False
            else:
                fields[name] = result
    return Changes(fields, accepted)


def shown_state(state: int) -> int:
    """PortState, of what its register reads: while a link recovers, its port is still Active."""
    return PortState.ACTIVE if state == PortState.ACTIVE_DEFER else state


def set_states(state: int, asked: Record) -> Changes:
    """What a Set writes to the registers of PortState, which is `state`, and PortPhysicalState."""
    link, physical = asked.port_state, asked.port_physical_state
    fields: dict[str, int] = {}
    accepted = True
    if link == PortState.DOWN or (link in _STEP_UP_FROM and state == _STEP_UP_FROM[link]):
        fields["port_state"] = link
    elif link != NO_CHANGE and not (link in _STEP_UP_FROM and state == link):
        accepted = False
    if physical in _SETTABLE_PHYSICAL_STATES and link in (NO_CHANGE, PortState.DOWN):
        fields["port_physical_state"] = physical
    elif physical != NO_CHANGE:
        accepted = False
    return Changes(fields, accepted)


_REGISTERS: Final[tuple[tuple[str, int, NodeRegister | PortRegister], ...]] = (
    ("lid", 0, NodeRegister.LID),
    ("port_physical_state", 0, PortRegister.PHYSICAL_STATE),
    ("port_state", 1, PortRegister.STATE),
    ("lmc", 2, NodeRegister.LMC),
    ("link_down_default_state", 3, PortRegister.LINK_DOWN_DEFAULT),
    ("neighbor_mtu", 0, PortRegister.NEIGHBOR_MTU),
    ("vl_high_limit", 1, PortRegister.VL_HIGH_LIMIT),
    ("operational_vls", 0, PortRegister.OPERATIONAL_VLS),
    ("hoq_life", 1, PortRegister.HOQ_LIFE),
    ("vl_stall_count", 2, PortRegister.VL_STALL_COUNT),
    ("local_phy_errors", 0, PortRegister.LOCAL_PHY_ERRORS),
    ("overrun_errors", 1, PortRegister.OVERRUN_ERRORS),
)
"""Fields that a Set writes to registers of an external port, or of an adapter, with their access in the slot."""
_OF_SWITCH: Final = frozenset({"hoq_life", "vl_stall_count"})
"""Those for which an adapter has no register."""
_CHECKS: Final = {
    "partition_enforcement_inbound": PartitionCheck.INBOUND,
    "partition_enforcement_outbound": PartitionCheck.OUTBOUND,
    "filter_raw_inbound": PartitionCheck.RAW_INBOUND,
    "filter_raw_outbound": PartitionCheck.RAW_OUTBOUND,
}
"""Fields that a Set writes to PARTITION of an external port."""
_CHECKS_STEP: Final = set_step(word_of(PORT_INFO, "filter_raw_outbound"), 3)
_WIDTH_STEP: Final = set_step(word_of(PORT_INFO, "port_state"), 4)
"""Step at which LinkWidthEnabled is written as it came: the register knows what it may be."""
_VIOLATIONS_STEP: Final = set_step(word_of(PORT_INFO, "overrun_errors"), 2)
"""Step at which P_KeyViolations of an external port are cleared."""
_OF_TRANSPORT: Final = {KeyViolation.P_KEY: "p_key_violations", KeyViolation.Q_KEY: "q_key_violations"}
"""What an adapter counts because its host says so."""
_CLEARED: Final = 1
"""The step of its word's slot at which such a count is cleared."""


class PortInfo(SettableAttribute):
    """PortInfo of all ports of a node.

    Attributes:
        stored: for each port, a switch's port 0 first; for an adapter the only one. What is read from registers is 0
            in those of ports with registers; IsSM and LocalPortNum are 0 in all.
        host_sm: an adapter's host says that it has a Subnet Manager.
    """

    set_words = frozenset(word_of(PORT_INFO, name) for name, _, _ in _REGISTERS)
    answer_words = frozenset(word_of(PORT_INFO, name) for name in ("link_width_active", "port_state"))

    def __init__(self, node: AgentNode, parameters: NodeParameters, own_port: int) -> None:
        """`own_port` is the number of an adapter's port."""
        self._node = node
        self._is_adapter = isinstance(parameters, AdapterParameters)
        self._own_port = own_port
        self.host_sm = False
        mtu, vls = parameters.mtu, parameters.vls
        if isinstance(parameters, SwitchParameters):
            external = at_reset(PortKind.EXTERNAL, mtu, vls)
            self.stored = [at_reset(PortKind.MANAGEMENT, mtu, vls)] + [external] * parameters.ports
        else:
            self.stored = [at_reset(PortKind.ADAPTER, mtu, vls)]

    @property
    def own(self) -> Record:
        """That of the port that manages the node: port 0 of a switch, an adapter's port."""
        return self.stored[0]

    def change_own(self, **values: int) -> None:
        """Change fields of that port's PortInfo."""
        self.stored[0] = self.stored[0].replace(**values)

    def count_violation(self) -> None:
        """Count an SMP with a wrong M_Key; M_KeyViolations stops at all ones."""
        self.change_own(m_key_violations=min(self.own.m_key_violations + 1, PORT_INFO["m_key_violations"].max))

    def count_key_violation(self, keys: int) -> None:
        """Count packets with these keys wrong (`KeyViolation`); each count stops at all ones."""
        names = [name for key, name in _OF_TRANSPORT.items() if keys & key]
        self.change_own(**{name: min(self.own[name] + 1, PORT_INFO[name].max) for name in names})

    @property
    def capability_mask(self) -> int:
        """CapabilityMask of that port, with IsSM as visible in the current cycle."""
        return self.own.capability_mask | (CapabilityMask.IS_SM if self.host_sm else 0)

    def select(self, modifier: int, data: bytes) -> int | None:
        """A place in `stored`."""
        port = PORT_INFO_MODIFIER.from_int(modifier).port
        if self._is_adapter:
            return 0 if port in (0, self._own_port) else None
        return port if port < len(self.stored) else None

    def _kind(self, which: int) -> PortKind:
        if self._is_adapter:
            return PortKind.ADAPTER
        return PortKind.EXTERNAL if which else PortKind.MANAGEMENT

    def _address(self, which: int, register: NodeRegister | PortRegister | Detail) -> int:
        if isinstance(register, NodeRegister):
            return node_address(register)
        return port_address(1 if self._is_adapter else which, register)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """A Set of the management port's states is refused; it has no registers."""
        which = request.which
        kind = self._kind(which)
        asked = PORT_INFO.unpack(request.data)
        if kind == PortKind.MANAGEMENT:
            states = Changes({}, asked.port_state == NO_CHANGE and asked.port_physical_state == NO_CHANGE)
        else:
            yield SET
            state = self._node.give_read(self._address(which, PortRegister.STATE))
            yield set_step(word_of(PORT_INFO, _REGISTERS[0][0]), 0)
            states = set_states(shown_state(state.value), asked)
        changes = set_fields(kind, self.stored[which], asked)
        if kind != PortKind.MANAGEMENT:
            written = changes.fields | states.fields
            steps: list[tuple[int, Callable[[], None]]] = [
                (
                    set_step(word_of(PORT_INFO, name), access),
                    partial(self._node.bus_write, self._address(which, register), written[name]),
                )
                for name, access, register in _REGISTERS
                if name in written and not (self._is_adapter and name in _OF_SWITCH)
            ]
            widths = self._address(which, PortRegister.LINK_WIDTH_ENABLED)
            steps.append((_WIDTH_STEP, partial(self._node.bus_write, widths, asked.link_width_enabled)))
            if kind == PortKind.EXTERNAL:
                if asked.p_key_violations == 0:
                    violations = self._address(which, Detail.P_KEY_VIOLATIONS)
                    steps.append((_VIOLATIONS_STEP, partial(self._node.bus_write, violations, 0)))
                checks = sum(check for name, check in _CHECKS.items() if written[name])
                partition = self._address(which, PortRegister.PARTITION)
                steps.append((_CHECKS_STEP, partial(self._node.bus_write, partition, checks)))
            if self._is_adapter:
                steps += [
                    (SET + SLOT * word_of(PORT_INFO, name) + _CLEARED, partial(self.change_own, **{name: 0}))
                    for name in _OF_TRANSPORT.values()
                    if asked[name] == 0
                ]
            for step, act in sorted(steps, key=itemgetter(0)):
                yield step
                act()
        yield COMMIT
        self.stored[which] = self.stored[which].replace(**changes.fields)
        return changes.accepted and states.accepted

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """What may change at any time is as visible at its word's step."""
        which = request.which
        live = {"local_port_num": self._own_port if self._is_adapter else request.arrival}
        if which == 0:
            yield _answer_step("capability_mask")
            live["capability_mask"] = self.capability_mask
        if self._kind(which) == PortKind.MANAGEMENT:
            yield _answer_step("m_key_protect_bits")
            stored = self.own
        else:
            yield _answer_step("link_width_active")
            width = self._node.give_read(self._address(which, PortRegister.WIDTH))
            yield _answer_step("port_state")
            stored = self.stored[which]
            state = self._node.give_read(self._address(which, PortRegister.STATE))
            yield _answer_step("port_physical_state", 1)
            physical = self._node.give_read(self._address(which, PortRegister.PHYSICAL_STATE))
            if self._is_adapter:
                yield _answer_step("port_physical_state", 1 + READ_STEPS)
            else:
                yield _answer_step("port_physical_state", 2)
                violations = self._node.give_read(self._address(which, Detail.P_KEY_VIOLATIONS))
                yield _answer_step("port_physical_state", 2 + READ_STEPS)
                live["p_key_violations"] = violations.value
            live["link_width_active"] = width.value
            live["port_state"] = shown_state(state.value)
            live["port_physical_state"] = physical.value
        if self._is_adapter:
            for name in _OF_TRANSPORT.values():
                yield _answer_step(name)
                live[name] = self.own[name]
        if request.hides_key:
            live["m_key"] = 0
        if request.is_set and which == 0:
            live["client_reregister"] = PORT_INFO["client_reregister"].read(request.data)
        return stored.replace(**live).pack()


def _answer_step(field: str, access: int = 0) -> int:
    return answer_step(word_of(PORT_INFO, field), access)
