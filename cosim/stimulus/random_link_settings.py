"""What ports are told of links that fail, at random: widths that they may have then, and where ports without one go."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from random import Random
from typing import Final, NamedTuple

from cosim.stimulus.bus_bring_up import write_port
from cosim.topology.topology import Port, Topology
from wire.codes import LINK_WIDTHS, LinkWidth, PortPhysicalState, PortState
from wire.port_info import LINK_WIDTH_ALL
from wire.registers import PortRegister
from wire.stimulus import Control, Operation

__all__ = ["link_ends", "with_link_settings"]

_SHARE: Final = 0.5
"""Of the outages of links, those with settings."""

_TO_1X: Final = ((LinkWidth.X1, LinkWidth.X1), (LinkWidth.X1, LINK_WIDTHS), (LinkWidth.X1, LINK_WIDTH_ALL))
_TO_4X: Final = (
    (LinkWidth.X4, LinkWidth.X4),
    (LinkWidth.X4, LINK_WIDTHS),
    (LINK_WIDTHS, LINK_WIDTH_ALL),
    (LINK_WIDTHS, LINK_WIDTHS),
)
_ANY_WIDTHS: Final = (LinkWidth.X1, LinkWidth.X4, LINK_WIDTHS, LINK_WIDTHS, LINK_WIDTH_ALL)
_ABOUT: Final = (-6, 4)
"""Cycles from the loss of a link, or its end, to the writes about it."""

_BEFORE: Final = 50
_MOST_TIMES: Final = 3
_PAUSES: Final = ((60, 500), (1_000, 8_000))
"""Cycles from one loss to the next; more than from what is written about it."""

_LOST_CYCLES: Final = (1, 300)
_PARTED_CYCLES: Final = (20, 3_000)
_LEFT_SHARE: Final = 0.3
"""Of what keeps a link out, that which is left to a sweep."""

_HASTY_WRITES: Final = (4, 40)
_MOST_HASTY_CYCLES: Final = (1, 2, 8, 40)
_MOST_STATES: Final = 4
_STATES: Final = (
    PortPhysicalState.POLLING,
    PortPhysicalState.POLLING,
    PortPhysicalState.SLEEP,
    PortPhysicalState.DISABLED,
)
_ASLEEP_CYCLES: Final = (1, 400)
_TIMEOUT: Final = (400, 2_400)
"""LINK_DOWN_TIMEOUT afterwards."""


def link_ends(topology: Topology, link: int) -> list[Port]:
    """The ports of a link."""
    return [port for port in topology.linked_ports() if (at := topology.link_at(port)) is not None and at[0] == link]


def with_link_settings(
    topology: Topology, random: Random, link: int, outage: list[Control], free: int, count: Counter[str]
) -> list[Control]:
    """An outage of a link, with settings of its ports about a loss in half of them, all from cycle FREE on.

    The link comes back narrow, or not before another setting, or a port sleeps when it is back. What an outage leaves
    behind the sweeps make right (`cosim.stimulus.random_links.sweeps`).
    """
    if random.random() >= _SHARE:
        return outage
    count["link_setting"] += 1
    ends = link_ends(topology, link)
    random.shuffle(ends)
    downs, ups = (
        [one.cycle for one in outage if one.operation == operation]
        for operation in (Operation.LINK_DOWN, Operation.LINK_UP)
    )
    loss = random.choice([_Loss(*cycles) for cycles in zip(downs, ups, strict=True)])
    kind = random.choice((_narrow, _narrow, _parted, _asleep, _asleep, _in_haste))
    given = kind(topology, random, link, ends, loss, max(one.cycle for one in outage))
    count["link_down"] += sum(one.operation == Operation.LINK_DOWN for one in given)
    given = [control._replace(cycle=max(free, control.cycle)) for control in given]
    return sorted([*outage, *given], key=attrgetter("cycle"))


class _Loss(NamedTuple):
    """Of a link.

    Attributes:
        down: the cycle of its LINK_DOWN.
        up: that of the LINK_UP that ends it.
    """

    down: int
    up: int

    def controls(self, link: int) -> list[Control]:
        """What makes it."""
        return [Control(self.down, Operation.LINK_DOWN, link), Control(self.up, Operation.LINK_UP, link)]


def _losses(random: Random, first: _Loss, last: int, more: int) -> list[_Loss]:
    """A loss, and so many more from cycle LAST on, soon one after the other or not."""
    losses, until = [first], max(first.up, last)
    for _ in range(more):
        down = until + random.randint(*random.choice(_PAUSES))
        until = down + random.randint(*_LOST_CYCLES)
        losses.append(_Loss(down, until))
    return losses


def _near(random: Random, loss: _Loss) -> int:
    """A cycle before a loss, about its begin or its end, or while it lasts."""
    begin, end = (cycle + random.randint(*_ABOUT) for cycle in loss)
    return random.choice((loss.down - random.randint(1, _BEFORE), begin, end, random.randint(*loss)))


def _widths(
    topology: Topology, random: Random, ends: list[Port], widths: tuple[int, int], loss: _Loss
) -> list[Control]:
    """Both ends are told of widths, at times in adjacent cycles."""
    first, then = _near(random, loss), _near(random, loss)
    cycles = (first, first + 1) if random.random() < 0.5 else (first, then)
    return [
        write_port(topology, cycle, end, PortRegister.LINK_WIDTH_ENABLED, width)
        for cycle, end, width in zip(cycles, ends, widths, strict=True)
    ]


def _narrow(topology: Topology, random: Random, link: int, ends: list[Port], first: _Loss, last: int) -> list[Control]:
    """A link comes back 1X, though its cable has four lanes, and 4X when it is lost once more; at times repeatedly."""
    losses = _losses(random, first, last, 2 * random.randint(1, _MOST_TIMES) - 1)
    widths = [random.choice(offers) for _ in losses[::2] for offers in (_TO_1X, _TO_4X)]
    return [
        *(control for loss in losses[1:] for control in loss.controls(link)),
        *(
            control
            for both, loss in zip(widths, losses, strict=True)
            for control in _widths(topology, random, ends, both, loss)
        ),
    ]


def _parted(topology: Topology, random: Random, link: int, ends: list[Port], loss: _Loss, last: int) -> list[Control]:
    """A link's ends have no width in common, until one of them has both, or a sweep comes."""
    controls = _widths(topology, random, ends, (LinkWidth.X1, LinkWidth.X4), loss)
    if random.random() >= _LEFT_SHARE:
        later = max(last, *(control.cycle for control in controls)) + random.randint(*_PARTED_CYCLES)
        end = random.choice(ends)
        controls.append(write_port(topology, later, end, PortRegister.LINK_WIDTH_ENABLED, LINK_WIDTHS))
    return controls


