"""A port of a host, as the kernel there knows it: by asking its agent, as a driver asks its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from doors.mads.agents import Agent
from doors.mads.mad_layer import MadLayer, MadPort, Moment
from doors.mads.user_mad import Address, Registration
from wire.codes import LID_PERMISSIVE, P_KEY_DEFAULT, QP_SMI, PortState
from wire.layout import Record
from wire.mad import MadMethod, MgmtClass, mad_data
from wire.port_info import PORT_INFO
from wire.port_tables import GUID_INFO, P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE
from wire.sma import SmaAttribute
from wire.smp import smp_request, unpack_smp

__all__ = ["ATTRIBUTES", "HostPort"]

ATTRIBUTES: Final = (
    SmaAttribute.NODE_INFO,
    SmaAttribute.NODE_DESCRIPTION,
    SmaAttribute.PORT_INFO,
    SmaAttribute.GUID_INFO,
    SmaAttribute.P_KEY_TABLE,
    SmaAttribute.SL_TO_VL_MAPPING_TABLE,
)
"""What is known of a port."""

_TIMEOUT_MS: Final = 1_000
_RETRIES: Final = 3
_FULL_MEMBER: Final = 0x8000
_HOP_COUNT_AT: Final = 7


class HostPort:
    """A port of a channel adapter.

    Attributes:
        host: the adapter's name.
        node: index of the fabric's node that the port is.
        number: the port's, in its adapter.
        mads: its agents.
        known: attributes as the agent last gave them.
        m_key: with which the agent is asked; what programs set it to, as it does not tell one that it protects.
        on_change: called when one of them has become another.
    """

    def __init__(self, layer: MadLayer, host: str, node: int, number: int) -> None:
        self.host = host
        self.node = node
        self.number = number
        self.mads = MadPort(layer)
        self.known: dict[SmaAttribute, bytes] = {}
        self.m_key = 0
        self.on_change: Callable[[HostPort], None] = lambda port: None
        self._agent = self.mads.register(self, Registration(QP_SMI))
        self._asked: dict[SmaAttribute, int] = {}
        self._count = 0

    def __str__(self) -> str:
        return f"{self.host}[{self.number}]"

    def ask(self, attribute: SmaAttribute, now: Moment) -> None:
        """Ask for an attribute, which may have changed."""
        self._count += 1
        self._asked[attribute] = self._count
        smp = smp_request(MadMethod.GET, attribute, transaction_id=self._count, m_key=self.m_key, path=())
        address = Address(LID_PERMISSIVE, QP_SMI)
        self.mads.send(self._agent, address, smp.pack(), _TIMEOUT_MS, _RETRIES, now)

    def arrived(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Takes an answer."""
        smp = unpack_smp(mad)
        attribute = SmaAttribute(smp.attribute_id)
        # Of several questions the last one's answer is the newest, whichever comes first.
        if smp.transaction_id & 0xFFFF_FFFF != self._asked.get(attribute) or smp.status:
            return
        self._know(attribute, mad_data(smp))

    def learn(self, attribute: SmaAttribute, data: bytes) -> None:
        """Takes from somebody's Set what an attribute is now; questions asked before may have older answers."""
        self._asked.pop(attribute, None)
        self._know(attribute, data)

    def _know(self, attribute: SmaAttribute, data: bytes) -> None:
        if self.known.get(attribute) != data:
            self.known[attribute] = data
            self.on_change(self)

    def unanswered(self, agent: Agent, address: Address, mad: bytes) -> None:
        """An agent that does not answer its own host; what is known stays."""

    @property
    def complete(self) -> bool:
        """Whether all attributes are known."""
        return all(attribute in self.known for attribute in ATTRIBUTES)

    @property
    def info(self) -> Record:
        """PortInfo; all 0 as long as it is not known."""
        return PORT_INFO.unpack(self.known.get(SmaAttribute.PORT_INFO, bytes(PORT_INFO.size_bytes)))

    @property
    def p_keys(self) -> tuple[int, ...]:
        """The P_Keys of the port's table."""
        table = self.known.get(SmaAttribute.P_KEY_TABLE)
        return P_KEY_TABLE.unpack(table) if table else (P_KEY_DEFAULT,)

    def has_lid(self, lid: int) -> bool:
        """Whether it is one of the port's LIDs."""
        info = self.info
        return info.lid != 0 and lid >> info.lmc == info.lid >> info.lmc

    def is_own(self, address: Address, mad: bytes) -> bool:
        """Whether a MAD that is sent stays in the port's own node."""
        is_directed = mad[1] == MgmtClass.SUBN_DIRECTED_ROUTE
        return mad[_HOP_COUNT_AT] == 0 if is_directed else self.has_lid(address.lid)

    @property
    def sends_data(self) -> bool:
        """Whether packets on data VLs leave the port."""
        return self.info.port_state in (PortState.ACTIVE, PortState.ACTIVE_DEFER)

    def vl(self, sl: int) -> int:
        """The VL of a service level."""
        table = self.known.get(SmaAttribute.SL_TO_VL_MAPPING_TABLE)
        return SL_TO_VL_MAPPING_TABLE.unpack(table)[sl] if table else 0

    @property
    def gid(self) -> int:
        """The port's GID 0."""
        guids = self.known.get(SmaAttribute.GUID_INFO)
        return self.info.gid_prefix << 64 | (GUID_INFO.unpack(guids)[0] if guids else 0)

    def p_key_index(self, p_key: int) -> int:
        """The index of the P_Key in the table that goes with one in a packet; 0 if none does."""
        matching = (index for index, key in enumerate(self.p_keys) if key and not (key ^ p_key) & ~_FULL_MEMBER)
        return next(matching, 0)
