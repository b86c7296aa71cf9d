"""What a host asks the Subnet Administrator of its port's subnet, as a kernel does (IBTA vol 1, 15.2)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection
from itertools import count
from typing import Final, TypeAlias

from doors.mads.agents import Agent
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Moment
from doors.mads.user_mad import Address, Registration
from wire.codes import P_KEY_DEFAULT, Q_KEY_GSI, QP_GSI, is_unicast_lid
from wire.layout import Record
from wire.mad import pack_data
from wire.sa import SA_HEADER_BYTES, SA_MAD, SA_RECORDS, SaAttribute, SaMethod, components

__all__ = ["Answered", "SaClient"]

Answered: TypeAlias = Callable[[int, Record], None]
"""Takes an error's negative number or 0, and a record, which is empty with an error."""

_TIMEOUT_MS: Final = 12_000
_TRIES: Final = 4
_LOW: Final = (1 << 32) - 1
_COMMON_STATUS: Final = 0xFF


class SaClient:
    """Asks for one port."""

    def __init__(self, port: HostPort, clock: Callable[[], Moment]) -> None:
        """CLOCK says what time it is for programs."""
        self._port = port
        self._clock = clock
        self._agent: Agent | None = None
        self._numbers = count(1)
        self._asked: dict[int, tuple[SaAttribute, Answered]] = {}

    def ask(
        self,
        method: SaMethod,
        attribute: SaAttribute,
        record: Record,
        names: Collection[str],
        answered: Answered,
        timeout_ms: int = _TIMEOUT_MS,
    ) -> None:
        """Asks for a record, of which the components NAMES count.

        ANSWERED gets EINVAL where the Subnet Administrator says no, and without one EAGAIN if the port knows of none,
        EOPNOTSUPP if there is none where the port knows one, ETIMEDOUT if nobody answers in time.
        """
        info = self._port.info
        if not is_unicast_lid(info.master_sm_lid):
            answered(-errno.EAGAIN, SA_RECORDS[attribute].record())
            return
        if self._agent is None:
            self._agent = self._port.mads.register(self, Registration(QP_GSI))
        number = next(self._numbers) & _LOW
        self._asked[number] = attribute, answered
        mad = SA_MAD.record(
            method=method,
            attribute_id=attribute,
            transaction_id=number,
            component_mask=sum(1 << bit for bit, name in enumerate(components(SA_RECORDS[attribute])) if name in names),
            data=pack_data(SA_MAD, record.pack()),
        )
        index = self._port.p_key_index(P_KEY_DEFAULT)
        address = Address(info.master_sm_lid, QP_GSI, info.master_sm_sl, p_key_index=index, q_key=Q_KEY_GSI)
        each_ms = max(1, timeout_ms // _TRIES)
        self._port.mads.send(self._agent, address, mad.pack(), each_ms, _TRIES - 1, self._clock())

    def arrived(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Takes an answer."""
        head = SA_MAD.unpack(mad)
        attribute, answered = self._asked.pop(head.transaction_id & _LOW)
        layout = SA_RECORDS[attribute]
        if head.status:
            # Of the class is what only a Subnet Administrator says.
            answered(-errno.EINVAL if head.status & ~_COMMON_STATUS else -errno.EOPNOTSUPP, layout.record())
        else:
            answered(0, layout.unpack(mad, SA_HEADER_BYTES))

    def unanswered(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Hears that there will be no answer."""
        attribute, answered = self._asked.pop(SA_MAD["transaction_id"].read(mad) & _LOW)
        answered(-errno.ETIMEDOUT, SA_RECORDS[attribute].record())
