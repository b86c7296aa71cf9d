"""Matching: who sends next (docs/pipeline.md, section 7).

The contract makes a pass in every cycle. A pass can only do something for an output that became
available, as it does after an offer that was not accepted, or for which a head, a reader, credits,
a flag or a state changed: each of these wakes the output, and passes are made for those that are
awake. What sleeps would have chosen nothing.

Outputs make offers in a cycle g, inputs accept in the next. What an input goes by then is known at
g: the heads that were eligible, the readers that were free, and pointers that nothing but
acceptances moves. So the pass of g does both.

What happens while an output is busy is not looked at before it is available again: heads for it
are shown then, and its flow control flags computed.
"""

from typing import Final

from wire.flow_control import CREDIT_WINDOW

from ..kernel import MATCH, NEVER, Kernel
from ..packet import DataTransmission, Packet, Transmission
from .backlog import LARGEST_NEED, Backlog
from .output import SWALLOWED, Output
from .queues import Input

__all__ = ["Matcher"]

# In the compiled model, what is said to be final takes less time than what is imported.
_WINDOW: Final[int] = CREDIT_WINDOW
_OFFER_CYCLES: Final = 2
"""Cycles from an offer that is not accepted until its output is available again."""
_ORDER_LATENCY: Final = 5
"""Cycles from a grant until the VL order follows from the pointer that it moved."""
_NARROW_PHASE: Final = 0
"""A 1X output is available in cycles g with g mod 4 = 0."""


class _Pass:
    """A pass that is to be made.

    Attributes:
        awake: mask of the outputs to consider.
        read: what is read up to its last row in that cycle.
    """

    __slots__ = ("awake", "read")

    def __init__(self) -> None:
        self.awake = 0
        self.read: list[Transmission] = []


