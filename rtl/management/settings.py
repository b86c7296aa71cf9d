"""What the agent itself uses of what a Subnet Manager has set (docs/management.md, section 4.3)."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.management.attribute_memory import BLOCK_WORDS
from rtl.management.place import WORD_BITS, place
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.switch_info import SWITCH_INFO

__all__ = ["Settings"]

_OF_PORT = ("lid", "master_sm_lid", "master_sm_sl", "subnet_timeout")


class Settings(wiring.Component):
    """Registers beside the attribute memory.

    Members:
        take_port_info, take_switch_info: a word of the node's own PortInfo or of SwitchInfo is written to the memory.
        word, kept: its number, and what is written.
        commit: the Set is over.
        lid, master_sm_lid, master_sm_sl, subnet_timeout, lmc (adapter), linear_fdb_top (switch): the fields.
        sm_known: MasterSMLID is not 0; `traps_can_go`: nor is LID; both as of the last `commit`.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        top = parameters.lft_size - 1 if isinstance(parameters, SwitchParameters) else 0
        of_kind = (
            {"linear_fdb_top": Out(SWITCH_INFO["linear_fdb_top"].width, init=top)}
            if self._is_switch
            else {"lmc": Out(PORT_INFO["lmc"].width)}
        )
        super().__init__(
            {
                "take_port_info": In(1),
                "take_switch_info": In(1),
                "word": In(range(BLOCK_WORDS)),
                "kept": In(WORD_BITS),
                "commit": In(1),
                **{name: Out(PORT_INFO[name].width) for name in _OF_PORT},
                "sm_known": Out(1),
                "traps_can_go": Out(1),
                **of_kind,
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Only whether there is a Subnet Manager to tell shows before a Set is over."""
        m = Module()

        def hold(take: Signal, register: Signal, where: tuple[int, int, int]) -> None:
            word, lsb, width = where
            with m.If(take & (self.word == word)):
                m.d.sync += register.eq(self.kept[lsb : lsb + width])

        names = _OF_PORT if self._is_switch else (*_OF_PORT, "lmc")
        for name in names:
            hold(self.take_port_info, getattr(self, name), place(PORT_INFO[name]))
        if self._is_switch:
            hold(self.take_switch_info, self.linear_fdb_top, place(SWITCH_INFO["linear_fdb_top"]))
        with m.If(self.commit):
            sm_known = self.master_sm_lid != 0
            m.d.sync += [self.sm_known.eq(sm_known), self.traps_can_go.eq(sm_known & (self.lid != 0))]
        return m
