"""VCRC, LPCRC, ICRC and the trace's fingerprint, a row in each cycle (IBTA vol 1, 7.8 and 7.9.4)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.row import RowSignature
from rtl.widths import INDEX_BITS
from wire.codes import LNH
from wire.crc import (
    FINGERPRINT_POLY_REFLECTED,
    FINGERPRINT_WIDTH,
    ICRC_INIT,
    ICRC_POLY_REFLECTED,
    ICRC_RESIDUE,
    ICRC_WIDTH,
    VCRC_INIT,
    VCRC_POLY_REFLECTED,
    VCRC_RESIDUE,
    VCRC_WIDTH,
    crc_step_masks,
    icrc_masked,
)
from wire.headers import BTH, GRH, LRH
from wire.symbols import LANES, Control

__all__ = [
    "IcrcCheck",
    "VcrcCheck",
    "fingerprint_step",
    "icrc_masks",
    "icrc_step",
    "lanes_of",
    "vcrc_begun",
    "vcrc_step",
]

_BYTE_BITS = 8


def lanes_of(row_data: Value) -> list[Value]:
    """The four bytes of a row's 32 data bits, lane 0 first."""
    return [row_data[8 * lane : 8 * lane + 8] for lane in reversed(range(LANES))]


def _step(m: Module, poly_reflected: int, width: int, state: Value, taken: list[Value]) -> Signal:
    # What meets the register as it shifts out is added to it first: less is read. One signal for all that is read, of
    # which each bit of the result masks its own: it is put together once.
    bits = Cat(taken)
    read = Signal(max(width, len(bits)))
    after = Signal(width)
    masks = crc_step_masks(poly_reflected, width, len(bits))
    m.d.comb += [
        read.eq(Cat(state ^ bits[:width], bits[width:])),
        after.eq(Cat((read & (of_state | of_data >> width << width)).xor() for of_state, of_data in masks)),
    ]
    return after


def vcrc_step(m: Module, state: Value, taken: list[Value]) -> Signal:
    """The 16-bit VCRC (or LPCRC) register after these bytes, first byte on the wire first.

    The register starts from `wire.crc.VCRC_INIT`; its complement, low byte first, is the VCRC.
    """
    return _step(m, VCRC_POLY_REFLECTED, VCRC_WIDTH, state, taken)


def _before_zeros(state: int, bits: int) -> int:
    """The VCRC register that so many bits of 0 turn into STATE."""
    for _ in range(bits):
        shifted_out = state >> VCRC_WIDTH - 1
        state = (state ^ shifted_out * VCRC_POLY_REFLECTED) << 1 | shifted_out
    return state


def _behind_good() -> int:
    """The VCRC register after a right VCRC and EGP."""
    behind = 0
    for place, (of_state, of_data) in enumerate(crc_step_masks(VCRC_POLY_REFLECTED, VCRC_WIDTH, _BYTE_BITS)):
        behind |= ((VCRC_RESIDUE & of_state).bit_count() + (Control.EGP & of_data).bit_count() & 1) << place
    return behind


def vcrc_begun(state: Value, begins: Value, lanes: list[Value]) -> tuple[Value, list[Value]]:
    """Register and lanes of a row, or of one with which a packet begins: as if its lane 0 were there and led to it."""
    before = Const(_before_zeros(VCRC_INIT, _BYTE_BITS), VCRC_WIDTH)
    return Mux(begins, before, state), [Mux(begins, 0, lanes[0]), *lanes[1:]]


def icrc_step(m: Module, state: Value, taken: list[Value]) -> Signal:
    """The 32-bit ICRC register after these bytes, first byte on the wire first."""
    return _step(m, ICRC_POLY_REFLECTED, ICRC_WIDTH, state, taken)


def fingerprint_step(m: Module, state: Value, taken: list[Value]) -> Signal:
    """The 32-bit register of the trace's fingerprint after these bytes.

    It starts from `wire.crc.FINGERPRINT_INIT`; its complement is the fingerprint.
    """
    return _step(m, FINGERPRINT_POLY_REFLECTED, FINGERPRINT_WIDTH, state, taken)


class VcrcCheck(wiring.Component):
    """Says of every row that ends with EGP whether it closes its packet with a right VCRC or LPCRC.

    A packet begins with any row that has a control symbol on lane 0, of which lanes 1..3 count.

    Members:
        row: the wires, in cycle c.
        good: the row at c is an end row with EGP, and the right CRC on the lanes before it; in cycle c+1.
    """

    row: In(RowSignature)
    good: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Build the check."""
        m = Module()
        state = Signal(VCRC_WIDTH)
        before, lanes = vcrc_begun(state, self.row.k[LANES - 1], lanes_of(self.row.data))
        after = vcrc_step(m, before, lanes)
        with m.If(self.row.valid):
            m.d.sync += [state.eq(after), self.good.eq(after == _behind_good())]
        return m


def icrc_masks(lnh: LNH, before: int = 0) -> dict[int, int]:
    """What counts as ones in each 32-bit word of a packet with this LNH, by index, the first byte highest.

    `before`: bytes in word 0 before the packet.
    """
    packet = LRH.pack(lnh=lnh) + bytes(GRH.size_bytes + BTH.size_bytes)
    ones = bytes(before) + bytes(a ^ b for a, b in zip(icrc_masked(packet), packet, strict=True)) + bytes(3)
    words = [int.from_bytes(ones[at : at + LANES], "big") for at in range(0, len(ones) - 3, LANES)]
    return {index: mask for index, mask in enumerate(words) if mask}


class IcrcCheck(wiring.Component):
    """Says of every row whether, taken as an end row, it closes its packet with a right ICRC.

    The masks (IBTA vol 1, 7.8) are those of LNH 2 and 3; of other packets `good` means nothing.

    Members:
        row: the wires, in cycle c.
        index: the index in its packet of the row at c, 0 on the first.
        good: lane 0 of the row at c is the last byte of the right ICRC; in cycle c+1.
    """

    row: In(RowSignature)
    index: In(INDEX_BITS)
    good: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Build the check."""
        m = Module()
        # Row 0 has SDP before byte 0.
        local, with_grh = icrc_masks(LNH.IBA_LOCAL, before=1), icrc_masks(LNH.IBA_GLOBAL, before=1)
        lnh_at = LRH["lnh"].lsb_in_span + 8 * (LRH["dlid"].byte - LRH["lnh"].byte)
        lnh_on_wires = self.row.data[lnh_at]
        lnh = Signal()
        has_grh = Signal()
        is_first = self.row.k[LANES - 1]
        m.d.comb += has_grh.eq(Mux(is_first, lnh_on_wires, lnh))

        ones = Signal(8 * LANES)
        with m.Switch(Mux(is_first, 0, self.index)):
            for index in sorted({*local, *with_grh}):
                with m.Case(index):
                    m.d.comb += ones.eq(Mux(has_grh, with_grh.get(index, 0), local.get(index, 0)))

        lanes = lanes_of(self.row.data | ones)
        state = Signal(ICRC_WIDTH)
        first = icrc_step(m, Const(ICRC_INIT, ICRC_WIDTH), lanes[1:])
        following = icrc_step(m, state, lanes)
        closing = icrc_step(m, state, lanes[:1])
        with m.If(self.row.valid):
            m.d.sync += [
                lnh.eq(has_grh),
                state.eq(Mux(is_first, first, following)),
                self.good.eq(closing == ICRC_RESIDUE),
            ]
        return m