class Matcher:
    """All inputs and outputs of one crossing.

    Attributes:
        size: how many inputs it has, and how many outputs.
        epoch: the node's cycle 0.
        heads: for each output and slot, the mask of inputs with a visible head.
        ready: mask of inputs with an available reader.
        available: mask of outputs that are idle or issue their last read (a 1X output also waits
            for its phase).
    """

    def __init__(self, kernel: Kernel, size: int, vls: int, epoch: int = 0) -> None:
        self.kernel = kernel
        self.epoch = epoch
        self.size = size
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.heads: list[list[int]] = []
        self.ready = (1 << size) - 1
        self.available = 0
        self._vls = vls
        self._passes: dict[int, _Pass] = {}  # by their cycles
        self._pass_event = self._pass  # bound once, as binding takes longer than the call in the compiled model
        self._unready = 0  # outputs with heads that wait for a reader
        self._refused = 0  # outputs whose offers of a cycle were not accepted
        self._refused_at = -1  # that cycle
        self._rotations = [[(start + turn) % vls for turn in range(vls)] for start in range(vls)]

    def add(self, source: Input, output: Output) -> None:
        """Add the input and the output of the next index."""
        self.inputs.append(source)
        self.available |= output.bit
        self.outputs.append(output)
        self.heads.append([0] * (self._vls + 1))

    # What happens at inputs and outputs.

    def wake_at(self, cycle: int, outputs: int) -> None:
        """Consider a mask of outputs in the pass of a cycle, the current one or one ahead."""
        self._pass_in(cycle).awake |= outputs

    def _pass_in(self, cycle: int) -> _Pass:
        """The pass of a cycle, the current one or one ahead; there is one from now on."""
        its_pass = self._passes.get(cycle)
        if its_pass is None:
            its_pass = self._passes[cycle] = _Pass()
            self.kernel.at(cycle, MATCH, self._pass_event, its_pass)
        return its_pass

    def wake(self, outputs: int) -> None:
        """Consider a mask of outputs, those that are available, in the pass of the current cycle."""
        if outputs & self.available:
            self.wake_at(self.kernel.now, outputs)

    def wake_for_swallowing(self, outputs: int) -> None:
        """Heads of a mask of outputs may be swallowed from the current cycle on.

        From the next on, if the last packet of their queue ends in this one, which may have been told before.
        """
        if outputs & self.available:
            self.wake_at(self.kernel.now, outputs)
            self.wake_at(self.kernel.now + 1, outputs)

    def waits_since(self, output: int, slot: int) -> int:
        """The first cycle in which one of the heads shown for (output, slot) was visible; NEVER if there is none."""
        inputs = self.heads[output][slot]
        since = NEVER
        while inputs:
            bit = inputs & -inputs
            inputs ^= bit
            since = min(since, self.inputs[bit.bit_length() - 1].waits_since(output, slot))
        return since

    def join(self, packet: Packet, cycle: int) -> None:
        """A packet joins its input's queue in a cycle e, the current one (before its matching) or one ahead."""
        packet.join_at = cycle
        source = self.inputs[packet.input]
        queue = packet.queue = source.queue_of(packet)
        queue.append(packet)
        if packet.copies is None:
            backlog = self.outputs[packet.output].backlog
            if backlog is not None:
                backlog.join(packet, cycle)
        if len(queue) == 1:
            self._first_in_queue(packet)

    def ended(self, packet: Packet) -> None:
        """A packet that joined a queue has ended: grants of the next cycle on may swallow the queue's head."""
        following = self.kernel.now + 1
        packet.ended_from = following
        queue = packet.queue
        if queue:  # it is the last one there, if it has not left: what comes behind it joins later
            head = queue[0]
            for one in (head,) if head.copies is None else head.copies.left:
                output = self.outputs[one.output]
                gate, slot = output.gate, one.slot
                if one.oversize or one.is_rejected or (gate.open_slots >> slot & 1 and gate.room(slot) == SWALLOWED):
                    self.wake_at(following, output.bit)

    def _advance(self, packet: Packet) -> None:
        """The packet behind one that was granted is its queue's first, unless a copy of that one is left."""
        if packet.copies is not None:
            packet.copies.left.remove(packet)
            if packet.copies.left:
                return
        queue = packet.queue
        assert queue is not None
        queue.popleft()
        self.inputs[packet.input].left(queue)
        if queue:
            self._first_in_queue(queue[0])

    def _first_in_queue(self, packet: Packet) -> None:
        """A packet, or each of its copies, will be a visible head; if it is guarded, when it has been inspected."""
        source = self.inputs[packet.input]
        packet.visible_from = source.first_visible(packet)
        if packet.copies is None:
            self._coming(packet)
        elif packet.copies.are_guarded:
            assert source.inspection is not None
            source.inspection.wait(packet)
        else:
            self.copies_coming(packet)

    def copies_coming(self, packet: Packet) -> None:
        """Each of a packet's copies will be a visible head, from its `visible_from` on."""
        assert packet.copies is not None
        packet.copies.become_heads()
        for copy in packet.copies.left:
            self._coming(copy)

    def _coming(self, packet: Packet) -> None:
        """A packet will be a visible head."""
        output = self.outputs[packet.output]
        output.coming.append(packet)
        if packet.visible_from > output.busy_until:
            self.wake_at(packet.visible_from, output.bit)

    def reads(self, sending: Transmission) -> None:
        """The output and the reader of a packet granted in the current cycle are busy until its last read."""
        self._pass_in(sending.last_read).read.append(sending)

    def done(self, sending: Transmission) -> int:
        """Make an output, and the reader of its packet, available: returns the outputs to consider."""
        bit = 1 << sending.output
        self.available |= bit
        if isinstance(sending, DataTransmission):
            bit |= self.reader_done(sending)
        return bit

    def reader_done(self, sending: DataTransmission) -> int:
        """Make the reader of a packet available: returns the outputs that may have waited for it."""
        source = self.inputs[sending.packet.input]
        source.readers |= sending.reader
        self.ready |= source.bit
        return self._unready

    def release(self, sending: DataTransmission, asked: int) -> None:
        """Return the blocks of a packet, which its reader asks for in a cycle; of copies the last that is done does."""
        packet, reader = sending.packet, sending.reader
        if packet.copies is not None:
            reader = packet.copies.done(reader, asked)
            if not reader:
                return
        self.inputs[packet.input].buffer.release(reader, packet, asked)

    # The pass.

    def _pass(self, this: _Pass) -> None:
        now = self.kernel.now
        del self._passes[now]
        awake = this.awake
        for sending in this.read:
            if sending.last_read == now:  # an early end may have come before it
                awake |= self.done(sending)
                if isinstance(sending, DataTransmission):
                    self.outputs[sending.output].last_read(sending)
        if self._refused_at == now - 1:  # they are awake in the next cycle
            awake &= ~self._refused
        offers: list[Packet] = []
        while awake:
            bit = awake & -awake
            awake ^= bit
            output = self.outputs[bit.bit_length() - 1]
            if output.coming:
                self._show(output, now)
            if not self.available & bit:
                continue
            if output.pitch != 1 and now - self.epoch & 3 != _NARROW_PHASE:
                self.wake_at(now + (_NARROW_PHASE - (now - self.epoch) & 3), bit)
                output.rest()
                continue
            if output.backlog is not None:
                self._look_for_starved(output, output.backlog, now)
            packet = self._choose(output, now)
            if packet is None:
                output.rest()
            else:
                offers.append(packet)
        if len(offers) > 1:
            offers = self._accepted(offers)
        for packet in offers:
            self._grant(packet)

    def _show(self, output: Output, now: int) -> None:
        """Show the heads that came."""
        later: list[Packet] = []
        seen_from = output.seen_from
        for packet in output.coming:
            if packet.visible_from <= now:
                seen_from[packet.slot] = min(seen_from[packet.slot], packet.visible_from)
                source = self.inputs[packet.input]
                source.show(packet)
                self.heads[packet.output][packet.slot] |= source.bit
            else:
                later.append(packet)
                self.wake_at(packet.visible_from, output.bit)
        shown = len(output.coming) - len(later)
        output.coming = later
        if shown:
            output.heads_shown(shown)

    def _look_for_starved(self, output: Output, backlog: Backlog, now: int) -> None:
        """Note the data slots of an available output with a head that waits for credits (section 7.3)."""
        heads, starved_from, gate = self.heads[output.index], backlog.starved_from, output.gate
        for slot in range(self._vls):
            inputs = heads[slot]
            if not inputs or starved_from[slot] != NEVER or not gate.open_slots >> slot & 1:
                continue
            room = gate.room(slot)
            assert room is not None  # data needs credits
            if room == SWALLOWED or LARGEST_NEED <= room <= _WINDOW:
                continue
            while inputs:
                bit = inputs & -inputs
                inputs ^= bit
                if self.inputs[bit.bit_length() - 1].starves(output.index, slot, room):
                    starved_from[slot] = now + 1
                    break

    def _choose(self, output: Output, now: int) -> Packet | None:
        """The packet that an output offers to send; a flow control packet it sends at once."""
        heads = self.heads[output.index]
        ready = self.ready
        vls = self._vls
        open_slots = output.gate.open_slots
        flags = output.flags
        unready = False
        management = heads[vls]
        if management:
            if management & ready:
                packet = self._first(output, vls, management & ready, output.gate.room(vls))
                if packet:
                    return packet
            unready = management & ~ready != 0
        if flags.stale_from < now:
            flags.compute()
        if flags.urgent:
            self._grant_flow_control(output)
            return None
        order = self._rotations[output.vl_ptr if output.vl_ptr_from <= now else output.vl_ptr_before]
        if output.arbitration is not None:
            order = output.arbitration.order(order)
        for slot in order:
            inputs = heads[slot]
            if inputs:
                if inputs & ready and open_slots >> slot & 1:
                    packet = self._first(output, slot, inputs & ready, output.gate.room(slot))
                    if packet:
                        return packet
                unready = unready or inputs & ~ready != 0
        if flags.changed:
            self._grant_flow_control(output)
            return None
        if flags.stale_from != NEVER:
            self.wake_at(max(flags.stale_from, now) + 1, output.bit)
        if unready:
            self._unready |= output.bit
        else:
            self._unready &= ~output.bit
        return None

    def _grant_flow_control(self, output: Output) -> None:
        self.available ^= output.bit
        output.grant_flow_control()

    def _first(self, output: Output, slot: int, inputs: int, room: int | None) -> Packet | None:
        """The eligible head of the first input from the rotation on."""
        index, in_ptr = output.index, output.in_ptr[slot]
        while inputs:
            bit = inputs >> in_ptr << in_ptr or inputs
            bit &= -bit
            inputs ^= bit
            packet = self.inputs[bit.bit_length() - 1].head(index, slot, room)
            if packet:
                return packet
        return None

    def _accepted(self, offers: list[Packet]) -> list[Packet]:
        """Each input with offers accepts one; the outputs of the others are not available in the next cycle."""
        best: dict[int, Packet] = {}
        refused = 0
        for packet in offers:
            rival = best.get(packet.input)
            if rival is None:
                best[packet.input] = packet
                continue
            first = self.inputs[packet.input].out_ptr
            if (packet.output - first) % self.size < (rival.output - first) % self.size:
                best[packet.input], packet = packet, rival
            output = self.outputs[packet.output]
            output.offer_refused(packet.slot)
            refused |= output.bit
        if refused:
            now = self.kernel.now
            self._refused, self._refused_at = refused, now
            self.wake_at(now + _OFFER_CYCLES, refused)
        return list(best.values())

    def _grant(self, packet: Packet) -> None:
        """The input accepts. Of what changes nothing but the VL order is looked at before it is visible."""
        source = self.inputs[packet.input]
        output = self.outputs[packet.output]
        source.out_ptr = (packet.output + 1) % self.size
        output.in_ptr[packet.slot] = (packet.input + 1) % self.size
        if packet.slot != self._vls:
            output.vl_ptr_before = output.vl_ptr
            output.vl_ptr_from = self.kernel.now + _ORDER_LATENCY
            output.vl_ptr = (packet.slot + 1) % self._vls
        reader = source.readers & -source.readers
        source.readers ^= reader
        if not source.readers:
            self.ready ^= source.bit
        self.available ^= output.bit
        self._unready &= ~output.bit
        output.grant(packet, reader)
        heads = self.heads[packet.output]
        if not source.granted(packet):
            heads[packet.slot] ^= source.bit
        output.seen_from[packet.slot] = 0 if heads[packet.slot] else NEVER
        self._advance(packet)
