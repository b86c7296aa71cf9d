"""Small stimuli of what links are told: how wide they may be, and where ports go whose link is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from star import PAIR, SMALL, START, SWITCH, Star

from cosim.stimulus.run_spec import RunSpec
from wire.codes import LINK_WIDTHS, LinkWidth, PortPhysicalState
from wire.registers import PortRegister, port_address

__all__ = ["LINK_STIMULI"]


def link_settings() -> RunSpec:
    """A link comes up 1X and is started anew as 4X; one is lost while its port sleeps by default, and another told."""
    star = Star(PAIR, SMALL)
    enabled, default, physical = (
        PortRegister.LINK_WIDTH_ENABLED,
        PortRegister.LINK_DOWN_DEFAULT,
        PortRegister.PHYSICAL_STATE,
    )
    for cycle, width in ((START, LinkWidth.X1), (START + 200, LINK_WIDTHS)):
        star.write(cycle, SWITCH, port_address(2, enabled), width)
        # It stays as it is while it is up.
        star.post(cycle + 4, 1, 2, 4)
        star.write(cycle + 60, SWITCH, port_address(2, physical), PortPhysicalState.POLLING)
        star.read(cycle + 80, SWITCH, port_address(2, PortRegister.WIDTH))
        star.post(cycle + 84, 1, 2, 4)
    begin = START + 420
    for port in star.ports:
        star.write(begin + port, SWITCH, port_address(port, default), PortPhysicalState.SLEEP)
        star.write(begin + 4 + port, SWITCH, port_address(port, PortRegister.LINK_DOWN_TIMEOUT), 10)
    for port in star.ports:
        star.link(begin + 20 + 40 * port, port, up=False)
        # The second is told to poll in the cycle before it is lost for good.
        if port == 2:
            star.write(begin + 20 + 40 * port + 8, SWITCH, port_address(port, physical), PortPhysicalState.POLLING)
        star.link(begin + 40 + 40 * port, port, up=True)
        star.read(begin + 50 + 40 * port, SWITCH, port_address(port, physical))
    return star.spec(begin + 180)


LINK_STIMULI: Final[dict[str, Callable[[], RunSpec]]] = {"link_settings": link_settings}
