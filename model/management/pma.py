"""The Performance Management Agent's answer to a Get or Set (docs/management.md, section 6)."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from wire.layout import Record
from wire.mad import CLASS_VERSION, MadMethod, MadStatus, mad_data, mad_response

from .perf_attribute import PerfAttribute, SettablePerfAttribute

__all__ = ["respond_perf"]


def respond_perf(attributes: Mapping[int, PerfAttribute], request: Record) -> Generator[int, None, Record]:
    """Work on a request, in steps, and return the answer."""
    is_set = request.method == MadMethod.SET
    data = mad_data(request)
    if request.class_version != CLASS_VERSION:
        return mad_response(request, data, MadStatus.BAD_VERSION)
    attribute = attributes.get(request.attribute_id)
    if attribute is None or (is_set and not isinstance(attribute, SettablePerfAttribute)):
        return mad_response(request, data, MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
    if request.attribute_modifier or not attribute.selects(data):
        return mad_response(request, data, MadStatus.INVALID_ATTRIBUTE_VALUE)
    if is_set and isinstance(attribute, SettablePerfAttribute):
        yield from attribute.change(data)
    answer = yield from attribute.answer(data)
    return mad_response(request, answer)
