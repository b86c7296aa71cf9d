"""A client of the Subnet Administrator of a managed subnet: it asks, and takes answers of any length."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from sm.mad_client import MadAddress, MadClient, OutgoingMad
from sm.rmpp import RmppReceiver
from tests.sm.managed import Managed
from wire.codes import QP_GSI
from wire.layout import Layout, Record
from wire.mad import RESPONSE_BIT, pack_data
from wire.rmpp import RmppFlags
from wire.sa import SA_HEADER_BYTES, SA_MAD, SA_RECORDS, SaAttribute, SaMethod, components


class Answer(NamedTuple):
    method: int
    status: int
    records: list[Record]


class SaClient:
    """At the port of a LID. It gets all that Subnet Administrators send to that; `message` is the last answer."""

    def __init__(self, managed: Managed, lid: int) -> None:
        self.lid = lid
        self.reports: list[Record] = []
        self.segments = 0
        self.acknowledges = True
        self.sm_key = 0
        self.managed = managed
        self._numbers = count(1)
        self._receiver = RmppReceiver(0)
        self.message: bytes | None = None
        managed.fabric.on_gmp = self._arrived

    def ask(self, method: SaMethod, attribute: SaAttribute, modifier: int = 0, **values: int) -> Answer:
        """Asks, where the values given are those that the ComponentMask says count."""
        layout = SA_RECORDS[attribute]
        self.request(method, attribute, modifier, **values)
        self.managed.fabric.run(lambda: self.message is not None)
        return unpacked(self.message or b"", layout)

    def request(self, method: SaMethod, attribute: SaAttribute, modifier: int = 0, **values: int) -> None:
        layout = SA_RECORDS[attribute]
        self._receiver, self.message = RmppReceiver(0), None
        self.send(
            SA_MAD.record(
                method=method,
                attribute_id=attribute,
                attribute_modifier=modifier,
                sm_key=self.sm_key,
                transaction_id=next(self._numbers),
                component_mask=sum(1 << bit for bit, name in enumerate(components(layout)) if name in values),
                data=pack_data(SA_MAD, layout.pack(values)),
            )
        )

    def send(self, mad: Record) -> None:
        source = MadAddress(self.lid, 1, QP_GSI)
        self._administrator().received(mad.pack(), self.managed.fabric.now, source)

    def _administrator(self) -> MadClient:
        """At the port that the own one says the master is at; before there is a master, the only one there is."""
        fabric = self.managed.fabric
        infos = [info for node in fabric.nodes.values() for info in node.ports.values()]
        masters = {info.master_sm_lid for info in infos if info.lid == self.lid} - {0}
        lids = {fabric.nodes[end.guid].ports[end.port].lid: mads for end, mads in fabric.managers.items()}
        return next((lids[master] for master in masters), self.managed.mads)

    def _arrived(self, out: OutgoingMad) -> None:
        mad = SA_MAD.unpack(out.mad)
        if (out.dlid, out.qpn) != (self.lid, QP_GSI):
            return
        if mad.method == SaMethod.REPORT:
            self.reports.append(SA_RECORDS[SaAttribute.NOTICE].unpack(out.mad, SA_HEADER_BYTES))
            if self.acknowledges:
                self.send(mad.replace(method=SaMethod.REPORT | RESPONSE_BIT))
        elif mad.rmpp_flags & RmppFlags.ACTIVE:
            self.segments += 1
            acknowledgement = self._receiver.receive(out.mad)
            self.message = self._receiver.message
            if acknowledgement is not None and self.acknowledges:
                self.send(SA_MAD.unpack(acknowledgement))
        else:
            self.message = out.mad


def unpacked(message: bytes, layout: Layout) -> Answer:
    head = SA_MAD.unpack(message.ljust(SA_MAD.size_bytes, b"\0"))
    data = message[SA_HEADER_BYTES:]
    if head.status:
        return Answer(head.method, head.status, [])
    if head.method != SaMethod.GET_TABLE_RESP:
        return Answer(head.method, head.status, [layout.unpack(data)])
    step = 8 * head.attribute_offset
    starts = range(0, len(data), step) if step else ()
    return Answer(head.method, head.status, [layout.unpack(data, start) for start in starts])
