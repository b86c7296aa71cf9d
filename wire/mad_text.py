"""MADs of every class known here, for people: each field by name, with its unit or the name of its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .cm import CM_ATTRIBUTES, CM_MAD
from .congestion_control import CC_ATTRIBUTES, CC_MAD
from .layout import Layout, Record
from .mad import MAD_BYTES, MAD_HEADER, Attribute, Format, MadMethod, MgmtClass, mad_data, status_text
from .meaning import label
from .notice import details_of
from .pma import PERF_MAD, PMA_ATTRIBUTES
from .sma import SMA_ATTRIBUTES
from .smp import SMP_DIRECTED_ROUTE, SMP_LID_ROUTED, initial_path, is_directed, return_path
from .table import Table

__all__ = [
    "CLASS_ATTRIBUTES",
    "CLASS_LAYOUTS",
    "attribute_of",
    "attribute_text",
    "mad_text",
    "mad_title",
    "record_text",
    "unpack_mad",
]

CLASS_LAYOUTS: Final[Mapping[int, Layout]] = {
    MgmtClass.SUBN_LID_ROUTED: SMP_LID_ROUTED,
    MgmtClass.SUBN_DIRECTED_ROUTE: SMP_DIRECTED_ROUTE,
    MgmtClass.PERF: PERF_MAD,
    MgmtClass.COMM_MGT: CM_MAD,
    MgmtClass.CONGESTION_CONTROL: CC_MAD,
}
"""The layout of a class's MADs."""

CLASS_ATTRIBUTES: Final[Mapping[int, Mapping[int, Attribute]]] = {
    MgmtClass.SUBN_LID_ROUTED: SMA_ATTRIBUTES,
    MgmtClass.SUBN_DIRECTED_ROUTE: SMA_ATTRIBUTES,
    MgmtClass.PERF: PMA_ATTRIBUTES,
    MgmtClass.COMM_MGT: CM_ATTRIBUTES,
    MgmtClass.CONGESTION_CONTROL: CC_ATTRIBUTES,
}
"""A class's attributes by their codes."""

_APART: Final = ("data", "initial_path", "return_path", "attribute_id", "attribute_modifier")
"""Fields of a MAD that have a presentation of their own."""


def unpack_mad(mad: bytes) -> Record:
    """The MAD in 256 bytes, as the layout of its class; of a class not known here, the common header alone.

    Raises:
        ValueError: another length.
    """
    if len(mad) != MAD_BYTES:
        raise ValueError(f"MAD of {len(mad)} bytes, allowed {MAD_BYTES}")
    return CLASS_LAYOUTS.get(MAD_HEADER["mgmt_class"].read(mad), MAD_HEADER).unpack(mad)


def attribute_of(mad: Record) -> Attribute | None:
    """The attribute that a MAD names; None where its class or AttributeID is not known here."""
    return CLASS_ATTRIBUTES.get(mad.mgmt_class, {}).get(mad.attribute_id)


def mad_title(mad: Record) -> str:
    """A MAD in a line: ``Set(PortInfo) port 3, directed route 1,4``. Flags that are 0 and status OK are left out."""
    attribute = attribute_of(mad)
    known = mad.method in MadMethod.__members__.values()
    method = label(MadMethod(mad.method)) if known else f"method {mad.method:#04x}"
    words = [f"{method}({f'{mad.attribute_id:#06x}' if attribute is None else attribute.name})"]
    if attribute is not None:
        for name, value in attribute.modifier.from_int(mad.attribute_modifier).items():
            field = attribute.modifier[name]
            if value or field.width > 1:
                words.append(f"{name} {field.text(value)}")
    text = " ".join([words[0], ", ".join(words[1:])]).rstrip()
    if is_directed(mad):
        text += f", directed route {','.join(map(str, initial_path(mad))) or 'none'}"
    if mad.status:
        text += f", status {status_text(mad.status)}"
    return text


def mad_text(mad: bytes | Record) -> str:
    """A MAD in lines: its title, its header, and its attribute.

    Raises:
        ValueError: another length than 256 bytes.
    """
    record = mad if isinstance(mad, Record) else unpack_mad(mad)
    return "\n".join([mad_title(record), *_mad_lines(record)])


def attribute_text(form: Format, data: bytes) -> str:
    """An attribute's bytes in lines, a field or a row of entries in each.

    Raises:
        ValueError: fewer bytes than the attribute has.
    """
    return "\n".join([form.name, *_indented(_attribute_lines(form, data))])


def record_text(record: Record) -> str:
    """A record's fields in lines."""
    return "\n".join(_record_lines(record))


def _mad_lines(mad: Record) -> Iterator[str]:
    attribute = attribute_of(mad)
    yield from _indented(_record_lines(mad, without=_APART))
    yield from _indented(
        [
            _line("attribute_id", f"{mad.attribute_id:#06x}{'' if attribute is None else f' ({attribute.name})'}"),
            _line("attribute_modifier", f"{mad.attribute_modifier:#010x}"),
        ]
    )
    if is_directed(mad):
        for name, path in (("initial_path", initial_path(mad)), ("return_path", return_path(mad))):
            yield from _indented([_line(name, " ".join(map(str, path)) or "none")])
    if attribute is not None:
        yield f"  {attribute.name}"
        yield from _indented(_indented(_attribute_lines(attribute.format, mad_data(mad))))
    elif "data" in mad.layout:
        yield from _indented([_line("data", mad.layout["data"].text(mad.data))])


def _attribute_lines(form: Format, data: bytes) -> Iterator[str]:
    if isinstance(form, Table):
        return _table_lines(form, form.unpack(data))
    return _record_lines(form.unpack(data))


def _record_lines(record: Record, without: tuple[str, ...] = ()) -> Iterator[str]:
    details = details_of(record) if "data_details" in record.layout else None
    for name, value in record.items():
        if name in without or (name == "data_details" and details is not None):
            continue
        yield _line(name, record.layout[name].text(value))
    if details is not None:
        yield from _record_lines(details)


def _table_lines(table: Table, values: tuple[int, ...]) -> Iterator[str]:
    if table.parts is not None:
        for index, value in enumerate(values):
            parts = table.parts.from_int(value)
            text = ", ".join(f"{name} {table.parts[name].text(part)}" for name, part in parts.items())
            yield _line(f"{table.entry.name} {index}", text)
        return
    for start in range(0, table.count, 8):
        row = values[start : start + 8]
        yield _line(f"{table.entry.name} {start}..{start + len(row) - 1}", " ".join(map(table.entry.text, row)))


def _line(name: str, text: str) -> str:
    return f"{name:<42}{text}"


def _indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
