"""ClassPortInfo of congestion control: where the trap about wrong CC_Keys goes (docs/management.md, section 7)."""

from collections.abc import Callable
from typing import Final

from wire.congestion_control import CC_CAPABILITIES, CC_CLASS_PORT_INFO, CC_CLASS_VERSION, CC_RESP_TIME

from ..kernel import DECIDE, Kernel
from ..link.congestion_words import CongestionWords

__all__ = ["CcClassPortInfo"]

_WRITABLE: Final = ("trap_sl", "trap_lid", "trap_p_key", "trap_qp", "trap_q_key")


class CcClassPortInfo(CongestionWords):
    """ClassPortInfo of a switch."""

    def __init__(self, kernel: Kernel, changed: Callable[[None], None]) -> None:
        """`changed` is called in phase `DECIDE` of the cycle in which a write is visible."""
        super().__init__(CC_CLASS_PORT_INFO, {name: CC_CLASS_PORT_INFO[name].max for name in _WRITABLE})
        self.record = CC_CLASS_PORT_INFO.record(
            class_version=CC_CLASS_VERSION, capability_mask=CC_CAPABILITIES, resp_time_value=CC_RESP_TIME
        )
        self._kernel = kernel
        self._changed = changed

    def write(self, word: int, value: int) -> None:
        """A trap that waited for a LID may go there now."""
        super().write(word, value)
        self._kernel.at(self._kernel.now, DECIDE, self._changed)
