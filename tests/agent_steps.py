"""The numbers of the agent's steps, as tests read docs/management.md, section 4.3."""

from collections.abc import Callable, Collection
from functools import cache

from wire.congestion_control import CcAttribute
from wire.mad import MadMethod
from wire.parameters import vl_arbitration_entries
from wire.pma import PmaAttribute
from wire.sma import SmaAttribute

__all__ = [
    "CC_WORDS",
    "LAP",
    "cycles_to",
    "of_cc_request",
    "of_request",
    "of_trap",
    "slot_for_answer",
    "slot_in_set",
    "steps_of_request",
]

NO_ANSWER = list(range(16))

LONG_IN_SET: dict[int, Collection[int]] = {
    SmaAttribute.SWITCH_INFO: {1, 2, 4},
    SmaAttribute.LINEAR_FORWARDING_TABLE: range(16),
    SmaAttribute.MULTICAST_FORWARDING_TABLE: range(16),
    SmaAttribute.P_KEY_TABLE: range(16),
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: {0, 1},
    SmaAttribute.PORT_INFO: {4, 8, 9, 10, 13},
}
LONG_FOR_ANSWER: dict[int, Collection[int]] = {SmaAttribute.PORT_INFO: {7, 8}}
LONG_IN_PMA_SET: dict[int, Collection[int]] = {
    PmaAttribute.PORT_SAMPLES_CONTROL: {0},
    PmaAttribute.PORT_COUNTERS: range(1, 11),
    PmaAttribute.PORT_COUNTERS_EXTENDED: range(3, 18, 2),
    PmaAttribute.PORT_RCV_ERROR_DETAILS: {1, 2, 3},
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: {1, 2},
    PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: {1},
    PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS: range(1, 9),
}
LONG_FOR_PMA_ANSWER: dict[int, Collection[int]] = {
    PmaAttribute.PORT_SAMPLES_CONTROL: {0},
    PmaAttribute.PORT_COUNTERS: range(1, 11),
    PmaAttribute.PORT_COUNTERS_EXTENDED: range(2, 18),
    PmaAttribute.PORT_RCV_ERROR_DETAILS: {1, 2, 3},
    PmaAttribute.PORT_XMIT_DISCARD_DETAILS: {1, 2},
    PmaAttribute.PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: {1},
    PmaAttribute.PORT_VL_XMIT_WAIT_COUNTERS: range(1, 9),
}
CC_WORDS: dict[int, range] = {
    CcAttribute.CLASS_PORT_INFO: range(8, 26),
    CcAttribute.CONGESTION_INFO: range(8, 9),
    CcAttribute.CONGESTION_KEY_INFO: range(8, 12),
    CcAttribute.CONGESTION_LOG: range(55),
    CcAttribute.SWITCH_CONGESTION_SETTING: range(8, 27),
    CcAttribute.SWITCH_PORT_CONGESTION_SETTING: range(8, 40),
    CcAttribute.TIME_STAMP: range(8, 9),
}
"""Section 7."""
OF_SWITCHES = (
    SmaAttribute.SWITCH_INFO,
    SmaAttribute.LINEAR_FORWARDING_TABLE,
    SmaAttribute.MULTICAST_FORWARDING_TABLE,
    SmaAttribute.P_KEY_TABLE,
)
"""Long there alone."""


LAP = 1 << 16
"""Added to the numbers of a slot's second lap, twice to those of the third."""


def slot_in_set(word: int) -> int:
    """The number of the first step of a word's slot."""
    return 16 + 8 * word if word < 16 else 512 + 8 * (word + 8)


def slot_for_answer(word: int) -> int:
    """Likewise."""
    return 144 + 8 * word if word < 16 else 1024 + 8 * (word + 8)


def _slots(slot: Callable[[int], int], long: Collection[int], laps: int = 1) -> list[int]:
    numbers: list[int] = []
    for word in range(max(16, 1 + max(long, default=0))):
        if word in long:
            numbers += [slot(word) + k + LAP * lap for lap in range(laps) for k in range(8)]
        else:
            numbers += [slot(word) + k for k in (0, 1, 7)]
    return numbers


@cache
def of_request(
    method: int, attribute: int, *, pma: bool = False, is_switch: bool = True, laps: int = 1, vls: int = 1
) -> tuple[int, ...]:
    """Those of a request that is answered, in a node of so many data VLs; a PMA's is about so many ports."""
    in_set, for_answer = (LONG_IN_PMA_SET, LONG_FOR_PMA_ANSWER) if pma else (LONG_IN_SET, LONG_FOR_ANSWER)
    known = pma or is_switch or attribute not in OF_SWITCHES
    before = [143]
    if method == MadMethod.SET:
        long: Collection[int] = in_set.get(attribute, ()) if known else ()
        if attribute == SmaAttribute.VL_ARBITRATION_TABLE and not pma:
            long = range(vl_arbitration_entries(vls) // 2)
        before = _slots(slot_in_set, long, laps)
    return (*NO_ANSWER, *before, *_slots(slot_for_answer, for_answer.get(attribute, ()), laps), *range(272, 280))


@cache
def of_cc_request(method: int, attribute: int) -> tuple[int, ...]:
    """Those of a congestion control request that a switch answers."""
    in_set, for_answer = (
        [first + 8 * word + k for word in CC_WORDS.get(attribute, ()) for k in range(8)] for first in (512, 1024)
    )
    before = in_set if method == MadMethod.SET else []
    return (*NO_ANSWER, *before, 143, *for_answer, *range(272, 280))


@cache
def of_trap() -> tuple[int, ...]:
    return (*range(144), *_slots(slot_for_answer, ()), *range(272, 280))


def steps_of_request(method: int, attribute: int, **kind: bool) -> int:
    """How many there are."""
    return len(of_request(method, attribute, **kind))


def cycles_to(step: int, method: int, attribute: int, **kind: bool) -> int:
    """The cycles between step 0 and this one."""
    return of_request(method, attribute, **kind).index(step)
