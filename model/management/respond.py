"""What the agent answers to a Get or Set, of the SMA or of the PMA (docs/management.md, sections 4 and 6)."""

from collections.abc import Generator, Mapping

from wire.layout import Record
from wire.mad import CLASS_VERSION, MadMethod, MadStatus, mad_data
from wire.smp import smp_response

from .attribute import Attribute, Request, SettableAttribute

__all__ = ["respond"]


def respond(
    attributes: Mapping[int, Attribute], mad: Record, arrival: int, hides_m_key: bool = False
) -> Generator[int, None, Record]:
    """Work on a Get or Set, in steps (section 4.3), and return the answer, an SMP's as before the SMI."""
    is_set = mad.method == MadMethod.SET
    data = mad_data(mad)
    if mad.class_version != CLASS_VERSION:
        return smp_response(mad, data, MadStatus.BAD_VERSION)
    attribute = attributes.get(mad.attribute_id)
    if attribute is None or (is_set and not isinstance(attribute, SettableAttribute)):
        return smp_response(mad, data, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
    which = attribute.select(mad.attribute_modifier, data)
    if which is None:
        return smp_response(mad, data, MadStatus.INVALID_ATTRIBUTE_VALUE)
    request = Request(which, is_set, data, arrival, hides_m_key)
    status = MadStatus.OK
    if is_set and isinstance(attribute, SettableAttribute):
        accepted = yield from attribute.change(request)
        if not accepted:
            status = MadStatus.INVALID_ATTRIBUTE_VALUE
    answer = yield from attribute.answer(request)
    return smp_response(mad, answer, status)
