"""What the agent has to do with a packet, or for a trap."""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl.management.mad_head import MadHead
from rtl.management.smi import Way

__all__ = ["TaskSignature"]


class TaskSignature(wiring.Signature):
    """The task of the work, seen from where it is decided on.

    Members:
        head: of the packet that came.
        trap: it is a trap instead. `pma`: the packet is a PMA request, else it is an SMP.
        is_set: the packet is a Set. `from_host`: it came from an adapter's host.
        answers: it is answered, `violated`: it violates the M_Key; `way`: where it, its answer or the trap goes; from
            step 1 on.
        record: the port that it came in by is written into it.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "head": Out(MadHead),
                "trap": Out(1),
                "pma": Out(1),
                "is_set": Out(1),
                "from_host": Out(1),
                "answers": Out(1),
                "violated": Out(1),
                "way": Out(Way),
                "record": Out(1),
            }
        )
