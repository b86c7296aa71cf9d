"""A switch: routes, and the crossing of its ports (docs/pipeline.md, sections 3.3, 3.5 and 10)."""

from functools import partial
from typing import Final

from wire.codes import LID_PERMISSIVE, VL15, PortState
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import NodeIdentity, SwitchParameters
from wire.registers import LFT_PAGE, SL_TO_VL_PAGE, Counter, NodeRegister
from wire.trace import Verdict, port_source

from .crossing.buffer import Buffer
from .crossing.matcher import Matcher
from .crossing.queues import FifoInput, VoqInput
from .kernel import UPDATE, Kernel
from .link.packet_check import header_rejection
from .link.port import LinkPort
from .management.port_zero import PortZero
from .management.register_bus import Bus, RegisterFile
from .packet import Packet

__all__ = ["Switch"]

_SL_COUNT = 16
_PORT_ZERO: Final = 0


class Switch(RegisterFile):
    """A switch with ports 1..P, and port 0 behind them: in the crossing, port i+1 has index i, port 0 has P."""

    checks_icrc = False
    joins_at_header = True
    dlid_counter = Counter.RCV_SWITCH_RELAY_ERRORS

    def __init__(self, kernel: Kernel, parameters: SwitchParameters, node: int, identity: NodeIdentity) -> None:
        ports, vls = parameters.ports, parameters.vls
        self._kernel = kernel
        self._vls = vls
        self._top = parameters.lft_size - 1
        self._lft = [LFT_NO_ROUTE] * parameters.lft_size
        row = [sl % vls for sl in range(_SL_COUNT)]
        self._sl_to_vl = [[list(row) for _ in range(ports)] for _ in range(ports)]  # in, out, SL
        matcher = Matcher(kernel, ports + 1, vls)
        self.ports = [
            LinkPort(kernel, self, port_source(node, index + 1), index, vls, parameters.mtu, matcher)
            for index in range(ports)
        ]
        for port in self.ports:
            matcher.add_output(port.output)
        blocks = [parameters.buffer_blocks] * vls + [parameters.vl15_blocks]
        for port in self.ports:
            port.buffer = Buffer(blocks, port.flow.announcement_changes_at)
            if parameters.queueing == "fifo":
                port.input = FifoInput(port.index, matcher, port.buffer, vls + 1)
            else:
                port.input = VoqInput(port.index, matcher, port.buffer, parameters.readers, vls + 1)
            matcher.inputs.append(port.input)
            port.output.inputs = matcher.inputs
        self.bus = Bus(kernel, self)
        self.agent = PortZero(matcher, self.bus, self.ports, range(1, ports + 1), parameters, node, identity).agent

    # What a port asks (sections 3.3 and 3.5).

    def route_whole(self, packet: Packet) -> None:
        """Every packet has its route with its header."""

    def largest_out_changed(self) -> None:
        """Looked at with each header."""

    def port_state_changed(self, port: LinkPort, old: PortState, by_write: bool) -> None:
        """The agent looks at the change."""
        self.agent.port_state_changed(old, port.state, by_write=by_write)

    def rejection(self, port: LinkPort, packet: Packet) -> Verdict:
        """DLID 0 is nobody's; rows f to j, and the route of a packet to which none applies."""
        lrh = packet.lrh
        dlid = lrh & 0xFFFF
        rejection = header_rejection(packet, dlid != 0, port.largest, port.operational)
        if rejection:
            return rejection
        is_management = packet.vl == VL15
        free = port.buffer.free[packet.slot_in]
        entry = _PORT_ZERO if is_management and dlid == LID_PERMISSIVE else self._entry(dlid)
        no_route = entry > len(self.ports)
        slot = packet.slot_in
        if is_management:
            if no_route or entry == port.index + 1 or packet.need > free:
                return Verdict.VL15_DROPPED
        else:
            if no_route:
                return Verdict.NO_ROUTE
            if entry == port.index + 1:
                return Verdict.LOOP
            if entry != _PORT_ZERO:
                slot = self._sl_to_vl[port.index][entry - 1][lrh >> 20 & 0xF]
                if slot >= self.ports[entry - 1].operational:
                    return Verdict.VL_MAP
            if packet.need > free:
                return Verdict.OVERRUN
        packet.slot = slot
        if entry == _PORT_ZERO:
            packet.output = len(self.ports)
            packet.oversize = False
            packet.late = port.output.pitch != 1
        else:
            out = self.ports[entry - 1]
            packet.output = out.index
            packet.oversize = packet.n > out.largest_out
            packet.late = port.output.pitch != 1 and out.output.pitch == 1
        return rejection

    def _entry(self, dlid: int) -> int:
        """The output port of a unicast DLID, which is below 0xC000 as the table's size is; else no route."""
        return self._lft[dlid] if dlid < len(self._lft) and dlid <= self._top else LFT_NO_ROUTE

    # Registers (section 10).

    def read_node(self, page: int, offset: int) -> int:
        """Page 0, the LFT, the SL-to-VL tables."""
        if page == 0:
            if offset == NodeRegister.NUM_PORTS:
                return len(self.ports)
            if offset == NodeRegister.LEASE_SECOND:
                return self.agent.lease_second
            return self._top if offset == NodeRegister.LINEAR_FDB_TOP else 0
        if page == LFT_PAGE:
            return self._lft[offset] if offset < len(self._lft) else 0
        table = self._table(page, offset)
        return table[offset & 0xF] if table else 0

    def write_node(self, page: int, offset: int, value: int) -> None:
        """An LFT entry is looked up a cycle before the rest of the header's checks."""
        if page == 0:
            if offset == NodeRegister.LINEAR_FDB_TOP and value <= 0xFFFF:
                self._top = value
            elif offset == NodeRegister.LEASE_SECOND:
                self.write_lease_second(value)
        elif page == LFT_PAGE:
            if offset < len(self._lft) and value <= 0xFF:
                self._kernel.at(self._kernel.now + 1, UPDATE, partial(self._write_lft, offset, value))
        elif (table := self._table(page, offset)) and value < _SL_COUNT:
            table[offset & 0xF] = value

    def _write_lft(self, lid: int, value: int, _: None) -> None:
        self._lft[lid] = value

    def _table(self, page: int, offset: int) -> list[int] | None:
        source, output = page - SL_TO_VL_PAGE, offset >> 4
        if 0 <= source < len(self.ports) and 1 <= output <= len(self.ports):
            return self._sl_to_vl[source][output - 1]
        return None
