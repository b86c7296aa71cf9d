"""A switch's attributes of congestion control on its register bus (docs/management.md, section 7)."""

from typing import Final

from wire.congestion_control import (
    CC_DATA_BYTES,
    CONGESTION_INFO,
    CONGESTION_TIME_STAMP,
    SWITCH_CONGESTION_INFO,
    CcAttribute,
)
from wire.registers import DATA_BITS, congestion_address

from ..link.congestion_log import CongestionLog
from ..link.congestion_settings import CongestionSettings
from ..link.congestion_words import word_of_data
from .cc_class_port_info import CcClassPortInfo
from .cc_key import CcKey

__all__ = ["CongestionWindows"]

_WORDS: Final = 8 * CC_DATA_BYTES // DATA_BITS
_OFFSET_MASK: Final = 0xFFFF
_PLACES: Final[dict[int, tuple[int, int]]] = {
    congestion_address(attribute, word) & _OFFSET_MASK: (attribute.value, word)
    for attribute in CcAttribute
    for word in range(_WORDS)
}
"""Attribute and word of each offset."""
_NOWHERE: Final = (0, 0)
_CONSTANTS: Final[dict[int, bytes]] = {
    CcAttribute.CONGESTION_INFO: CONGESTION_INFO.pack(congestion_info=SWITCH_CONGESTION_INFO),
}


class CongestionWindows:
    """The windows of page `CONGESTION_PAGE`. What is in none of them reads 0 and takes no write."""

    def __init__(
        self, settings: CongestionSettings, log: CongestionLog, key: CcKey, class_port_info: CcClassPortInfo
    ) -> None:
        self._settings = settings
        self._log = log
        self._key = key
        self._class_port_info = class_port_info

    def read(self, offset: int) -> int:
        """A word, as visible in the current cycle. What this clears is so in the next."""
        attribute, word = _PLACES.get(offset, _NOWHERE)
        match attribute:
            case CcAttribute.CONGESTION_LOG:
                return self._log.read(word)
            case CcAttribute.CONGESTION_KEY_INFO:
                return self._key.read(word)
            case CcAttribute.CLASS_PORT_INFO:
                return self._class_port_info.read(word)
            case CcAttribute.SWITCH_CONGESTION_SETTING:
                return self._settings.read(word)
            case CcAttribute.TIME_STAMP:
                return word_of_data(CONGESTION_TIME_STAMP.pack(time_stamp=self._log.time_stamp()), word)
        return word_of_data(_CONSTANTS.get(attribute, b""), word)

    def write_given(self, offset: int, value: int) -> None:
        """A write of a word is given in the current cycle."""
        attribute, word = _PLACES.get(offset, _NOWHERE)
        if attribute == CcAttribute.SWITCH_CONGESTION_SETTING:
            self._settings.given(word, value)

    def write(self, offset: int, value: int) -> None:
        """A word is written, visible in the current cycle."""
        attribute, word = _PLACES.get(offset, _NOWHERE)
        if attribute == CcAttribute.SWITCH_CONGESTION_SETTING:
            self._settings.write(word, value)
        elif attribute == CcAttribute.CONGESTION_KEY_INFO:
            self._key.write(word, value)
        elif attribute == CcAttribute.CLASS_PORT_INFO:
            self._class_port_info.write(word, value)
