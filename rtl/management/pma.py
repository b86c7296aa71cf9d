"""The Performance Management Agent's words: what they show, which registers they access (docs/management.md, 6)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from rtl.management.place import WORD_BITS, Place, bytes_of, masks, place
from wire.layout import Field
from wire.pma import (
    PMA_COUNTERS,
    PMA_COUNTERS_EXTENDED,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_SAMPLES_CONTROL,
    PmaAttribute,
)
from wire.registers import HIGH_OF_COUNTER, Counter, CounterHigh, PortRegister

__all__ = ["AS_IT_CAME", "COUNTER_WORDS", "OF_PORTS", "PMA_ACCESSES", "TICK", "PmaAccess"]

OF_PORTS: Final = (PmaAttribute.PORT_SAMPLES_CONTROL, PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED)
"""The attributes with a PortSelect."""

TICK: Final = place(PORT_SAMPLES_CONTROL["tick"])

_COUNTERS: Final = {
    "symbol_error_counter": Counter.SYMBOL_ERROR,
    "link_error_recovery_counter": Counter.LINK_ERROR_RECOVERY,
    "link_downed_counter": Counter.LINK_DOWNED,
    "port_rcv_errors": Counter.RCV_ERRORS,
    "port_rcv_remote_physical_errors": Counter.RCV_REMOTE_PHYSICAL_ERRORS,
    "port_rcv_switch_relay_errors": Counter.RCV_SWITCH_RELAY_ERRORS,
    "port_xmit_discards": Counter.XMIT_DISCARDS,
    "local_link_integrity_errors": Counter.LOCAL_LINK_INTEGRITY_ERRORS,
    "excessive_buffer_overrun_errors": Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS,
    "vl15_dropped": Counter.VL15_DROPPED,
    "port_xmit_data": Counter.XMIT_DATA,
    "port_rcv_data": Counter.RCV_DATA,
    "port_xmit_pkts": Counter.XMIT_PKTS,
    "port_rcv_pkts": Counter.RCV_PKTS,
    "port_xmit_wait": Counter.XMIT_WAIT,
}
"""The counters that are kept, by the names of their fields."""


class PmaAccess(NamedTuple):
    """An access to a register of the port.

    Attributes:
        word, number: it is access `number` in the slot of this word.
        register: what is read or written.
        value: where what is written is in the word; None: it is the whole word before.
        select: bit of CounterSelect, and above it bit 0 of CounterSelect2, that has to be 1 if it is to be written;
            None: none.
        read, written: it is given for an answer, in a Set.
    """

    word: int
    number: int
    register: PortRegister | Counter | CounterHigh
    value: Place | None
    select: int | None = None
    read: bool = True
    written: bool = True


def _port_counters() -> list[PmaAccess]:
    of_words: dict[int, list[PmaAccess]] = defaultdict(list)
    for bit, field in enumerate(PMA_COUNTERS):
        if field.name in _COUNTERS:
            value = place(field)
            accesses = of_words[value.word]
            accesses.append(PmaAccess(value.word, len(accesses), _COUNTERS[field.name], value, bit))
    return [access for accesses in of_words.values() for access in accesses]


def _port_counters_extended() -> list[PmaAccess]:
    whole, low = WORD_BITS, PortRegister.EXTENDED_LOW
    accesses = []
    for bit, field in enumerate(PMA_COUNTERS_EXTENDED):
        if field.name in _COUNTERS:
            high = HIGH_OF_COUNTER[_COUNTERS[field.name]]
            upper, lower = masks(field)
            accesses += [
                PmaAccess(upper, 0, high, None, written=False),
                PmaAccess(lower, 0, low, Place(lower, 0, whole), bit),
                PmaAccess(lower, 1, high, None, bit, read=False),
            ]
    return accesses


PMA_ACCESSES: Final[Mapping[PmaAttribute, list[PmaAccess]]] = {
    PmaAttribute.PORT_SAMPLES_CONTROL: [PmaAccess(TICK.word, 0, PortRegister.TICK, TICK)],
    PmaAttribute.PORT_COUNTERS: _port_counters(),
    PmaAttribute.PORT_COUNTERS_EXTENDED: _port_counters_extended(),
}

COUNTER_WORDS: Final[Mapping[PmaAttribute, list[int]]] = {
    attribute: sorted({access.word for access in PMA_ACCESSES[attribute] if access.read})
    for attribute in (PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED)
}
"""The words that show counters. The last of them in a word ends with it, and those before directly precede it."""


def _bytes_of(*fields: Field) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    for where in map(place, fields):
        found[where.word] |= bytes_of(where)
    return found


AS_IT_CAME: Final[Mapping[PmaAttribute, Mapping[int, int]]] = {
    PmaAttribute.PORT_SAMPLES_CONTROL: _bytes_of(PORT_SAMPLES_CONTROL["port_select"]),
    PmaAttribute.PORT_COUNTERS: _bytes_of(
        *(PORT_COUNTERS[name] for name in ("port_select", "counter_select", "counter_select2"))
    ),
    PmaAttribute.PORT_COUNTERS_EXTENDED: _bytes_of(
        *(PORT_COUNTERS_EXTENDED[name] for name in ("port_select", "counter_select"))
    ),
}
"""By word, the bytes of an answer that are the request's, as `PacketWrite` has them."""
