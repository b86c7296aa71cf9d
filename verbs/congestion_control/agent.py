"""The agent of a channel adapter's port for class 0x21 (IBTA vol 1, A10.4; docs/management.md, section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from verbs.congestion_control.flows import Flows
from verbs.congestion_control.key import CongestionKey, Verdict
from verbs.congestion_control.log import CongestionLog, time_stamp
from verbs.congestion_control.settings import TABLE_BLOCK_ENTRIES, TABLE_BLOCKS, TABLE_ENTRIES, SlEntry, TableEntry
from verbs.congestion_control.traps import CongestionTraps
from wire.codes import SERVICE_LEVELS
from wire.congestion_control import (
    CA_CONGESTION_ENTRY,
    CA_CONGESTION_SETTING,
    CC_CLASS_VERSION,
    CC_DATA_BYTES,
    CC_MAD,
    CCT_ENTRY,
    CONGESTION_CONTROL_TABLE,
    CONGESTION_INFO,
    CONGESTION_TIME_STAMP,
    CcAttribute,
    CongestionInfo,
)
from wire.mad import GET, GET_SET, MadMethod, MadStatus, MgmtClass

__all__ = ["CongestionAgent", "is_cc_request"]

_CLASS_AT: Final = 1
_METHOD_AT: Final = 3
_HEAD_BYTES: Final = 32
_BY_SL: Final = 1 << 0
"""In Port_Control."""

_REQUESTS: Final = (MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS)
_METHODS: Final[Mapping[int, frozenset[MadMethod]]] = {
    CcAttribute.CLASS_PORT_INFO: GET_SET,
    CcAttribute.CONGESTION_INFO: GET,
    CcAttribute.CONGESTION_KEY_INFO: GET_SET,
    CcAttribute.CONGESTION_LOG: GET,
    CcAttribute.CA_CONGESTION_SETTING: GET_SET,
    CcAttribute.CONGESTION_CONTROL_TABLE: GET_SET,
    CcAttribute.TIME_STAMP: GET,
}
"""What may be done with the attributes that a channel adapter has."""


def is_cc_request(mad: bytes) -> bool:
    """Whether a MAD is a request that the agent looks at."""
    return mad[_CLASS_AT] == MgmtClass.CONGESTION_CONTROL and mad[_METHOD_AT] in _REQUESTS


class CongestionAgent:
    """Answers requests about the congestion control of a port, whoever asks.

    Attributes:
        traps: what is to be told of those that had not its key.
    """

    def __init__(self, flows: Flows, log: CongestionLog, cycle_ns: int) -> None:
        self._flows = flows
        self._log = log
        self._cycle_ns = cycle_ns
        self._key = CongestionKey(cycle_ns)
        self.traps = CongestionTraps(cycle_ns)
        self._reads: Mapping[int, Callable[[int, int], bytes]] = {
            CcAttribute.CLASS_PORT_INFO: self._class_port_info,
            CcAttribute.CONGESTION_INFO: self._congestion_info,
            CcAttribute.CONGESTION_LOG: self._read_log,
            CcAttribute.CA_CONGESTION_SETTING: self._setting,
            CcAttribute.CONGESTION_CONTROL_TABLE: self._table,
            CcAttribute.TIME_STAMP: self._time_stamp,
        }
        """By modifier and cycle; the key's is apart, for it is not always shown."""

    def answer(self, mad: bytes, now: int, slid: int, sgid: int = 0) -> bytes | None:
        """The answer to a request of the class, a MAD each; None if its key is not good enough, and to a TrapRepress.

        It came from that LID, and GID if it had a GRH.
        """
        request = CC_MAD.unpack(mad)
        method, attribute, modifier = request.method, request.attribute_id, request.attribute_modifier
        verdict = self._key.judge(request.cc_key, method, now)
        if verdict is Verdict.VIOLATION:
            self.traps.violated(request, slid, sgid)
            return None
        if method == MadMethod.TRAP_REPRESS:
            if attribute == CcAttribute.NOTICE:
                self.traps.repress(request.transaction_id)
            return None
        status, data = _refusal(request.class_version, attribute, method, modifier), mad[_HEAD_BYTES:]
        if not status:
            if method == MadMethod.SET and not self._set(attribute, modifier, data, now):
                status = MadStatus.INVALID_ATTRIBUTE_VALUE
            if attribute == CcAttribute.CONGESTION_KEY_INFO:
                data = self._key.info(shown=verdict is Verdict.GOOD)
            else:
                data = self._reads[attribute](modifier, now)
        head = mad[:_METHOD_AT] + bytes([MadMethod.GET_RESP]) + status.to_bytes(2, "big") + mad[6:_HEAD_BYTES]
        return head + data.ljust(CC_DATA_BYTES, b"\0")

    # Set.

    def _set(self, attribute: int, modifier: int, data: bytes, now: int) -> bool:
        """Does what a Set asks for; false if it is refused."""
        if attribute == CcAttribute.CONGESTION_KEY_INFO:
            self._key.set(data)
            return True
        if attribute == CcAttribute.CLASS_PORT_INFO:
            self.traps.set(data)
            return True
        if attribute == CcAttribute.CA_CONGESTION_SETTING:
            self._set_entries(data, now)
            return True
        return self._set_table(modifier, data, now)

    def _set_entries(self, data: bytes, now: int) -> None:
        setting, settings = CA_CONGESTION_SETTING.unpack(data), self._flows.settings
        entries = list(settings.entries)
        for sl in range(SERVICE_LEVELS):
            if setting.control_map >> sl & 1:
                entry = CA_CONGESTION_ENTRY.from_int(setting[f"entry{sl}"])
                entries[sl] = SlEntry(entry.ccti_timer, entry.ccti_increase, entry.trigger_threshold, entry.ccti_min)
        by_sl = bool(setting.port_control & _BY_SL)
        changed = replace(settings, by_sl=by_sl, control_map=setting.control_map, entries=tuple(entries))
        self._flows.change(changed, now)

    def _set_table(self, block: int, data: bytes, now: int) -> bool:
        given = CONGESTION_CONTROL_TABLE.unpack(data)
        if given.ccti_limit >= TABLE_ENTRIES:
            return False
        settings, first = self._flows.settings, block * TABLE_BLOCK_ENTRIES
        table = list(settings.table)
        for place in range(TABLE_BLOCK_ENTRIES):
            entry = CCT_ENTRY.from_int(given[f"entry{place}"])
            table[first + place] = TableEntry(entry.shift, entry.multiplier)
        self._flows.change(replace(settings, ccti_limit=given.ccti_limit, table=tuple(table)), now)
        return True

    # Get.

    def _class_port_info(self, modifier: int, now: int) -> bytes:
        return self.traps.class_port_info()

    def _congestion_info(self, modifier: int, now: int) -> bytes:
        info = CongestionInfo.QP_BASED | CongestionInfo.SL_BASED
        return CONGESTION_INFO.pack(congestion_info=info, control_table_cap=TABLE_BLOCKS)

    def _read_log(self, modifier: int, now: int) -> bytes:
        return self._log.read(time_stamp(now, self._cycle_ns))

    def _setting(self, modifier: int, now: int) -> bytes:
        settings = self._flows.settings
        entries = {
            f"entry{sl}": CA_CONGESTION_ENTRY.to_int(
                ccti_timer=entry.ccti_timer,
                ccti_increase=entry.ccti_increase,
                trigger_threshold=entry.trigger_threshold,
                ccti_min=entry.ccti_min,
            )
            for sl, entry in enumerate(settings.entries)
        }
        port_control = _BY_SL if settings.by_sl else 0
        return CA_CONGESTION_SETTING.pack(port_control=port_control, control_map=settings.control_map, **entries)

    def _table(self, block: int, now: int) -> bytes:
        settings, first = self._flows.settings, block * TABLE_BLOCK_ENTRIES
        entries = {
            f"entry{place}": CCT_ENTRY.to_int(shift=entry.shift, multiplier=entry.multiplier)
            for place, entry in enumerate(settings.table[first : first + TABLE_BLOCK_ENTRIES])
        }
        return CONGESTION_CONTROL_TABLE.pack(ccti_limit=settings.ccti_limit, **entries)

    def _time_stamp(self, modifier: int, now: int) -> bytes:
        return CONGESTION_TIME_STAMP.pack(time_stamp=time_stamp(now, self._cycle_ns))


def _refusal(version: int, attribute: int, method: int, modifier: int) -> int:
    """The status of what is refused whatever its data; 0 otherwise."""
    if version != CC_CLASS_VERSION:
        return MadStatus.BAD_VERSION
    if method not in _METHODS.get(attribute, ()):
        return MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
    blocks = TABLE_BLOCKS if attribute == CcAttribute.CONGESTION_CONTROL_TABLE else 1
    return MadStatus.OK if modifier < blocks else MadStatus.INVALID_ATTRIBUTE_VALUE
