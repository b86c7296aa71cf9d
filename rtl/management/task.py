"""What the agent has to do, and the stages that do it."""

from typing import Any, Final

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.mad_head import MadHead
from rtl.management.smi import Way
from rtl.management.step import StepsSignature
from wire.parameters import NodeParameters, SwitchParameters

__all__ = ["Stage", "Task"]

Task: Final = wiring.Signature(
    {
        "head": Out(MadHead),
        "trap": Out(1),
        "pma": Out(1),
        "is_set": Out(1),
        "from_host": Out(1),
        "record": Out(1),
        "answers": Out(1),
        "violated": Out(1),
        "way": Out(Way),
    }
)
"""What there is to do.

`head`: of the packet that came; `trap`: it is no packet but a trap; `pma`: it is a PMA request, else an SMP;
`from_host`: that of an adapter; `record`: the port that it came in by is written into it. From step 1 on `answers`: it
is answered; `violated`: it violated the M_Key; `way`: where it, its answer or the trap goes."""


class Stage(wiring.Component):
    """A part of the agent that does its share at certain steps.

    Members:
        steps, task: of the work.
    """

    def __init__(self, parameters: NodeParameters, **members: Any) -> None:
        self._parameters = parameters
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        self._lft_size = parameters.lft_size if isinstance(parameters, SwitchParameters) else 0
        super().__init__({"steps": In(StepsSignature()), "task": In(Task), **members})
