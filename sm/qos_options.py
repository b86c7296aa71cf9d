"""Quality of service as OpenSM's options file has it: VLs, SL to VL, VL arbitration (`opensm -c FILE` writes one)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from sm.options_file import UNSET, OptionsError, number, options
from wire.codes import SERVICE_LEVELS, VL15
from wire.node_info import NodeType
from wire.vl_arbitration import VlArbitration, VlWeight, check_entries, weights_of_text

__all__ = ["QosOptions", "parse_qos_options", "qos_policy_file"]

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

_KINDS: Final = {"ca_": NodeType.CA, "swe_": NodeType.SWITCH, "rtr_": NodeType.ROUTER, "sw0_": None}
"""Types of the nodes whose ports an option is for; what is said of a switch's port 0 is for enhanced ones."""

_OPTION: Final = re.compile(f"qos_(?:{'|'.join(_KINDS)})?(?P<name>{'|'.join(_DEFAULTS)})")


@dataclass(frozen=True)
class QosOptions:
    """Of ports."""

    max_vls: int = _MOST_VLS
    """No port uses more data VLs than this, nor more than both ends of the link have and may use."""
    sl_to_vl: tuple[int, ...] = tuple(range(SERVICE_LEVELS))
    """VL of each SL, modulo the data VLs that a port uses."""
    vl_arbitration: VlArbitration | None = None
    """Lists and limit of ports with more than one data VL; None leaves them as they are."""


def parse_qos_options(text: str, name: str) -> dict[NodeType, QosOptions]:
    """The options of a file, by the type of the node that ports are of.

    They are `qos_max_vls`, `qos_high_limit`, `qos_vlarb_high`, `qos_vlarb_low` and `qos_sl2vl`; those of adapters,
    external ports of switches, and routers (`qos_ca_max_vls`, `qos_swe_`, `qos_rtr_`) come before them. Those of port 0
    of switches (`qos_sw0_`) are only checked: it has no link. Other lines are OpenSM's own affair, and passed over.

    Raises:
        OptionsError: a value is not allowed.
    """
    said: dict[str, tuple[int, str]] = {}
    for line, word, value in options(text):
        option = _OPTION.fullmatch(word)
        if option is not None:
            said.pop(word, None)
            if value not in (UNSET, _UNSET_NUMBERS.get(option["name"])):
                said[word] = line, value

    def of_kind(kind: str) -> QosOptions:
        def read(option: str, parse: Callable[[str], _Value]) -> _Value:
            word = next((word for word in (f"qos_{kind}{option}", f"qos_{option}") if word in said), "")
            line, value = said.get(word, (0, _DEFAULTS[option]))
            try:
                return parse(value)
            except ValueError as error:
                raise OptionsError(f"{name}:{line}: {word}: {error}") from None

        return QosOptions(
            max_vls=read("max_vls", partial(number, low=1, high=_MOST_VLS)),
            sl_to_vl=read("sl2vl", _vls),
            vl_arbitration=VlArbitration(
                high=read("vlarb_high", _weights),
                low=read("vlarb_low", _weights),
                high_limit=read("high_limit", partial(number, low=0, high=255)),
            ),
        )

    found = {node_type: of_kind(kind) for kind, node_type in _KINDS.items()}
    return {node_type: options for node_type, options in found.items() if node_type is not None}


def qos_policy_file(text: str) -> str | None:
    """The file of the QoS policy that a file of options names (`qos_policy_file`); None if it names none."""
    names = [option.value for option in options(text) if option.name == "qos_policy_file"]
    return names[-1] if names and names[-1] != UNSET else None


def _weights(text: str) -> tuple[VlWeight, ...]:
    entries = weights_of_text(text)
    check_entries(entries)
    return entries


def _vls(text: str) -> tuple[int, ...]:
    vls = tuple(number(one.strip(), 0, VL15 - 1) for one in text.split(","))
    if len(vls) != SERVICE_LEVELS:
        raise ValueError(f"{len(vls)} VLs, expected {SERVICE_LEVELS}")
    return vls
