"""The attributes of performance management (docs/management.md, section 6)."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from wire.layout import Field, Layout
from wire.mad import CLASS_PORT_INFO
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import (
    ALL_PORTS,
    PMA_CAPABILITIES,
    PMA_COUNTERS,
    PMA_COUNTERS_EXTENDED,
    PMA_RCV_ERROR_DETAILS,
    PMA_RESP_TIME,
    PMA_VL_XMIT_WAIT,
    PMA_XMIT_DISCARD_DETAILS,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_RCV_ERROR_DETAILS,
    PORT_SAMPLES_CONTROL,
    PORT_SAMPLES_RESULT,
    PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
    PORT_VL_XMIT_WAIT_COUNTERS,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
)
from wire.registers import (
    DATA_BITS,
    HIGH_OF_COUNTER,
    Counter,
    CounterHigh,
    Detail,
    PortRegister,
    port_address,
    vl_xmit_wait_address,
)

from .agent_node import AgentNode, BusRead
from .attribute import READ_STEPS, Attribute, Constant, Request, SettableAttribute, answer_step, set_step, word_of
from .steps import COMMIT

__all__ = ["perf_attributes"]

_WORD_MASK: Final = (1 << DATA_BITS) - 1
_SELECTORS: Final = ("port_select", "counter_select", "counter_select2")
_TICK: Final = word_of(PORT_SAMPLES_CONTROL, "tick")


class _VlXmitWait(NamedTuple):
    """The register of the ticks that a VL waited."""

    vl: int


_Counter = Counter | Detail | _VlXmitWait
_Register = PortRegister | CounterHigh | _Counter


def _address(port: int, register: _Register) -> int:
    """On the bus, of a port's register."""
    if isinstance(register, _VlXmitWait):
        return vl_xmit_wait_address(port, register.vl)
    return port_address(port, register)


class _PortAttribute(SettableAttribute):
    """An attribute of a port, or of all ports, that is read from registers and written to them."""

    def __init__(self, node: AgentNode, pages: Mapping[int, int], layout: Layout) -> None:
        """`pages` of registers, by the number of the port."""
        self._node = node
        self._pages = pages
        self._port_select = layout["port_select"]

    def select(self, modifier: int, data: bytes) -> int | None:
        """PortSelect, one of the ports with registers or all; there is no modifier."""
        port = self._port_select.read(data)
        return port if modifier == 0 and (port in self._pages or port == ALL_PORTS) else None

    def laps(self, data: bytes) -> int:
        """One for each port that is asked about."""
        return len(self._pages) if self._port_select.read(data) == ALL_PORTS else 1

    def _asked(self, request: Request) -> list[int]:
        """The page of each lap's port."""
        return list(self._pages.values()) if request.which == ALL_PORTS else [self._pages[request.which]]

    def _write(self, port: int, register: _Register, value: int) -> None:
        self._node.bus_write(_address(port, register), value)

    def _read(self, port: int, register: _Register) -> BusRead:
        return self._node.give_read(_address(port, register))


class PortSamplesControl(_PortAttribute):
    """The tick of PortXmitWait. There are no samples."""

    set_words = frozenset({_TICK})
    answer_words = frozenset({_TICK})

    def __init__(self, node: AgentNode, pages: Mapping[int, int]) -> None:
        super().__init__(node, pages, PORT_SAMPLES_CONTROL)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """Tick."""
        for lap, port in enumerate(self._asked(request)):
            yield set_step(_TICK, 0, lap)
            self._write(port, PortRegister.TICK, PORT_SAMPLES_CONTROL["tick"].read(request.data))
        yield COMMIT
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """Tick, of all ports that of the last one."""
        for lap, port in enumerate(self._asked(request)):
            yield answer_step(_TICK, 0, lap)
            tick = self._read(port, PortRegister.TICK)
            yield answer_step(_TICK, READ_STEPS, lap)
        return PORT_SAMPLES_CONTROL.pack(port_select=request.which, tick=tick.value)


class _Place(NamedTuple):
    """Where a counter is in an attribute.

    Attributes:
        counter: its register.
        name: its field.
        word, access: the slot in which the register is accessed, and when.
        selected_by: a bit of CounterSelect, or with those of CounterSelect2 above it.
    """

    counter: _Counter
    name: str
    word: int
    access: int
    selected_by: int


def _places(layout: Layout, counters: Iterable[tuple[int, str, _Counter]]) -> tuple[_Place, ...]:
    """Of counters with their bits and fields."""
    places: list[_Place] = []
    for bit, name, counter in counters:
        word = word_of(layout, name)
        access = sum(place.word == word for place in places)
        places.append(_Place(counter, name, word, access, 1 << bit))
    return tuple(places)


