"""The Subnet Management Agent's answer to a Get or Set (docs/management.md, section 4)."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from wire.codes import LID_PERMISSIVE
from wire.layout import Record
from wire.mad import CLASS_VERSION, MadMethod, MadStatus, mad_data
from wire.smp import is_directed, return_port, smp_response

from .attribute import Attribute, Request, SettableAttribute
from .smi import FROM_HOST, TO_HOST, Passage, port, route

__all__ = ["answer_passage", "respond"]


def respond(
    attributes: Mapping[int, Attribute], smp: Record, arrival: int, hides_m_key: bool
) -> Generator[int, None, Record]:
    """Work on a Get or Set, in steps (section 4.3), and return the answer as before its way out."""
    is_set = smp.method == MadMethod.SET
    data = mad_data(smp)
    if smp.class_version != CLASS_VERSION:
        return smp_response(smp, data, MadStatus.BAD_VERSION)
    attribute = attributes.get(smp.attribute_id)
    if attribute is None or (is_set and not isinstance(attribute, SettableAttribute)):
        return smp_response(smp, data, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
    which = attribute.select(smp.attribute_modifier)
    if which is None:
        return smp_response(smp, data, MadStatus.INVALID_ATTRIBUTE_VALUE)
    request = Request(which, is_set, data, arrival, hides_m_key)
    status = MadStatus.OK
    if is_set and isinstance(attribute, SettableAttribute):
        accepted = yield from attribute.change(request)
        if not accepted:
            status = MadStatus.INVALID_ATTRIBUTE_VALUE
    answer = yield from attribute.answer(request)
    return smp_response(smp, answer, status)


def answer_passage(smp: Record, lrh: Record, arrival: int, *, is_switch: bool, lid: int) -> Passage:
    """Where the answer to an SMP goes, and what changes in it and its LRH. `lid` is the node's own.

    The way does not depend on `lid`.
    """
    exchanged = {"dlid": lrh.slid, "slid": lrh.dlid}
    from_host = not is_switch and arrival == FROM_HOST
    if not is_directed(smp):
        return Passage(TO_HOST if from_host else route(lrh.slid), {}, exchanged)
    if smp.hop_count == 0:
        return Passage(TO_HOST if from_host else port(arrival), {"hop_pointer": 0}, exchanged)
    if smp.dr_dlid != LID_PERMISSIVE:
        return Passage(route(lrh.slid), {}, {"dlid": lrh.slid, "slid": lid})
    return Passage(port(return_port(smp, smp.hop_count)), {"hop_pointer": smp.hop_count}, exchanged)
