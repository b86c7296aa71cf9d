"""The Performance Management Agent's words: what they show, which registers they access (docs/management.md, 6)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from rtl.management.place import WORD_BITS, Place, bytes_of, masks, place
from wire.layout import Field, Layout
from wire.pma import (
    PMA_COUNTERS,
    PMA_COUNTERS_EXTENDED,
    PMA_RCV_ERROR_DETAILS,
    PMA_VL_XMIT_WAIT,
    PMA_XMIT_DISCARD_DETAILS,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_RCV_ERROR_DETAILS,
    PORT_SAMPLES_CONTROL,
    PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
    PORT_VL_XMIT_WAIT_COUNTERS,
    PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute,
)
from wire.registers import HIGH_OF_COUNTER, VL_XMIT_WAIT, Counter, Detail, PacketCounter, PortRegister

__all__ = ["AS_IT_CAME", "COUNTER_WORDS", "FIELDS_OF_WORDS", "OF_PORTS", "PMA_ACCESSES", "TICK", "PmaAccess"]

OF_PORTS: Final[Mapping[PmaAttribute, Layout]] = {
    PmaAttribute.PORT_SAMPLES_CONTROL: PORT_SAMPLES_CONTROL,
    PmaAttribute.PORT_COUNTERS: PORT_COUNTERS,
    PmaAttribute.PORT_COUNTERS_EXTENDED: PORT_COUNTERS_EXTENDED,
    PmaAttribute.PORT_RCV_ERROR_DETAILS: PORT_RCV_ERROR_DETAILS,
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: PORT_XMIT_DISCARD_DETAILS,
    PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
    PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS: PORT_VL_XMIT_WAIT_COUNTERS,
}
"""The attributes with a PortSelect."""

TICK: Final = place(PORT_SAMPLES_CONTROL["tick"])

_COUNTERS: Final[Mapping[str, int]] = {
    "symbol_error_counter": Counter.SYMBOL_ERROR,
    "link_error_recovery_counter": Counter.LINK_ERROR_RECOVERY,
    "link_downed_counter": Counter.LINK_DOWNED,
    "port_rcv_errors": Counter.RCV_ERRORS,
    "port_rcv_remote_physical_errors": Counter.RCV_REMOTE_PHYSICAL_ERRORS,
    "port_rcv_switch_relay_errors": Counter.RCV_SWITCH_RELAY_ERRORS,
    "port_xmit_discards": Counter.XMIT_DISCARDS,
    "port_xmit_constraint_errors": Counter.XMIT_CONSTRAINT_ERRORS,
    "port_rcv_constraint_errors": Counter.RCV_CONSTRAINT_ERRORS,
    "local_link_integrity_errors": Counter.LOCAL_LINK_INTEGRITY_ERRORS,
    "excessive_buffer_overrun_errors": Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS,
    "vl15_dropped": Counter.VL15_DROPPED,
    "port_xmit_data": Counter.XMIT_DATA,
    "port_rcv_data": Counter.RCV_DATA,
    "port_xmit_pkts": Counter.XMIT_PKTS,
    "port_rcv_pkts": Counter.RCV_PKTS,
    "port_xmit_wait": Counter.XMIT_WAIT,
    "port_local_physical_errors": Detail.LOCAL_PHYSICAL_ERRORS,
    "port_malformed_packet_errors": Detail.MALFORMED_PACKET_ERRORS,
    "port_buffer_overrun_errors": Detail.BUFFER_OVERRUN_ERRORS,
    "port_dlid_mapping_errors": Detail.DLID_MAPPING_ERRORS,
    "port_vl_mapping_errors": Detail.VL_MAPPING_ERRORS,
    "port_looping_errors": Detail.LOOPING_ERRORS,
    "port_inactive_discards": Detail.INACTIVE_DISCARDS,
    "port_neighbor_mtu_discards": Detail.NEIGHBOR_MTU_DISCARDS,
    "port_sw_lifetime_limit_discards": Detail.LIFE_TIME_DISCARDS,
    "port_sw_hoq_limit_discards": Detail.HOQ_LIFE_DISCARDS,
    **{field.name: VL_XMIT_WAIT + vl for vl, field in enumerate(PMA_VL_XMIT_WAIT)},
}
"""The registers of the counters that are kept, by the names of their fields."""

_EXTENDED_COUNTERS: Final[Mapping[str, Counter | PacketCounter]] = {
    "port_xmit_data": Counter.XMIT_DATA,
    "port_rcv_data": Counter.RCV_DATA,
    "port_xmit_pkts": Counter.XMIT_PKTS,
    "port_rcv_pkts": Counter.RCV_PKTS,
    "port_unicast_xmit_pkts": PacketCounter.UNICAST_XMIT_PKTS,
    "port_unicast_rcv_pkts": PacketCounter.UNICAST_RCV_PKTS,
    "port_multicast_xmit_pkts": PacketCounter.MULTICAST_XMIT_PKTS,
    "port_multicast_rcv_pkts": PacketCounter.MULTICAST_RCV_PKTS,
}
"""Those of 64 bits, by the names of their fields in PortCountersExtended."""


_FLOW_CTL_UPDATE_ERRORS: Final = "port_vl_xmit_flow_ctl_update_errors0"
"""The first of the fields that are in one register."""


class PmaAccess(NamedTuple):
    """An access to a register of the port.

    Attributes:
        word, number: it is access `number` in the slot of this word.
        register: what is read or written.
        value: where what is read and written is in the word; None: CounterSelect is written.
        before: what is written is there in the word before.
        select: bit of CounterSelect, and above it bit 0 of CounterSelect2, that has to be 1 if it is to be written;
            None: none.
        read, written: it is given for an answer, in a Set.
    """

    word: int
    number: int
    register: int
    value: Place | None
    before: bool = False
    select: int | None = None
    read: bool = True
    written: bool = True


def _narrow(counters: Iterable[Field]) -> list[PmaAccess]:
    """Of an attribute with these counters, those of one word in the order of their fields."""
    of_words: dict[int, list[PmaAccess]] = defaultdict(list)
    for bit, field in enumerate(counters):
        if field.name in _COUNTERS:
            value = place(field)
            accesses = of_words[value.word]
            accesses.append(PmaAccess(value.word, len(accesses), _COUNTERS[field.name], value, select=bit))
    return [access for accesses in of_words.values() for access in accesses]


def _whole(word: int) -> Place:
    return Place(word, 0, WORD_BITS)


def _port_counters_extended() -> list[PmaAccess]:
    low = PortRegister.EXTENDED_LOW
    accesses = []
    for bit, field in enumerate(PMA_COUNTERS_EXTENDED):
        high = HIGH_OF_COUNTER[_EXTENDED_COUNTERS[field.name]]
        upper, lower = masks(field)
        accesses += [
            PmaAccess(upper, 0, high, _whole(upper), written=False),
            PmaAccess(lower, 0, low, _whole(lower), select=bit),
            PmaAccess(lower, 1, high, _whole(lower), before=True, select=bit, read=False),
        ]
    return accesses


def _flow_ctl_update_errors() -> list[PmaAccess]:
    errors = PortRegister.FLOW_CTL_UPDATE_ERRORS
    word = place(PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS[_FLOW_CTL_UPDATE_ERRORS]).word
    return [
        PmaAccess(word, 0, errors, _whole(word), written=False),
        PmaAccess(word, 0, PortRegister.EXTENDED_LOW, None, read=False),
        PmaAccess(word, 1, errors, _whole(word), read=False),
    ]


PMA_ACCESSES: Final[Mapping[PmaAttribute, list[PmaAccess]]] = {
    PmaAttribute.PORT_SAMPLES_CONTROL: [PmaAccess(TICK.word, 0, PortRegister.TICK, TICK)],
    PmaAttribute.PORT_COUNTERS: _narrow(PMA_COUNTERS),
    PmaAttribute.PORT_COUNTERS_EXTENDED: _port_counters_extended(),
    PmaAttribute.PORT_RCV_ERROR_DETAILS: _narrow(PMA_RCV_ERROR_DETAILS),
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: _narrow(PMA_XMIT_DISCARD_DETAILS),
    PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: _flow_ctl_update_errors(),
    PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS: _narrow(PMA_VL_XMIT_WAIT),
}


def _by_word(accesses: Iterable[PmaAccess]) -> dict[int, list[Place]]:
    words: dict[int, list[Place]] = defaultdict(list)
    for access in accesses:
        if access.read and access.value:
            words[access.word].append(access.value)
    return words


FIELDS_OF_WORDS: Final[Mapping[PmaAttribute, Mapping[int, list[Place]]]] = {
    attribute: _by_word(PMA_ACCESSES[attribute])
    for attribute in OF_PORTS
    if attribute is not PmaAttribute.PORT_SAMPLES_CONTROL
}
"""By word with counters, where these are."""

COUNTER_WORDS: Final[Mapping[PmaAttribute, list[int]]] = {
    attribute: sorted(words) for attribute, words in FIELDS_OF_WORDS.items()
}
"""The words that show counters. The lowest of a word ends with it."""


def _selectors(layout: Layout) -> list[Field]:
    """PortSelect and, with them, what says which counters; PortSamplesControl has other fields of that name."""
    names = ("port_select", "counter_select", "counter_select2") if "counter_select" in layout else ("port_select",)
    return [layout[name] for name in names if name in layout]


def _bytes_of(fields: Iterable[Field]) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    for where in map(place, fields):
        found[where.word] |= bytes_of(where)
    return found


AS_IT_CAME: Final[Mapping[PmaAttribute, Mapping[int, int]]] = {
    attribute: _bytes_of(_selectors(layout)) for attribute, layout in OF_PORTS.items()
}
"""By word, the bytes of an answer that are the request's, as `PacketWrite` has them."""