def _details(fields: Sequence[Field], first: Detail, last: Detail) -> list[tuple[int, str, _Counter]]:
    """Registers follow one another as the fields do, as far as there are some for them."""
    registers = [detail for detail in Detail if first <= detail <= last]
    return [(bit, field.name, detail) for bit, (field, detail) in enumerate(zip(fields, registers, strict=False))]


class PortCounters(_PortAttribute):
    """Counters of a port, of 32 bits at most."""

    def __init__(
        self,
        node: AgentNode,
        pages: Mapping[int, int],
        layout: Layout,
        counters: Iterable[tuple[int, str, _Counter]],
    ) -> None:
        """`counters` are those that are kept, with their bits and fields."""
        super().__init__(node, pages, layout)
        self._layout = layout
        self._places = _places(layout, counters)
        self._as_they_came = [name for name in _SELECTORS if name in layout]
        self.set_words = self.answer_words = frozenset(place.word for place in self._places)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """The counters that are selected."""
        asked = self._layout.unpack(request.data)
        selected = asked.counter_select
        if "counter_select2" in self._layout:
            selected |= asked.counter_select2 << self._layout["counter_select"].width
        for word, lap, port in self._turns(request):
            for place in self._places:
                if place.word == word and selected & place.selected_by:
                    yield set_step(word, place.access, lap)
                    self._write(port, place.counter, asked[place.name])
        yield COMMIT
        return True

    def _turns(self, request: Request) -> Iterator[tuple[int, int, int]]:
        """Words, and for each of them laps with their ports."""
        laps = list(enumerate(self._asked(request)))
        return ((word, lap, port) for word in sorted(self.set_words) for lap, port in laps)

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """All counters, one after the other."""
        asked = self._layout.unpack(request.data)
        reads: dict[str, list[BusRead]] = {place.name: [] for place in self._places}
        for word, lap, port in self._turns(request):
            for place in self._places:
                if place.word == word:
                    yield answer_step(word, place.access, lap)
                    reads[place.name].append(self._read(port, place.counter))
                    last = answer_step(word, place.access + READ_STEPS, lap)
        yield last
        values = {
            name: min(sum(read.value for read in of_ports), self._layout[name].max) for name, of_ports in reads.items()
        }
        return self._layout.pack({**values, **{name: asked[name] for name in self._as_they_came}})


_COUNTERS: Final[list[tuple[int, str, _Counter]]] = [
    (counter - Counter.SYMBOL_ERROR, PMA_COUNTERS[counter - Counter.SYMBOL_ERROR].name, counter) for counter in Counter
]
"""Registers are numbered as the counters are in PortCounters."""
_RCV_ERROR_DETAILS: Final = _details(PMA_RCV_ERROR_DETAILS, Detail.LOCAL_PHYSICAL_ERRORS, Detail.LOOPING_ERRORS)
_XMIT_DISCARD_DETAILS: Final = _details(PMA_XMIT_DISCARD_DETAILS, Detail.INACTIVE_DISCARDS, Detail.HOQ_LIFE_DISCARDS)
_VL_XMIT_WAIT: Final[list[tuple[int, str, _Counter]]] = [
    (vl, field.name, _VlXmitWait(vl)) for vl, field in enumerate(PMA_VL_XMIT_WAIT)
]

_EXTENDED: Final = tuple(
    (field.name, word_of(PORT_COUNTERS_EXTENDED, field.name), high, 1 << bit)
    for bit, (field, high) in enumerate(zip(PMA_COUNTERS_EXTENDED, HIGH_OF_COUNTER.values(), strict=True))
)
"""Name, word of the upper half, its register and the bit of CounterSelect of each counter."""


class PortCountersExtended(_PortAttribute):
    """The counters of a port that have 64 bits."""

    set_words = frozenset(word + 1 for _, word, _, _ in _EXTENDED)
    answer_words = frozenset(word + half for _, word, _, _ in _EXTENDED for half in range(2))

    def __init__(self, node: AgentNode, pages: Mapping[int, int]) -> None:
        super().__init__(node, pages, PORT_COUNTERS_EXTENDED)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """The counters that are selected, the lower half of each first; the last ones' slots are behind `COMMIT`."""
        asked = PORT_COUNTERS_EXTENDED.unpack(request.data)
        for name, word, high, selected_by in _EXTENDED:
            if asked.counter_select & selected_by:
                for lap, port in enumerate(self._asked(request)):
                    yield set_step(word + 1, 0, lap)
                    self._write(port, PortRegister.EXTENDED_LOW, asked[name] & _WORD_MASK)
                    yield set_step(word + 1, 1, lap)
                    self._write(port, high, asked[name] >> DATA_BITS)
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """A read of an upper half keeps the lower one for the read after it."""
        asked = PORT_COUNTERS_EXTENDED.unpack(request.data)
        values = {"port_select": asked.port_select, "counter_select": asked.counter_select}
        for name, word, high, _ in _EXTENDED:
            halves: list[BusRead] = []
            registers: tuple[_Register, _Register] = high, PortRegister.EXTENDED_LOW
            for half, register in enumerate(registers):
                for lap, port in enumerate(self._asked(request)):
                    yield answer_step(word + half, 0, lap)
                    halves.append(self._read(port, register))
                    last = answer_step(word + half, READ_STEPS, lap)
            yield last
            count = len(halves) // 2
            upper, lower = (sum(read.value for read in of_half) for of_half in (halves[:count], halves[count:]))
            values[name] = min((upper << DATA_BITS) + lower, PORT_COUNTERS_EXTENDED[name].max)
        return PORT_COUNTERS_EXTENDED.pack(values)


