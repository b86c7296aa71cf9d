"""Matching: who sends next (docs/pipeline.md, section 7).

The contract makes a pass in every cycle. A pass can only do something for an output that became
available, or for which a head, a reader, credits, a flag or a state changed, or whose offer was
not accepted in the cycle before: each of these wakes the output, and passes are made for those
that are awake. What sleeps would have chosen nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .kernel import DECIDE, MATCH, Kernel
from .packet import Packet

if TYPE_CHECKING:
    from .queues import Input

__all__ = ["Matcher", "Output"]

_NARROW_PHASE = 1
"""A 1X output is available in cycles g with g mod 4 = 1."""


class Output(ABC):
    """What the matching sees of an output.

    Attributes:
        pitch: 1 for 4X, 4 for 1X.
        open_slots: mask of the slots whose heads may be granted at all.
        urgent, changed: flow control flags, masks of VLs.
        in_ptr, vl_ptr: rotating choices among inputs and data slots.
    """

    def __init__(self, index: int, vls: int) -> None:
        self.index = index
        self.vls = vls
        self.pitch = 1
        self.open_slots = (1 << vls + 1) - 1
        self.urgent = 0
        self.changed = 0
        self.in_ptr = 0
        self.vl_ptr = 0

    @abstractmethod
    def room(self, slot: int) -> int | None:
        """(CL - TBS) mod 4096 of a data slot, or None if its heads need no credits."""

    @abstractmethod
    def grant(self, packet: Packet, reader: int) -> None:
        """Send a packet, granted in the current cycle."""

    @abstractmethod
    def grant_flow_control(self) -> None:
        """Send a flow control packet, granted in the current cycle."""

    @abstractmethod
    def head_shown(self) -> None:
        """Another head for this output is visible from the current cycle on."""

    @abstractmethod
    def rest(self) -> None:
        """No packet was granted in the current cycle."""


class Matcher:
    """All inputs and outputs of one crossing.

    Attributes:
        heads: for each output and slot, the mask of inputs with a visible head.
        ready: mask of inputs with an available reader.
        available: mask of outputs that are idle or issue their last read (a 1X output also waits
            for its phase).
    """

    def __init__(self, kernel: Kernel, inputs: int, vls: int) -> None:
        self.kernel = kernel
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.heads: list[list[int]] = []
        self.ready = (1 << inputs) - 1
        self.available = 0
        self._vls = vls
        self._awake = 0
        self._rotations = [[(start + turn) % vls for turn in range(vls)] for start in range(vls)]

    def add_output(self, output: Output) -> None:
        """Add the output of the next index."""
        self.available |= 1 << len(self.outputs)
        self.outputs.append(output)
        self.heads.append([0] * (self._vls + 1))

    def wake(self, outputs: int) -> None:
        """Consider a mask of outputs, those that are available, in the pass of the current cycle."""
        if outputs & self.available:
            if not self._awake:
                self.kernel.at(self.kernel.now, MATCH, self._pass)
            self._awake |= outputs

    def wake_at(self, cycle: int, outputs: int) -> None:
        """Consider a mask of outputs in the pass of a cycle ahead."""
        self.kernel.at(cycle, DECIDE, self.wake, outputs)

    def output_available(self, output: int) -> None:
        """An output is available from the current cycle on, before this cycle's matching."""
        self.available |= 1 << output
        self.wake(1 << output)

    def _pass(self, _: None) -> None:
        now = self.kernel.now
        awake = self._awake & self.available
        self._awake = 0
        offers: list[Packet] = []
        while awake:
            bit = awake & -awake
            awake ^= bit
            output = self.outputs[bit.bit_length() - 1]
            if output.pitch != 1 and now & 3 != _NARROW_PHASE:
                self.wake_at(now + (_NARROW_PHASE - now & 3), bit)
                output.rest()
                continue
            packet = self._choose(output)
            if packet:
                offers.append(packet)
            else:
                output.rest()
        if len(offers) == 1:
            self._accept(offers[0])
        elif offers:
            self._settle(offers)

    def _choose(self, output: Output) -> Packet | None:
        """The packet that an output offers to send; a flow control packet it sends at once."""
        heads = self.heads[output.index]
        ready = self.ready
        vls = self._vls
        open_slots = output.open_slots
        if heads[vls] & ready and open_slots >> vls & 1:
            return self._first(output, vls, heads[vls] & ready, None)
        if output.urgent:
            output.grant_flow_control()
            return None
        for slot in self._rotations[output.vl_ptr]:
            candidates = heads[slot] & ready
            if candidates and open_slots >> slot & 1:
                packet = self._first(output, slot, candidates, output.room(slot))
                if packet:
                    return packet
        if output.changed:
            output.grant_flow_control()
        return None

    def _first(self, output: Output, slot: int, inputs: int, room: int | None) -> Packet | None:
        """The eligible head of the first input from the rotation on."""
        later = inputs >> output.in_ptr << output.in_ptr
        for group in (later, inputs ^ later):
            while group:
                bit = group & -group
                group ^= bit
                packet = self.inputs[bit.bit_length() - 1].head(output.index, slot, room)
                if packet:
                    return packet
        return None

    def _settle(self, offers: list[Packet]) -> None:
        """Each input with offers accepts one; the others try again in the next cycle."""
        outputs = len(self.outputs)
        best: dict[int, Packet] = {}
        for packet in offers:
            rival = best.get(packet.input)
            if rival is None:
                best[packet.input] = packet
                continue
            first = self.inputs[packet.input].out_ptr
            if (packet.output - first) % outputs < (rival.output - first) % outputs:
                best[packet.input], packet = packet, rival
            self.outputs[packet.output].rest()
            self.wake_at(self.kernel.now + 1, 1 << packet.output)
        for packet in best.values():
            self._accept(packet)

    def _accept(self, packet: Packet) -> None:
        source = self.inputs[packet.input]
        output = self.outputs[packet.output]
        reader = source.grant(packet)
        source.out_ptr = (packet.output + 1) % len(self.outputs)
        output.in_ptr = (packet.input + 1) % len(self.inputs)
        if packet.slot != self._vls:
            output.vl_ptr = (packet.slot + 1) % self._vls
        self.available &= ~(1 << packet.output)
        output.grant(packet, reader)
