"""How a packet leaves the agent: its headers' new fields, and by which port (docs/management.md, sections 3 to 6)."""

from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import lanes_of
from rtl.management.mad_head import MadHead, mad_place
from rtl.management.mad_packet import BTH_START, DETH_START, MAD_START, MAD_WORDS
from rtl.management.packet_memory import PacketWrite, bytes_of
from rtl.management.place import WORD_BITS, place
from rtl.management.smi import Goes, Hop, Way
from rtl.management.step import STEP_BITS
from rtl.widths import PORT_BITS
from wire.codes import LID_PERMISSIVE, QP_GSI
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE
from wire.headers import BTH, DETH, LRH
from wire.mad import MadMethod
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters
from wire.smp import SMP_DIRECTED_ROUTE, SMP_PATH

__all__ = ["Departure"]

_PORT_BITS: Final = LINEAR_FORWARDING_TABLE.entry.width
_HOP_BITS: Final = SMP_DIRECTED_ROUTE["hop_pointer"].width
_PATH_WORDS: Final = tuple(
    (MAD_START + SMP_DIRECTED_ROUTE[name].byte) // WORD_BYTES for name in ("initial_path", "return_path")
)
_PLACE_BITS: Final = (WORD_BYTES - 1).bit_length()
_ENTRY_BITS: Final = (SMP_PATH.count - 1).bit_length()
# The port of a path is read before, that of the LFT is back by then.
_RECORD_STEP: Final = 1
_PATH_STEP: Final = 4
_PORT_STEP: Final = 7
_OUTPUT_STEP: Final = 8
_DEST_QP_STEP: Final = 9
_SRC_QP_STEP: Final = 10


