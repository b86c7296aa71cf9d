"""States of a queue pair, and what each transition requires and allows (IBTA vol 1, 10.3.1 and 11.2.5.2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypedDict

from verbs.address import AddressVector
from verbs.regions import Access

__all__ = ["QpAttributes", "QpChanges", "QpState", "QpType", "TransitionError", "check_ranges", "check_transition"]


class QpType(IntEnum):
    """Transport service of a queue pair; the numbers are those that programs know, and our own for RD, which none does.

    XRC has queue pairs that only send and others that only receive. An end-to-end context of RD goes through the same
    states as a queue pair and is made like one.
    """

    RC = 2
    UC = 3
    UD = 4
    XRC_SEND = 9
    XRC_RECV = 10
    RD = 0x100
    EEC = 0x101


class QpState(IntEnum):
    """State of a queue pair; the numbers are those that programs know."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQD = 4
    SQE = 5
    ERR = 6


class TransitionError(ValueError):
    """A transition that there is not, or attributes that it does not take or lacks."""


_NOWHERE: Final = AddressVector(0)


@dataclass(slots=True)
class QpAttributes:
    """What modifying a queue pair sets.

    Attributes:
        path_mtu: bytes.
        dest_qp: the peer of RC, UC and XRC, or the context that is the peer of a context.
        rq_psn, sq_psn: the first PSN that is expected, and that is sent.
        max_rd_atomic: READs and atomics that may be outstanding at the peer; `max_dest_rd_atomic` here.
        min_rnr_timer: code of the time that RNR NAKs ask for.
        timeout: code of the Local ACK Timeout, 0: none.
        retry_cnt: times that a request is sent again for want of an answer, or for a NAK or a gap.
        rnr_retry: times that it is sent again after an RNR NAK, 7: without end.
    """

    p_key_index: int = 0
    port: int = 1
    q_key: int = 0
    access: Access = Access.NONE
    path: AddressVector = _NOWHERE
    path_mtu: int = 256
    dest_qp: int = 0
    rq_psn: int = 0
    sq_psn: int = 0
    max_dest_rd_atomic: int = 0
    max_rd_atomic: int = 0
    min_rnr_timer: int = 0
    timeout: int = 0
    retry_cnt: int = 0
    rnr_retry: int = 0
    sqd_notify: bool = False


class QpChanges(TypedDict, total=False):
    """`QpAttributes`, as many as are to be set."""

    p_key_index: int
    port: int
    q_key: int
    access: Access
    path: AddressVector
    path_mtu: int
    dest_qp: int
    rq_psn: int
    sq_psn: int
    max_dest_rd_atomic: int
    max_rd_atomic: int
    min_rnr_timer: int
    timeout: int
    retry_cnt: int
    rnr_retry: int
    sqd_notify: bool


_RANGES: Final = {
    "q_key": (0, 0xFFFF_FFFF),
    "dest_qp": (0, 0xFF_FFFF),
    "rq_psn": (0, 0xFF_FFFF),
    "sq_psn": (0, 0xFF_FFFF),
    "max_dest_rd_atomic": (0, 128),
    "max_rd_atomic": (0, 128),
    "min_rnr_timer": (0, 31),
    "timeout": (0, 31),
    "retry_cnt": (0, 7),
    "rnr_retry": (0, 7),
}

_Names = frozenset[str]


_ByType = tuple[str, str, str, str, str, str, str]
"""RC, UC, UD, XRC that sends, XRC that receives, RD, contexts of RD."""


class _Rule:
    """For each type, the attributes that a transition requires and those that it allows."""

    def __init__(self, required: _ByType, allowed: _ByType) -> None:
        self.required: dict[QpType, _Names] = _by_type(required)
        self.allowed: dict[QpType, _Names] = _by_type(allowed)


def _by_type(names: _ByType) -> dict[QpType, _Names]:
    return {kind: frozenset(text.split()) for kind, text in zip(QpType, names, strict=True)}


