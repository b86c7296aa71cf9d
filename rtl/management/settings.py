"""What the agent itself uses of what a Subnet Manager has set (docs/management.md, section 4.3)."""

from typing import Final

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute import Word
from rtl.management.place import place
from rtl.management.task import ANSWER_SLOT, SLOT_STEPS, StepsSignature
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.switch_info import SWITCH_INFO

__all__ = ["Settings", "SettingsSignature"]

_OF_PORT: Final = ("lid", "master_sm_lid", "master_sm_sl", "subnet_timeout")
_COMMIT_STEP: Final = SLOT_STEPS * ANSWER_SLOT - 1


class SettingsSignature(wiring.Signature):
    """Fields of the node's own PortInfo and of SwitchInfo, seen from where they are kept.

    Members:
        lid, master_sm_lid, master_sm_sl, subnet_timeout, lmc (adapter), linear_fdb_top (switch): the fields.
        sm_known, lid_known: MasterSMLID, LID is not 0; both as of the last Set that is over.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        members = {name: Out(PORT_INFO[name].width) for name in _OF_PORT}
        if isinstance(parameters, SwitchParameters):
            members["linear_fdb_top"] = Out(SWITCH_INFO["linear_fdb_top"].width, init=parameters.lft_size - 1)
        else:
            members["lmc"] = Out(PORT_INFO["lmc"].width)
        super().__init__({**members, "sm_known": Out(1), "lid_known": Out(1)})


class Settings(wiring.Component):
    """Registers besides the attribute memory.

    Members:
        steps: see `Work`.
        word: a word of a Set.
        values: the registers.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        super().__init__(
            {"steps": In(StepsSignature()), "word": In(Word), "values": Out(SettingsSignature(parameters))}
        )

    def elaborate(self, platform: object) -> Module:
        """Only whether there is a Subnet Manager to notify is seen before a Set is over."""
        m = Module()
        values, word = self.values, self.word
        names = _OF_PORT if self._is_switch else (*_OF_PORT, "lmc")
        fields = [(word.of_own_port_info, PORT_INFO, name) for name in names]
        if self._is_switch:
            fields.append((word.of_switch_info, SWITCH_INFO, "linear_fdb_top"))
        for taken, layout, name in fields:
            where = place(layout[name])
            with m.If(taken & (word.number == where.word)):
                m.d.sync += getattr(values, name).eq(where.of(word.merged))
        with m.If(self.steps.at(_COMMIT_STEP)):
            m.d.sync += [values.sm_known.eq(values.master_sm_lid != 0), values.lid_known.eq(values.lid != 0)]
        return m