class Departure(wiring.Component):
    """Follows the steps of one packet.

    Members:
        go, step: the step in this cycle.
        way: where it goes, from step 1 on; `answers`: it is an answer, `trap`: a trap, else it is only passed on;
            `pma`: an answer is the PMA's.
        head, arrival: of the packet that came. `record`: the port it came in by is written into it, in step 1.
        lid, master_sm_lid, linear_fdb_top (switch): as set. `status`: an answer's, in the last slot.
        last_slot: this step is one of the last 8.
        dlid, route: the new DLID, and whether the LFT is asked for it; from step 1 on.
        path_word: the packet's word with the entry of the path, from step 1 on; `word`: that word, in step 4.
        read: the LFT's entry, in step 7.
        write: to the packet.
        port: it leaves by, from step 8 on.
        to_output: one-hot or none, from step 9 on.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        self._lft_size = parameters.lft_size if isinstance(parameters, SwitchParameters) else 0
        super().__init__(
            {
                "go": In(1),
                "step": In(STEP_BITS),
                "last_slot": In(1),
                "way": In(Way),
                "answers": In(1),
                "pma": In(1),
                "trap": In(1),
                "head": In(MadHead),
                "arrival": In(PORT_BITS),
                "record": In(1),
                "lid": In(16),
                "master_sm_lid": In(16),
                "linear_fdb_top": In(16),
                "status": In(8),
                "dlid": Out(16),
                "route": Out(1),
                "path_word": Out(range(MAD_WORDS)),
                "word": In(WORD_BITS),
                "read": In(_PORT_BITS),
                "write": Out(PacketWrite),
                "port": Out(_PORT_BITS),
                "to_output": Out(self._ports if self._is_switch else 2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """New fields, port, writes."""
        m = Module()
        head, way, step = self.head, self.way, self.step
        by_path, by_route = way.goes == Goes.PATH, way.goes == Goes.ROUTE
        passed_on = ~self.answers & ~self.trap

        # New fields.
        new_slid = Signal(16)
        with m.If(self.trap):
            m.d.comb += [self.dlid.eq(self.master_sm_lid), new_slid.eq(self.lid)]
        with m.Elif(self.answers):
            m.d.comb += [self.dlid.eq(head.slid), new_slid.eq(Mux(by_route & head.directed, self.lid, head.dlid))]
        with m.Elif(by_path):
            m.d.comb += [self.dlid.eq(LID_PERMISSIVE), new_slid.eq(LID_PERMISSIVE)]
        with m.Else():
            m.d.comb += [self.dlid.eq(Mux(head.d, head.dr_slid, head.dr_dlid)), new_slid.eq(self.lid)]
        hop = Signal(_HOP_BITS)
        with m.Switch(way.hop):
            with m.Case(Hop.NEXT):
                m.d.comb += hop.eq(head.hop_pointer + 1)
            with m.Case(Hop.BACK):
                m.d.comb += hop.eq(head.hop_pointer - 1)
            with m.Case(Hop.COUNT):
                m.d.comb += hop.eq(head.hop_count)
            with m.Default():
                m.d.comb += hop.eq(head.hop_pointer)

        # The port.
        initial, returning = _PATH_WORDS
        outward = passed_on & ~head.d
        m.d.comb += [
            self.route.eq(by_route & (self.dlid < self._lft_size)),
            self.path_word.eq(Mux(outward, initial, returning) + hop[_PLACE_BITS:_ENTRY_BITS]),
        ]
        port = self.port
        with m.If(self.go & (step == _PATH_STEP)):
            entry = Array(lanes_of(self.word))[hop[:_PLACE_BITS]]
            m.d.sync += port.eq(Mux(by_path, entry, self.arrival))
        with m.If(self.go & (step == _PORT_STEP) & by_route):
            m.d.sync += port.eq(self.read)
        by_port = by_path | (way.goes == Goes.RETURN)
        with m.If(self.go & (step == _OUTPUT_STEP)):
            if self._is_switch:
                leaves = by_port | (self.route & (self.dlid <= self.linear_fdb_top))
                m.d.sync += self.to_output.eq(Cat(leaves & (port == 1 + output) for output in range(self._ports)))
            else:
                to_link = by_route | (way.goes == Goes.LINK) | (by_port & (port == 1))
                m.d.sync += self.to_output.eq(Cat(to_link, way.goes == Goes.HOST))

        # Writes.
        new_lids = ~passed_on | by_path | by_route
        dlid, slid, method = place(LRH["dlid"]), place(LRH["slid"]), mad_place("method")
        d, status, hop_pointer = mad_place("d"), mad_place("status"), mad_place("hop_pointer")
        dest_qp, src_qp = place(BTH["dest_qp"], BTH_START), place(DETH["src_qp"], DETH_START)
        write = self.write
        with m.If(self.go & (step == _RECORD_STEP) & self.record & ~self.trap):
            m.d.comb += [
                write.bytes.eq(1 << ~head.hop_pointer[:_PLACE_BITS]),
                write.index.eq(returning + head.hop_pointer[_PLACE_BITS:_ENTRY_BITS]),
                write.word.eq(Cat(*[Cat(self.arrival, Const(0, 8 - PORT_BITS))] * WORD_BYTES)),
            ]
        with m.If(self.go & self.pma & (step == _DEST_QP_STEP)):
            m.d.comb += [
                write.bytes.eq(bytes_of(dest_qp)),
                write.index.eq(dest_qp.word),
                write.word.eq(head.src_qp << dest_qp.lsb),
            ]
        with m.If(self.go & self.pma & (step == _SRC_QP_STEP)):
            m.d.comb += [
                write.bytes.eq(bytes_of(src_qp)),
                write.index.eq(src_qp.word),
                write.word.eq(src_qp.put(QP_GSI)),
            ]
        with m.If(self.go & self.last_slot), m.Switch(step[:3]):
            with m.Case(0):
                m.d.comb += [
                    write.bytes.eq(Mux(new_lids, bytes_of(dlid), 0)),
                    write.index.eq(dlid.word),
                    write.word.eq(self.dlid << dlid.lsb),
                ]
            with m.Case(1):
                m.d.comb += [
                    write.bytes.eq(Mux(new_lids, bytes_of(slid), 0)),
                    write.index.eq(slid.word),
                    write.word.eq(new_slid << slid.lsb),
                ]
            with m.Case(2):
                m.d.comb += [
                    write.bytes.eq(Mux(self.answers, bytes_of(method), 0)),
                    write.index.eq(method.word),
                    write.word.eq(MadMethod.GET_RESP << method.lsb),
                ]
            with m.Case(3):
                # The byte of the HopPointer in a MAD that has none is written as it was.
                m.d.comb += [
                    write.bytes.eq(
                        Mux(self.trap, 0, Mux(self.answers, bytes_of(d, status, hop_pointer), bytes_of(hop_pointer)))
                    ),
                    write.index.eq(hop_pointer.word),
                    write.word.eq(head.directed << d.lsb | self.status << status.lsb | hop << hop_pointer.lsb),
                ]
        return m