_NOTHING: Final = ("", "", "", "", "", "", "")
_PORT: Final = "p_key_index port"
_AT_START: Final = (*(f"{_PORT} access",) * 2, f"{_PORT} q_key", *(f"{_PORT} access",) * 2, "access q_key", _PORT)
_PATH: Final = "path path_mtu dest_qp rq_psn"
_RESPONDS: Final = "max_dest_rd_atomic min_rnr_timer"
_RETRIES: Final = "timeout retry_cnt rnr_retry max_rd_atomic"
_WHILE_RUNNING: Final = (
    *("access min_rnr_timer", "access", "q_key"),
    *("access", "access min_rnr_timer", "access min_rnr_timer q_key", ""),
)
_IN_RTS: Final = _Rule(_NOTHING, _WHILE_RUNNING)

_TRANSITIONS: Final = {
    (QpState.RESET, QpState.INIT): _Rule(_AT_START, _NOTHING),
    (QpState.INIT, QpState.INIT): _Rule(_NOTHING, _AT_START),
    (QpState.INIT, QpState.RTR): _Rule(
        (
            *(f"{_PATH} {_RESPONDS}", _PATH, "", _PATH, f"{_PATH} {_RESPONDS}"),
            *("min_rnr_timer", f"{_PATH} max_dest_rd_atomic"),
        ),
        (
            *("access p_key_index", "access p_key_index", "p_key_index q_key", "access p_key_index"),
            *("access p_key_index", "access q_key", "p_key_index"),
        ),
    ),
    (QpState.RTR, QpState.RTS): _Rule(
        (f"sq_psn {_RETRIES}", "sq_psn", "sq_psn", f"sq_psn {_RETRIES}", "sq_psn timeout", "", f"sq_psn {_RETRIES}"),
        _WHILE_RUNNING,
    ),
    (QpState.RTS, QpState.RTS): _IN_RTS,
    (QpState.RTS, QpState.SQD): _Rule(
        _NOTHING,
        (*("sqd_notify",) * 4, "", "sqd_notify", "sqd_notify"),
    ),
    (QpState.SQD, QpState.SQD): _Rule(
        _NOTHING,
        (
            f"port path {_RETRIES} max_dest_rd_atomic access p_key_index min_rnr_timer",
            "path access p_key_index",
            "p_key_index q_key",
            f"port path {_RETRIES} access p_key_index",
            "port path timeout max_dest_rd_atomic access p_key_index min_rnr_timer",
            "access q_key min_rnr_timer",
            f"port path {_RETRIES} max_dest_rd_atomic p_key_index",
        ),
    ),
    (QpState.SQD, QpState.RTS): _IN_RTS,
    (QpState.SQE, QpState.RTS): _Rule(_NOTHING, ("", "access", "q_key", "", "", "access min_rnr_timer q_key", "")),
}

_WITH_SQE: Final = (QpType.UC, QpType.UD, QpType.RD)
"""The others go to ERR when their send queue fails."""


def check_transition(kind: QpType, before: QpState, after: QpState, changes: Collection[str]) -> None:
    """Refuses what the standard does not allow.

    Raises:
        TransitionError: no such transition for queue pairs of this type, an attribute that it requires is not given,
            or one is given that it does not take.
    """
    names = frozenset(changes)
    text = f"{kind.name} queue pair, {before.name} to {after.name}"
    if after in (QpState.RESET, QpState.ERR):
        required = allowed = frozenset[str]()
    else:
        rule = _TRANSITIONS.get((before, after))
        if rule is None or (before is QpState.SQE and kind not in _WITH_SQE):
            raise TransitionError(f"{text}: there is no such transition")
        required, allowed = rule.required[kind], rule.allowed[kind]
    if missing := required - names:
        raise TransitionError(f"{text}: requires {', '.join(sorted(missing))}")
    if odd := names - required - allowed:
        takes = ", ".join(sorted(required | allowed)) or "nothing"
        raise TransitionError(f"{text}: {', '.join(sorted(odd))} given, allowed {takes}")


def check_ranges(changes: QpChanges) -> None:
    """Refuses values that the fields of packets and attributes cannot hold.

    Raises:
        TransitionError: naming the attribute, its value and what is allowed.
    """
    for name, (low, high) in _RANGES.items():
        value = changes.get(name, low)
        if not isinstance(value, int) or not low <= value <= high:
            raise TransitionError(f"{name} {value!r}: allowed {low}..{high}")
