"""How a packet leaves the agent: its headers' new fields, its port and slot (docs/management.md, sections 3 to 6)."""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.link.crc import lanes_of
from rtl.management.attribute import Word
from rtl.management.mad_head import mad_place
from rtl.management.mad_packet import BTH_START, DETH_START, GRH_WORD, MAD_START, MAD_WORDS
from rtl.management.place import WORD_BITS, PacketWrite, Place, bytes_of, part_of, place, word_of
from rtl.management.settings import SettingsSignature
from rtl.management.smi import Goes, Hop
from rtl.management.task import ANSWER_SLOT, SET_SLOT, SLOT_STEPS, Stage
from rtl.widths import PORT_BITS, SLOT_BITS
from wire.codes import LID_PERMISSIVE, QP_GSI
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE
from wire.headers import BTH, DETH, GRH, LRH
from wire.mad import MadMethod
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_tables import SL_TO_VL_MAPPING_TABLE
from wire.smp import SMP_DIRECTED_ROUTE, SMP_PATH

__all__ = ["Departure", "Route"]

_PORT_BITS: Final = LINEAR_FORWARDING_TABLE.entry.width
_HOP_BITS: Final = SMP_DIRECTED_ROUTE["hop_pointer"].width
_INITIAL_PATH: Final = word_of(SMP_DIRECTED_ROUTE["initial_path"], MAD_START)
_RETURN_PATH: Final = word_of(SMP_DIRECTED_ROUTE["return_path"], MAD_START)
_PLACE_BITS: Final = (WORD_BYTES - 1).bit_length()
_ENTRY_BITS: Final = (SMP_PATH.count - 1).bit_length()
_SL_ENTRY: Final = SL_TO_VL_MAPPING_TABLE.entry.width
_SL_OF_WORD: Final = WORD_BITS // _SL_ENTRY
_SL_PLACE_BITS: Final = (_SL_OF_WORD - 1).bit_length()
# The port of a path is read before, that of the LFT is back by then.
_RECORD_STEP: Final = 0
_PATH_STEP: Final = 4
_PORT_STEP: Final = 7
_OUTPUT_STEP: Final = 8
_DEST_QP_STEP: Final = 9
_SRC_QP_STEP: Final = 10
_HOP_LIMIT_STEP: Final = 11
# Places in the last slot: behind the last writes of the slot before. The LRH's words are read soonest.
_DLID_STEP: Final = 3
_SLID_STEP: Final = 4
_METHOD_STEP: Final = 5
_HEADER_STEP: Final = 6

Route: Final = wiring.Signature({"lid": Out(16), "wanted": Out(1)})
"""An entry of the LFT; `wanted`: the LFT has it, and the packet goes by it."""


