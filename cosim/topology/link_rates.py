"""Widths and speeds of links: what a topology file says of a port, what two ports agree on, and what is built."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from cosim.topology.place import Wrong
from sm.subnet import Speed, Subnet
from wire.codes import LinkWidth
from wire.meaning import label

__all__ = ["PortRate", "agreed_rate", "built_width", "rate_line", "rate_text", "stated_rate"]

_LinkRate = tuple[LinkWidth, Speed]

_BUILT_SPEED: Final = Speed.SDR
"""Of all links of Ironband."""

_NOT_EXTENDED: Final = Speed.SDR | Speed.DDR | Speed.QDR
_EXTENDED_SPEEDS: Final = (Speed.FDR, Speed.EDR, Speed.HDR, Speed.NDR)
"""By the bits of ibsim's `e=` and `extspeed=`, which are LinkSpeedExtEnabled's."""

_WIDTHS: Final = {
    "1": LinkWidth.X1,
    "2": LinkWidth.X1 | LinkWidth.X2,
    "4": LinkWidth.X1 | LinkWidth.X4,
    "8": LinkWidth.X1 | LinkWidth.X4 | LinkWidth.X8,
    "12": LinkWidth.X1 | LinkWidth.X4 | LinkWidth.X12,
}
"""Widths of a port, by the one that it runs at."""

_WIDTH_ORDER: Final = (LinkWidth.X12, LinkWidth.X8, LinkWidth.X4, LinkWidth.X2, LinkWidth.X1)
_GIGABITS: Final = {"2.5": "SDR", "5": "DDR", "5.0": "DDR", "10": "QDR", "10.0": "QDR"}
_UNIT: Final = re.compile(r"G(bps)?$")
_UNKNOWN: Final = re.compile(r"\?+$")
"""What ibnetdiscover prints of a width or speed that it has no word for."""


class PortRate(NamedTuple):
    """What a port can run at; by default what a port of ibsim can of which nothing is said."""

    widths: LinkWidth = LinkWidth.X4
    speeds: Speed = Speed.SDR

    def having(self, key: str, value: int) -> PortRate:
        """The same but for the widths, speeds or extended speeds, as the first letter of KEY says, in ibsim's bits."""
        if key[0] == "w":
            return self._replace(widths=LinkWidth(value))
        if key[0] == "s":
            # ibsim takes 0 for QDR.
            extended = self.speeds & ~_NOT_EXTENDED
            return self._replace(speeds=extended | Speed(value or Speed.QDR))
        chosen = self.speeds & _NOT_EXTENDED
        for bit, speed in enumerate(_EXTENDED_SPEEDS):
            if value >> bit & 1:
                chosen |= speed
        return self._replace(speeds=chosen)


def stated_rate(width: str, speed: str, usual: PortRate) -> PortRate:
    """The rate of a port that runs at what ibnetdiscover prints, "4" and "EDR"; the usual one where it prints "?".

    Raises:
        Wrong: no such width or speed.
    """
    spoken = _UNIT.sub("", speed)
    name = _GIGABITS.get(spoken, speed)
    unknown_width, unknown_speed = _UNKNOWN.match(width), _UNKNOWN.match(speed)
    if not (unknown_width or width in _WIDTHS) or not (unknown_speed or name in Speed.__members__):
        raise Wrong(
            f"link {width}x{speed}: expected a width of {', '.join(f'{width}x' for width in _WIDTHS)} "
            f"and a speed of {', '.join(Speed.__members__)}"
        )
    return PortRate(
        usual.widths if unknown_width else _WIDTHS[width],
        usual.speeds if unknown_speed else _up_to(Speed[name]),
    )


def _up_to(fastest: Speed) -> Speed:
    speeds = fastest
    for speed in Speed:
        if speed < fastest:
            speeds |= speed
    return speeds


def agreed_rate(one: PortRate, other: PortRate) -> _LinkRate:
    """Width and speed of a link between two ports: the best that both can.

    Raises:
        Wrong: there is none.
    """
    widths, speeds = one.widths & other.widths, one.speeds & other.speeds
    if not widths:
        raise Wrong(f"share no width: one has {_all_of(one.widths)}, the other {_all_of(other.widths)}")
    if not speeds:
        raise Wrong(f"share no speed: one has {_all_of(one.speeds)}, the other {_all_of(other.speeds)}")
    return next(width for width in _WIDTH_ORDER if width in widths), max(speed for speed in Speed if speed in speeds)


def _all_of(bits: LinkWidth | Speed) -> str:
    return ", ".join(label(bit) for bit in type(bits) if bit in bits) or "none"


def built_width(width: LinkWidth) -> LinkWidth:
    """What Ironband makes of a link: the widest it has that is not wider."""
    return LinkWidth.X1 if width in (LinkWidth.X1, LinkWidth.X2) else LinkWidth.X4


def rate_text(width: LinkWidth, speed: Speed) -> str:
    """As ibnetdiscover prints it: 4xEDR."""
    return f"{label(width).lower()}{speed.name}"


def rate_line(subnet: Subnet) -> str:
    """What is built of the rates that a file has, in a line; empty if all of them are built."""
    counted = Counter((link.width, link.speed) for link in subnet.links)
    if all(rate == _built(rate) for rate in counted):
        return ""
    return f"links of the file: {', '.join(_told(counted))}"


def _told(counted: Counter[_LinkRate]) -> Iterator[str]:
    for rate, count in counted.most_common():
        here = "" if rate == _built(rate) else f" (here {rate_text(*_built(rate))})"
        yield f"{count:,} of {rate_text(*rate)}{here}"


def _built(rate: _LinkRate) -> _LinkRate:
    return built_width(rate[0]), _BUILT_SPEED
