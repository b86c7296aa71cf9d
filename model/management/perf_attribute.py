"""The attributes of performance management (docs/management.md, section 6)."""

from collections.abc import Generator
from typing import Final, NamedTuple

from wire.layout import Layout
from wire.mad import CLASS_PORT_INFO
from wire.parameters import FabricParameters, NodeParameters
from wire.pma import (
    PMA_CAPABILITIES,
    PMA_COUNTERS,
    PMA_COUNTERS_EXTENDED,
    PMA_RESP_TIME,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_SAMPLES_CONTROL,
    PmaAttribute,
)
from wire.registers import DATA_BITS, HIGH_OF_COUNTER, Counter, CounterHigh, PortRegister, port_address

from .agent_node import AgentNode, BusRead
from .attribute import READ_STEPS, Attribute, Constant, Request, SettableAttribute, answer_step, set_step, word_of
from .steps import COMMIT

__all__ = ["perf_attributes"]

_WORD_MASK: Final = (1 << DATA_BITS) - 1
_TICK: Final = word_of(PORT_SAMPLES_CONTROL, "tick")


class _PortAttribute(SettableAttribute):
    """An attribute of a port that is read from registers and written to them."""

    def __init__(self, node: AgentNode, ports: int, layout: Layout) -> None:
        self._node = node
        self._ports = ports
        self._port_select = layout["port_select"]

    def select(self, modifier: int, data: bytes) -> int | None:
        """PortSelect, one of the ports with registers; there is no modifier."""
        port = self._port_select.read(data)
        return port if modifier == 0 and 1 <= port <= self._ports else None

    def _write(self, request: Request, register: PortRegister | Counter | CounterHigh, value: int) -> None:
        self._node.bus_write(port_address(request.which, register), value)

    def _read(self, request: Request, register: PortRegister | Counter | CounterHigh) -> BusRead:
        return self._node.give_read(port_address(request.which, register))


class PortSamplesControl(_PortAttribute):
    """The tick of PortXmitWait. There are no samples."""

    set_words = frozenset({_TICK})
    answer_words = frozenset({_TICK})

    def __init__(self, node: AgentNode, ports: int) -> None:
        super().__init__(node, ports, PORT_SAMPLES_CONTROL)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """Tick."""
        yield set_step(_TICK, 0)
        self._write(request, PortRegister.TICK, PORT_SAMPLES_CONTROL["tick"].read(request.data))
        yield COMMIT
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """Tick."""
        yield answer_step(_TICK)
        tick = self._read(request, PortRegister.TICK)
        yield answer_step(_TICK, READ_STEPS)
        return PORT_SAMPLES_CONTROL.pack(port_select=request.which, tick=tick.value)


class _Place(NamedTuple):
    """Where a counter is in PortCounters.

    Attributes:
        counter: its register.
        name: its field.
        word, access: the slot in which the register is accessed, and when.
        selected_by: a bit of CounterSelect, or with those of CounterSelect2 above it.
    """

    counter: Counter
    name: str
    word: int
    access: int
    selected_by: int


def _places() -> tuple[_Place, ...]:
    """Registers are numbered as the counters are in PortCounters."""
    places: list[_Place] = []
    for counter in Counter:
        bit = counter - Counter.SYMBOL_ERROR
        name = PMA_COUNTERS[bit].name
        word = word_of(PORT_COUNTERS, name)
        access = sum(place.word == word for place in places)
        places.append(_Place(counter, name, word, access, 1 << bit))
    return tuple(places)


_PLACES: Final = _places()


class PortCounters(_PortAttribute):
    """The counters of a port, of 32 bits at most."""

    set_words = frozenset(place.word for place in _PLACES)
    answer_words = frozenset(place.word for place in _PLACES)

    def __init__(self, node: AgentNode, ports: int) -> None:
        super().__init__(node, ports, PORT_COUNTERS)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """The counters that are selected."""
        asked = PORT_COUNTERS.unpack(request.data)
        selected = asked.counter_select2 << PORT_COUNTERS["counter_select"].width | asked.counter_select
        for place in _PLACES:
            if selected & place.selected_by:
                yield set_step(place.word, place.access)
                self._write(request, place.counter, asked[place.name])
        yield COMMIT
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """All counters, one after the other."""
        asked = PORT_COUNTERS.unpack(request.data)
        reads: dict[str, BusRead] = {}
        for place in _PLACES:
            yield answer_step(place.word, place.access)
            reads[place.name] = self._read(request, place.counter)
        last = _PLACES[-1]
        yield answer_step(last.word, last.access + READ_STEPS)
        values = {name: read.value for name, read in reads.items()}
        for name in ("port_select", "counter_select", "counter_select2"):
            values[name] = asked[name]
        return PORT_COUNTERS.pack(values)


_EXTENDED: Final = tuple(
    (field.name, word_of(PORT_COUNTERS_EXTENDED, field.name), high, 1 << bit)
    for bit, (field, high) in enumerate(zip(PMA_COUNTERS_EXTENDED, HIGH_OF_COUNTER.values(), strict=False))
)
"""Name, word of the upper half, its register and the bit of CounterSelect of each counter that is kept."""


class PortCountersExtended(_PortAttribute):
    """The counters of a port that have 64 bits."""

    set_words = frozenset(word + 1 for _, word, _, _ in _EXTENDED)
    answer_words = frozenset(word + half for _, word, _, _ in _EXTENDED for half in range(2))

    def __init__(self, node: AgentNode, ports: int) -> None:
        super().__init__(node, ports, PORT_COUNTERS_EXTENDED)

    def change(self, request: Request) -> Generator[int, None, bool]:
        """The counters that are selected, the lower half of each first."""
        asked = PORT_COUNTERS_EXTENDED.unpack(request.data)
        for name, word, high, selected_by in _EXTENDED:
            if asked.counter_select & selected_by:
                yield set_step(word + 1, 0)
                self._write(request, PortRegister.EXTENDED_LOW, asked[name] & _WORD_MASK)
                yield set_step(word + 1, 1)
                self._write(request, high, asked[name] >> DATA_BITS)
        yield COMMIT
        return True

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """A read of an upper half keeps the lower one for the read after it."""
        asked = PORT_COUNTERS_EXTENDED.unpack(request.data)
        values = {"port_select": asked.port_select, "counter_select": asked.counter_select}
        for name, word, high, _ in _EXTENDED:
            yield answer_step(word)
            upper = self._read(request, high)
            yield answer_step(word + 1)
            lower = self._read(request, PortRegister.EXTENDED_LOW)
            yield answer_step(word + 1, READ_STEPS)
            values[name] = upper.value << DATA_BITS | lower.value
        return PORT_COUNTERS_EXTENDED.pack(values)


def perf_attributes(node: AgentNode, parameters: NodeParameters) -> dict[int, Attribute]:
    """A node's, by AttributeID."""
    ports = FabricParameters.port_count(parameters)
    can_do = CLASS_PORT_INFO.pack(capability_mask=PMA_CAPABILITIES, resp_time_value=PMA_RESP_TIME)
    return {
        PmaAttribute.CLASS_PORT_INFO: Constant(can_do),
        PmaAttribute.PORT_SAMPLES_CONTROL: PortSamplesControl(node, ports),
        PmaAttribute.PORT_COUNTERS: PortCounters(node, ports),
        PmaAttribute.PORT_COUNTERS_EXTENDED: PortCountersExtended(node, ports),
    }