class Departure(Stage):
    """Follows the steps of one packet.

    Members:
        settings: see `Settings`. `trap_lid`: where a trap goes, from step 1 on.
        status: an answer's, in the last slot.
        route: for the new DLID, from step 1 on. `read`: the LFT's entry, in step 7.
        path_word: the packet's word with the entry of the path, from step 1 on; `packet_word`: that word, in step 4.
        write: to the packet, in the cycle after the step that it belongs to.
        port: it leaves by, from step 8 on.
        to_output: one-hot or none, from step 9 on.
        word: of a PMA's answer, in the slots for it, of the SLtoVLMappingTable; of a CC answer, and of congestion
            control's trap, before them.
        slot: VL15's for an SMP or its trap; for a GMP that leaves by a link the VL of its SL.
        leaves: there is an output for it, and the slot; in the last step.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        super().__init__(
            parameters,
            settings=In(SettingsSignature(parameters)),
            trap_lid=In(LRH["dlid"].width),
            status=In(8),
            route=Out(Route),
            read=In(_PORT_BITS),
            path_word=Out(range(MAD_WORDS)),
            packet_word=In(WORD_BITS),
            write=Out(PacketWrite),
            port=Out(_PORT_BITS),
            to_output=Out(parameters.ports if isinstance(parameters, SwitchParameters) else 2),
            word=In(Word),
            slot=Out(SLOT_BITS),
            leaves=Out(1),
        )

    def elaborate(self, platform: object) -> Module:
        """New fields, port, slot, writes."""
        m = Module()
        goes = self.task.way.goes
        passed_on = ~self.task.answers & ~self.task.trap
        by_path, by_route = goes == Goes.PATH, goes == Goes.ROUTE
        new_slid = self._new_lids(m, by_path, by_route)
        hop = Signal(_HOP_BITS, name="new_hop_pointer")

        path = Mux(passed_on & ~self.task.head.d, _INITIAL_PATH, _RETURN_PATH)
        pointer = self.task.head.hop_pointer
        hops = {Hop.KEEP: pointer, Hop.NEXT: pointer + 1, Hop.BACK: pointer - 1, Hop.COUNT: self.task.head.hop_count}
        m.d.comb += [
            hop.eq(Array(hops[change] for change in Hop)[self.task.way.hop]),
            self.route.wanted.eq(by_route & below(self.route.lid, self._lft_size)),
            self.path_word.eq(path + hop[_PLACE_BITS:_ENTRY_BITS]),
        ]
        self._find_port(m, by_path, by_route, hop)
        self._find_slot(m)

        m.d.sync += self.write.eq(0)
        self._write_early(m)
        self._write_in_last_slot(m, ~passed_on | by_path | by_route, new_slid, hop)
        return m

    def _new_lids(self, m: Module, by_path: Value, by_route: Value) -> Signal:
        task, head, settings, dlid = self.task, self.task.head, self.settings, self.route.lid
        slid = Signal(16, name="new_slid")
        with m.If(task.trap):
            m.d.comb += [dlid.eq(self.trap_lid), slid.eq(settings.lid)]
        with m.Elif(task.answers):
            m.d.comb += [dlid.eq(head.slid), slid.eq(Mux(by_route & head.directed, settings.lid, head.dlid))]
        with m.Elif(by_path):
            m.d.comb += [dlid.eq(LID_PERMISSIVE), slid.eq(LID_PERMISSIVE)]
        with m.Else():
            m.d.comb += [dlid.eq(Mux(head.d, head.dr_slid, head.dr_dlid)), slid.eq(settings.lid)]
        return slid

    def _find_port(self, m: Module, by_path: Value, by_route: Value, hop: Value) -> None:
        steps, route, port, goes = self.steps, self.route, self.port, self.task.way.goes
        with m.If(steps.at(_PATH_STEP)):
            entry = Array(lanes_of(self.packet_word))[hop[:_PLACE_BITS]]
            m.d.sync += port.eq(Mux(by_path, entry, self.task.head.arrival))
        with m.If(steps.at(_PORT_STEP) & by_route):
            m.d.sync += port.eq(self.read)
        by_port = by_path | (goes == Goes.RETURN)
        leaves = Signal()
        if self._is_switch:
            m.d.sync += leaves.eq(by_port | (route.wanted & (route.lid <= self.settings.linear_fdb_top)))
        with m.If(steps.at(_OUTPUT_STEP)):
            if self._is_switch:
                m.d.sync += self.to_output.eq(Cat(leaves & (port == 1 + output) for output in range(self._ports)))
            else:
                to_link = by_route | (goes == Goes.LINK) | (by_port & (port == self.task.head.arrival))
                m.d.sync += self.to_output.eq(Cat(to_link, goes == Goes.HOST))

    def _find_slot(self, m: Module) -> None:
        steps, task, head, word = self.steps, self.task, self.task.head, self.word
        place_in_word, number = task.sl[:_SL_PLACE_BITS], task.sl[_SL_PLACE_BITS:]
        there = steps.at_in_slot(0) & steps.of_slot.in_answer & (word.number == number) & ~task.congestion
        there |= steps.at(SLOT_STEPS * ANSWER_SLOT - 1) & task.congestion
        there = (there & task.gmp) | (steps.at(SLOT_STEPS * SET_SLOT) & task.gmp_trap)
        with m.If(steps.first):
            m.d.sync += self.slot.eq(Mux(task.gmp, head.slot, self._parameters.vls))
        with m.Elif(there & ~task.from_host):
            m.d.sync += self.slot.eq(part_of(word.kept, place_in_word))
        on_vl15 = ~task.gmp & ~task.gmp_trap
        m.d.comb += self.leaves.eq(self.to_output.any() & (on_vl15 | below(self.slot, self._parameters.vls)))

    def _write(self, m: Module, where: Place, in_word: Value | int, word: Value | int) -> None:
        m.d.sync += [self.write.bytes.eq(in_word), self.write.index.eq(where.word), self.write.word.eq(word)]

    def _write_early(self, m: Module) -> None:
        """The entry of ReturnPath; a PMA's queue pairs, and its GRH's HopLmt, if it has one."""
        steps, head, write = self.steps, self.task.head, self.write
        dest_qp, src_qp = place(BTH["dest_qp"], BTH_START), place(DETH["src_qp"], DETH_START)
        hop_limit = place(GRH["hop_lmt"], WORD_BYTES * GRH_WORD)
        with m.If(steps.at(_RECORD_STEP) & self.task.record):
            m.d.sync += [
                write.bytes.eq(1 << ~head.hop_pointer[:_PLACE_BITS]),
                write.index.eq(_RETURN_PATH + head.hop_pointer[_PLACE_BITS:_ENTRY_BITS]),
                write.word.eq(Cat(*[Cat(head.arrival, Const(0, 8 - PORT_BITS))] * WORD_BYTES)),
            ]
        with m.If(steps.at(_DEST_QP_STEP) & self.task.gmp):
            self._write(m, dest_qp, bytes_of(dest_qp), head.src_qp << dest_qp.lsb)
        with m.If(steps.at(_SRC_QP_STEP) & self.task.gmp):
            self._write(m, src_qp, bytes_of(src_qp), src_qp.put(QP_GSI))
        with m.If(steps.at(_HOP_LIMIT_STEP) & self.task.gmp):
            self._write(m, hop_limit, bytes_of(hop_limit), hop_limit.mask)

    def _write_in_last_slot(self, m: Module, new_lids: Value, new_slid: Value, hop: Value) -> None:
        """LIDs and the MAD's header. The byte of the HopPointer in a MAD that has none is written as it was."""
        task, head, steps = self.task, self.task.head, self.steps
        dlid, slid, method = place(LRH["dlid"]), place(LRH["slid"]), mad_place("method")
        d, status, hop_pointer = mad_place("d"), mad_place("status"), mad_place("hop_pointer")
        of_header = Mux(task.answers, bytes_of(d, status, hop_pointer), bytes_of(hop_pointer))
        header = head.directed << d.lsb | self.status << status.lsb | hop << hop_pointer.lsb
        with m.If(steps.go & steps.last_slot), m.Switch(steps.in_slot):
            with m.Case(_DLID_STEP):
                self._write(m, dlid, Mux(new_lids, bytes_of(dlid), 0), self.route.lid << dlid.lsb)
            with m.Case(_SLID_STEP):
                self._write(m, slid, Mux(new_lids, bytes_of(slid), 0), new_slid << slid.lsb)
            with m.Case(_METHOD_STEP):
                self._write(m, method, Mux(task.answers, bytes_of(method), 0), MadMethod.GET_RESP << method.lsb)
            with m.Case(_HEADER_STEP):
                self._write(m, hop_pointer, Mux(task.trap, 0, of_header), header)