def _in_haste(topology: Topology, random: Random, link: int, ends: list[Port], loss: _Loss, last: int) -> list[Control]:
    """Both ends are told of widths again and again, so that the link is lost and found, and of both at last."""
    cycle, most = _near(random, loss), random.choice(_MOST_HASTY_CYCLES)
    any_widths = [(random.choice(ends), random.choice(_ANY_WIDTHS)) for _ in range(random.randint(*_HASTY_WRITES))]
    controls = []
    for end, width in (*any_widths, *((end, LINK_WIDTHS) for end in ends)):
        controls.append(write_port(topology, cycle, end, PortRegister.LINK_WIDTH_ENABLED, width))
        cycle += random.randint(1, most)
    return controls


def _asleep(topology: Topology, random: Random, link: int, ends: list[Port], first: _Loss, last: int) -> list[Control]:
    """Ports sleep when their link is lost, and are woken; at times repeatedly."""
    losses = _losses(random, first, last, random.randint(0, 2 * _MOST_TIMES))
    sleeping = ends if random.random() < 0.5 else ends[:1]
    return [
        *(control for loss in losses[1:] for control in loss.controls(link)),
        *(control for loss in losses for end in sleeping for control in _sleep(topology, random, end, loss)),
    ]


def _sleep(topology: Topology, random: Random, port: Port, loss: _Loss) -> list[Control]:
    """A port sleeps at once when its link is lost, or after a time-out, and is told of other states just then.

    Some are set Down about the loss, so that there is nothing to time out, or nothing to lose.
    """
    down, up = loss
    timeout, before = random.randint(1, up - down + 4), down - random.randint(1, _BEFORE)
    lost = random.choice((down, down + timeout))
    sleeps = random.choice((before, before, lost + random.randint(*_ABOUT)))
    writes: list[tuple[int, PortRegister, int]] = [
        (before, PortRegister.LINK_DOWN_TIMEOUT, timeout),
        (sleeps, PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.SLEEP),
        *(
            (lost + random.randint(*_ABOUT), PortRegister.PHYSICAL_STATE, random.choice(_STATES))
            for _ in range(random.choice((0, 0, random.randint(1, _MOST_STATES))))
        ),
    ]
    if random.random() < 0.5:
        writes.append((down + random.randint(*_ABOUT), PortRegister.STATE, PortState.DOWN))
    if random.random() >= _LEFT_SHARE:
        wakes = max(up, lost) + random.randint(*_ASLEEP_CYCLES)
        writes += [
            (wakes, PortRegister.PHYSICAL_STATE, PortPhysicalState.POLLING),
            (wakes + random.randint(*_ABOUT), PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.POLLING),
            (wakes, PortRegister.LINK_DOWN_TIMEOUT, random.randint(*_TIMEOUT)),
        ]
    return [write_port(topology, cycle, port, register, value) for cycle, register, value in writes]
