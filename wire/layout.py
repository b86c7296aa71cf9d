"""Bit layouts of headers: where a field is, how wide it is, pack and unpack."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as member

from .meaning import Meaning

__all__ = ["Field", "Layout", "Record"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a header, most significant bit first.

    Bit 0 of a layout is the most significant bit of its byte 0; a field's value is
    big-endian and unsigned.

    Attributes:
        name: the standard's term in snake_case.
        offset_bits: bits from the start of the layout to the field's first bit.
        width: bits in the field.
        default: the value packed where the caller gives none.
        meaning: how a person reads the value, a plain number where there is none.
        max: the largest value; as a mask, ``width`` ones.
        byte: index of the first byte that holds a bit of the field.
        byte_span: number of bytes that hold a bit of the field.
        lsb_in_span: position of the field's least significant bit in the big-endian integer of its span.

    Hardware slices a field out of the ``byte_span`` bytes that begin at ``byte``: joined
    big-endian into one vector, the field is ``vector[lsb_in_span:lsb_in_span + width]``.

    Raises:
        ValueError: an offset below 0, a width below 1, a default out of range, or a name
            that cannot be a keyword argument.
    """

    name: str
    offset_bits: int
    width: int
    default: int = 0
    meaning: Meaning | None = None
    # Of those above, worked out once: packets are read and written field by field.
    max: int = member(init=False, repr=False, compare=False)
    byte: int = member(init=False, repr=False, compare=False)
    byte_span: int = member(init=False, repr=False, compare=False)
    lsb_in_span: int = member(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check name, place and default."""
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise ValueError(f"field name {self.name!r} is not a Python identifier")
        if self.offset_bits < 0:
            raise ValueError(f"field {self.name}: offset_bits {self.offset_bits}, allowed 0 and above")
        if self.width < 1:
            raise ValueError(f"field {self.name}: width {self.width}, allowed 1 and above")
        byte = self.offset_bits // 8
        object.__setattr__(self, "max", (1 << self.width) - 1)
        object.__setattr__(self, "byte", byte)
        object.__setattr__(self, "byte_span", (self.end_bits + 7) // 8 - byte)
        object.__setattr__(self, "lsb_in_span", -self.end_bits % 8)
        self.check(self.default)

    @property
    def end_bits(self) -> int:
        """Bits from the start of the layout to the first bit after the field."""
        return self.offset_bits + self.width

    def check(self, value: int, layout: str = "") -> None:
        """Raise ValueError, naming field, value and range, unless the value fits the field."""
        if not 0 <= value <= self.max:
            where = f"{layout}.{self.name}" if layout else self.name
            raise ValueError(f"{where}: value {value:#x} does not fit {self.width} bits, allowed 0..{self.max:#x}")

    def text(self, value: int) -> str:
        """The value for a person: with its name, its unit, or in hexadecimal, as ``meaning`` says."""
        return str(value) if self.meaning is None else self.meaning(value, self.width)

    def read(self, data: bytes, start: int = 0) -> int:
        """Value of this field in the layout that begins at byte ``start`` of ``data``.

        Raises:
            ValueError: ``data`` ends before the field does.
        """
        first = start + self.byte
        last = first + self.byte_span
        if last > len(data):
            raise ValueError(f"{self.name}: ends at byte {last}, only {len(data)} bytes given")
        return int.from_bytes(data[first:last], "big") >> self.lsb_in_span & self.max

    def write(self, data: bytes, value: int, start: int = 0) -> bytes:
        """``data`` with this field of the layout at byte ``start`` set to ``value``.

        Raises:
            ValueError: ``data`` ends before the field does, or the value does not fit.
        """
        self.check(value)
        first = start + self.byte
        last = first + self.byte_span
        if last > len(data):
            raise ValueError(f"{self.name}: ends at byte {last}, only {len(data)} bytes given")
        span = int.from_bytes(data[first:last], "big") & ~(self.max << self.lsb_in_span)
        span |= value << self.lsb_in_span
        return data[:first] + span.to_bytes(self.byte_span, "big") + data[last:]


class Layout:
    """The fields of one header, with a fixed size.

    Bits that no field covers are reserved: packed as zero, ignored on unpack.

    Attributes:
        name: the standard's name of the header, as errors print it.
        size_bytes: bytes on the wire.
        fields: in wire order.

    Raises:
        ValueError: a field beyond the size, two fields on one bit, a name twice, or a name
            that ``Record`` needs for itself.
    """

    __slots__ = ("_by_name", "_defaults", "_index", "_slices", "fields", "name", "size_bytes")

    def __init__(self, name: str, size_bytes: int, fields: Iterable[Field]) -> None:
        """Sort the fields into wire order and check them."""
        self.name = name
        self.size_bytes = size_bytes
        self.fields = tuple(sorted(fields, key=lambda field: field.offset_bits))
        self._by_name = {field.name: field for field in self.fields}
        self._defaults = tuple(field.default for field in self.fields)
        self._index = {field.name: index for index, field in enumerate(self.fields)}
        self._slices = tuple((size_bytes * 8 - field.end_bits, field.max) for field in self.fields)
        if len(self._by_name) != len(self.fields):
            raise ValueError(f"layout {name}: a field name stands twice")
        end = 0
        for field in self.fields:
            if field.offset_bits < end:
                raise ValueError(f"layout {name}: field {field.name} overlaps the one before it")
            end = field.end_bits
            if end > size_bytes * 8:
                raise ValueError(f"layout {name}: field {field.name} ends at bit {end}, allowed up to {size_bytes * 8}")
            if hasattr(Record, field.name):
                raise ValueError(f"layout {name}: field name {field.name} is taken by Record")

    def __repr__(self) -> str:
        """Name and size."""
        return f"Layout({self.name!r}, {self.size_bytes} bytes)"

    def __reduce__(self) -> tuple[type[Layout], tuple[str, int, tuple[Field, ...]]]:
        """Pickle by definition."""
        return Layout, (self.name, self.size_bytes, self.fields)

    def __eq__(self, other: object) -> bool:
        """Equal by name, size and fields."""
        if not isinstance(other, Layout):
            return NotImplemented
        return self is other or (
            (self.name, self.size_bytes, self.fields) == (other.name, other.size_bytes, other.fields)
        )

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((self.name, self.size_bytes, self.fields))

    def __getitem__(self, name: str) -> Field:
        """The field of that name.

        Raises:
            ValueError: the layout has no such field.
        """
        try:
            return self._by_name[name]
        except KeyError:
            known = ", ".join(self._by_name)
            raise ValueError(f"{self.name} has no field {name!r}, it has {known}") from None

    def __contains__(self, name: object) -> bool:
        """True for the name of a field."""
        return name in self._by_name

    def record(self, values: Mapping[str, int] | None = None, /, **more: int) -> Record:
        """A record with these values; fields not named take their default.

        Raises:
            ValueError: an unknown field, or a value that does not fit.
        """
        return Record(self, self._with(self._defaults, {**(values or {}), **more}))

    def _with(self, values: tuple[int, ...], given: Mapping[str, int]) -> tuple[int, ...]:
        """The values of all fields, some of them other ones, which are checked."""
        made = list(values)
        for name, value in given.items():
            self[name].check(value, self.name)
            made[self._index[name]] = value
        return tuple(made)

    def pack(self, values: Mapping[str, int] | None = None, /, **more: int) -> bytes:
        """The header's ``size_bytes`` bytes; fields not named take their default.

        Raises:
            ValueError: an unknown field, or a value that does not fit.
        """
        return self.record(values, **more).pack()

    def unpack(self, data: bytes, start: int = 0) -> Record:
        """The record in the ``size_bytes`` bytes that begin at ``start``; later bytes are ignored.

        Raises:
            ValueError: fewer bytes than the header has.
        """
        chunk = data[start : start + self.size_bytes]
        if len(chunk) != self.size_bytes:
            raise ValueError(f"{self.name}: needs {self.size_bytes} bytes, got {len(chunk)}")
        return self.from_int(int.from_bytes(chunk, "big"))

    def from_int(self, number: int) -> Record:
        """The record in the big-endian integer of the layout's bytes; higher bits are ignored."""
        return Record(self, tuple([number >> lsb & mask for lsb, mask in self._slices]))

    def to_int(self, values: Mapping[str, int] | None = None, /, **more: int) -> int:
        """The big-endian integer of the bytes that ``pack`` gives, as an AttributeModifier is passed.

        Raises:
            ValueError: an unknown field, or a value that does not fit.
        """
        return int.from_bytes(self.pack(values, **more), "big")


class Record(Mapping[str, int]):
    """The values of one header, read-only: ``lrh.dlid``, ``lrh["dlid"]`` and ``dict(lrh)`` agree."""

    __slots__ = ("_values", "layout")

    layout: Layout
    _values: tuple[int, ...]

    def __init__(self, layout: Layout, values: tuple[int, ...]) -> None:
        """Hold values that ``layout.record`` or ``layout.unpack`` has checked."""
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> int:
        """The value of a field."""
        try:
            return self._values[self.layout._index[name]]
        except KeyError:
            raise AttributeError(f"{self.layout.name} has no field {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: records are read-only."""
        raise AttributeError(f"{self.layout.name} records are read-only, use replace({name}=...)")

    def __reduce__(self) -> tuple[type[Record], tuple[Layout, tuple[int, ...]]]:
        """Pickle by layout and values."""
        return Record, (self.layout, self._values)

    def __getitem__(self, name: str) -> int:
        """The value of a field."""
        return self._values[self.layout._index[name]]

    def __iter__(self) -> Iterator[str]:
        """Field names in wire order."""
        return iter(self.layout._index)

    def __len__(self) -> int:
        """Number of fields."""
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        """Equal to a record or mapping with the same fields and values."""
        if isinstance(other, Record):
            return self._values == other._values and self.layout == other.layout
        return super().__eq__(other)

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((self.layout.name, self._values))

    def __repr__(self) -> str:
        """All fields, in hexadecimal."""
        values = ", ".join(f"{name}={value:#x}" for name, value in self.items())
        return f"{self.layout.name}({values})"

    def pack(self) -> bytes:
        """The header's ``layout.size_bytes`` bytes."""
        number = 0
        for value, (lsb, _) in zip(self._values, self.layout._slices, strict=True):
            number |= value << lsb
        return number.to_bytes(self.layout.size_bytes, "big")

    def replace(self, **values: int) -> Record:
        """A copy with these fields changed.

        Raises:
            ValueError: an unknown field, or a value that does not fit.
        """
        return Record(self.layout, self.layout._with(self._values, values))
