"""What a Subnet Manager reports of its work, in words, with nodes by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sm.events import Event, LinkFound, NodeFound, NodeLost, PortStateSet

__all__ = ["QUIET_EVENTS", "event_text"]

QUIET_EVENTS: Final = (LinkFound, PortStateSet)
"""Events that are too many to be reported one by one."""


def event_text(event: Event, names: Mapping[int, str]) -> str:
    """An event in words; nodes by their names, which `names` has by GUID, but where they are found and lost."""
    text = str(event)
    if isinstance(event, NodeFound | NodeLost):
        return text

    def name(match: re.Match[str]) -> str:
        return names.get(int(match[1], 16), match[0])

    return re.sub(r"0x([0-9a-f]{16})", name, text)