_UPDATE_ERRORS: Final = PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS
_UPDATE_ERRORS_FIELDS: Final = [field for field in _UPDATE_ERRORS.fields if field.name not in _SELECTORS]
_UPDATE_ERRORS_WORD: Final = word_of(_UPDATE_ERRORS, _UPDATE_ERRORS_FIELDS[0].name)


class PortVlXmitFlowCtlUpdateErrors(_PortAttribute):
    """How often flow control packets of a port's VLs were missed: counters that share a register."""

    set_words = frozenset({_UPDATE_ERRORS_WORD})
    answer_words = frozenset({_UPDATE_ERRORS_WORD})

    def __init__(self, node: AgentNode, pages: Mapping[int, int]) -> None:
        super().__init__(node, pages, _UPDATE_ERRORS)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """Which VLs', and then what; the register does the selecting."""
        word = _UPDATE_ERRORS_WORD
        value = int.from_bytes(request.data[4 * word : 4 * word + 4], "big")
        for lap, port in enumerate(self._asked(request)):
            yield set_step(word, 0, lap)
            self._write(port, PortRegister.EXTENDED_LOW, _UPDATE_ERRORS["counter_select"].read(request.data))
            yield set_step(word, 1, lap)
            self._write(port, PortRegister.FLOW_CTL_UPDATE_ERRORS, value)
        yield COMMIT
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """All VLs' at once; of all ports each VL's sum."""
        word = _UPDATE_ERRORS_WORD
        read: list[BusRead] = []
        for lap, port in enumerate(self._asked(request)):
            yield answer_step(word, 0, lap)
            read.append(self._read(port, PortRegister.FLOW_CTL_UPDATE_ERRORS))
            last = answer_step(word, READ_STEPS, lap)
        yield last
        asked = _UPDATE_ERRORS.unpack(request.data)
        of_ports = [_UPDATE_ERRORS.unpack(bytes(4 * word) + one.value.to_bytes(4, "big")) for one in read]
        values = {
            field.name: min(sum(counts[field.name] for counts in of_ports), field.max)
            for field in _UPDATE_ERRORS_FIELDS
        }
        return _UPDATE_ERRORS.pack({**values, **{name: asked[name] for name in _SELECTORS if name in _UPDATE_ERRORS}})


def perf_attributes(node: AgentNode, parameters: NodeParameters, own_port: int) -> dict[int, Attribute]:
    """A node's, by AttributeID. `own_port` is the number of an adapter's port."""
    pages = {own_port: 1}
    if isinstance(parameters, SwitchParameters):
        pages = {port: port for port in range(1, parameters.ports + 1)}
    can_do = CLASS_PORT_INFO.pack(capability_mask=PMA_CAPABILITIES, resp_time_value=PMA_RESP_TIME)
    return {
        PmaAttribute.CLASS_PORT_INFO: Constant(can_do),
        PmaAttribute.PORT_SAMPLES_CONTROL: PortSamplesControl(node, pages),
        PmaAttribute.PORT_SAMPLES_RESULT: Constant(PORT_SAMPLES_RESULT.pack()),
        PmaAttribute.PORT_COUNTERS: PortCounters(node, pages, PORT_COUNTERS, _COUNTERS),
        PmaAttribute.PORT_RCV_ERROR_DETAILS: PortCounters(node, pages, PORT_RCV_ERROR_DETAILS, _RCV_ERROR_DETAILS),
        PmaAttribute.PORT_XMIT_DISCARD_DETAILS: PortCounters(
            node, pages, PORT_XMIT_DISCARD_DETAILS, _XMIT_DISCARD_DETAILS
        ),
        PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: PortVlXmitFlowCtlUpdateErrors(node, pages),
        PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS: PortCounters(node, pages, PORT_VL_XMIT_WAIT_COUNTERS, _VL_XMIT_WAIT),
        PmaAttribute.PORT_COUNTERS_EXTENDED: PortCountersExtended(node, pages),
    }
