"""Subnet Managers at two hosts of one fabric, on the golden model: who is the master, and who is handed over to."""

from collections import deque
from pathlib import Path

from cosim.engines import simulation
from cosim.hosts.manager_host import ManagerHost, first_controls, manager_start
from cosim.stimulus.actors import ActorGroup
from cosim.stimulus.run_spec import RunSpec
from sm.settings import SubnetSettings
from wire.codes import LinkWidth
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.sma import SMState
from wire.stimulus import Control, Operation

FABRIC = FabricParameters(
    {"S": SwitchParameters(ports=2), "A": AdapterParameters(), "B": AdapterParameters()},
    (LinkParameters("S", 1, "A", 1), LinkParameters("S", 2, "B", 1)),
)
WIDTHS = (LinkWidth.X4, LinkWidth.X4)
LATER = 200_000
LIMIT = 4_000_000


def managed(priorities: tuple[int, int], states: tuple[SMState, SMState], later: int = 0) -> list[ManagerHost]:
    """The Subnet Managers at A and B, when they rest in these states; B's begins so many cycles `later`."""
    made: list[ManagerHost] = []

    def ended(_one: object) -> bool:
        rest = all(host.manager.resting for host in made)
        return rest and tuple(host.manager.state for host in made) == states

    begin = manager_start(WIDTHS)
    for name, priority, start in (("A", priorities[0], begin), ("B", priorities[1], begin + later)):
        settings = SubnetSettings(priority=priority, polling_period=50_000)
        made.append(ManagerHost(FABRIC, name, start, settings=settings, ended=ended))
    controls = [*first_controls(FABRIC, WIDTHS, ["A"]), Control(begin + later, Operation.HOST_SM, 2, (1, 0, 0, 0))]
    actor = ActorGroup([host.carrier for host in made])
    with simulation.run("model", RunSpec(FABRIC, controls, (), LIMIT, actor), Path()) as run:
        deque(run, maxlen=0)
    assert run.cycles_done < LIMIT, f"they are {[host.manager.state for host in made]}"
    return made


def test_of_two_that_begin_together_the_lower_guid_is_the_master():
    first, second = managed((0, 0), (SMState.MASTER, SMState.STANDBY))
    assert first.complete
    assert second.manager.lids == {}


def test_one_of_higher_priority_that_comes_later_is_handed_the_fabric():
    first, second = managed((0, 5), (SMState.STANDBY, SMState.MASTER), LATER)
    assert second.complete
    assert second.manager.lids == first.manager.lids
