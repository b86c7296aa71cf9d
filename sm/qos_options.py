"""Quality of service as OpenSM's options file has it: VLs, SL to VL, VL arbitration (`opensm -c FILE` writes one)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from sm.options_file import UNSET, OptionsError, number, options
from wire.codes import SERVICE_LEVELS, VL15
from wire.vl_arbitration import VlArbitration, VlWeight, check_entries, weights_of_text

__all__ = ["QosOptions", "parse_qos_options"]

_Value = TypeVar("_Value")

_MOST_VLS: Final = 15
_UNSET_NUMBERS: Final = {"max_vls": "0", "high_limit": "-1"}
"""What `opensm -c` writes of numbers that nobody has set."""

_DEFAULTS: Final = {
    "max_vls": "15",
    "high_limit": "0",
    "vlarb_high": ",".join(["0:4", *(f"{vl}:0" for vl in range(1, VL15))]),
    "vlarb_low": ",".join(["0:0", *(f"{vl}:4" for vl in range(1, VL15))]),
    "sl2vl": "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7",
}
"""OpenSM's, of options that a file does not have."""

_OF_SOME_PORTS: Final = ("ca_", "sw0_", "swe_", "rtr_")


@dataclass(frozen=True)
class QosOptions:
    """For all ports."""

    max_vls: int
    sl_to_vl: tuple[int, ...]
    vl_arbitration: VlArbitration


def parse_qos_options(text: str, name: str) -> QosOptions:
    """The options `qos_max_vls`, `qos_high_limit`, `qos_vlarb_high`, `qos_vlarb_low` and `qos_sl2vl` of a file.

    Other lines are OpenSM's own affair, and passed over.

    Raises:
        OptionsError: a value is not allowed, or an option is for the ports of some nodes only.
    """
    found: dict[str, tuple[int, str]] = {option: (0, value) for option, value in _DEFAULTS.items()}
    for line, word, value in options(text):
        if not word.startswith("qos_"):
            continue
        option = word.removeprefix("qos_")
        prefix = next(filter(option.startswith, _OF_SOME_PORTS), "")
        if value in (UNSET, _UNSET_NUMBERS.get(option.removeprefix(prefix))):
            continue
        if option in found:
            found[option] = line, value
        elif prefix:
            raise OptionsError(f"{name}:{line}: qos_{option} {value}: expected options of all ports alone")

    def read(option: str, parse: Callable[[str], _Value]) -> _Value:
        line, value = found[option]
        try:
            return parse(value)
        except ValueError as error:
            raise OptionsError(f"{name}:{line}: qos_{option}: {error}") from None

    return QosOptions(
        max_vls=read("max_vls", partial(number, low=1, high=_MOST_VLS)),
        sl_to_vl=read("sl2vl", _vls),
        vl_arbitration=VlArbitration(
            high=read("vlarb_high", _weights),
            low=read("vlarb_low", _weights),
            high_limit=read("high_limit", partial(number, low=0, high=255)),
        ),
    )


def _weights(text: str) -> tuple[VlWeight, ...]:
    entries = weights_of_text(text)
    check_entries(entries)
    return entries


def _vls(text: str) -> tuple[int, ...]:
    vls = tuple(number(one.strip(), 0, VL15 - 1) for one in text.split(","))
    if len(vls) != SERVICE_LEVELS:
        raise ValueError(f"{len(vls)} VLs, expected {SERVICE_LEVELS}")
    return vls
