"""A switch: routes, and the crossing of its ports (docs/pipeline.md, sections 3.3, 3.5, 3.7, 3.8 and 10)."""

from functools import partial
from typing import Final

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, LID_PERMISSIVE, SERVICE_LEVELS, VL15
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import NodeIdentity, SwitchParameters
from wire.registers import CONGESTION_PAGE, LFT_PAGE, SL_TO_VL_PAGE, NodeRegister
from wire.trace import Verdict, port_source

from .crossing.buffer import Buffer
from .crossing.inspection import Inspection
from .crossing.matcher import Matcher
from .crossing.queues import FifoInput, Input, VoqInput
from .kernel import UPDATE, Kernel
from .link.congestion import Congestion
from .link.congestion_log import CongestionLog
from .link.congestion_settings import CongestionSettings
from .link.life_time import LifeTime
from .link.packet_check import header_rejection
from .link.partition import JOIN_AFTER_KEY, Partition, Turns, check_partition, may_leave, p_key_rejection
from .link.port import LinkPort
from .link.port_status import PortStatus
from .management.congestion_windows import CongestionWindows
from .management.node import Node
from .management.port_zero import PortZero
from .management.register_bus import Bus
from .multicast import MulticastForwarding
from .packet import Copies, Packet

__all__ = ["Switch"]

_PORT_ZERO: Final = 0
_LOOK_TO_EVENT: Final = 2
"""Cycles from the one in which a copy is rejected until the agent is told, as it is of a verdict in the trace."""
_LIFE_TIME: Final = (0, NodeRegister.LIFE_TIME)


class Switch(Node):
    """A switch with ports 1..P, and port 0 behind them: in the crossing, port i+1 has index i, port 0 has P."""

    is_destination = False

    def __init__(
        self, kernel: Kernel, parameters: SwitchParameters, node: int, identity: NodeIdentity, epoch: int = 0
    ) -> None:
        """`epoch` is its cycle 0."""
        self.joins_whole = parameters.forwarding == "store-and-forward"
        ports, vls = parameters.ports, parameters.vls
        self._kernel = kernel
        self._vls = vls
        self._top = parameters.lft_size - 1
        self._lft = [LFT_NO_ROUTE] * parameters.lft_size
        self._multicast = MulticastForwarding(parameters.mft_size, ports)
        row = [sl % vls for sl in range(SERVICE_LEVELS)]
        self._sl_to_vl = [[list(row) for _ in range(ports)] for _ in range(ports)]  # in, out, SL
        self._life = LifeTime(epoch)
        settings, log = CongestionSettings(ports, parameters.buffer_blocks), CongestionLog(kernel, epoch)
        matcher = Matcher(kernel, ports + 1, vls, epoch)
        self.ports = []
        turns = Turns()
        self._partitions = [Partition(turns) for _ in range(ports + 1)]  # port 0's, the last, checks nothing
        self._inspections: list[Inspection] = []
        for index in range(ports):
            buffer = Buffer([parameters.buffer_blocks] * vls + [parameters.vl15_blocks])
            if parameters.queueing == "fifo":
                queues: Input = FifoInput(kernel, index, buffer, vls + 1)
            else:
                queues = VoqInput(kernel, index, matcher.size, buffer, parameters.readers, vls + 1)
            inspection = Inspection(kernel, vls, ports, self._look_for_copy, matcher.copies_coming)
            queues.inspection = inspection
            self._inspections.append(inspection)
            source = port_source(node, index + 1)
            congestion = Congestion(kernel, vls, index + 1, settings, log)
            self.ports.append(LinkPort(self, matcher, queues, source, vls, parameters.mtu, self._life, congestion))
            self.ports[index].status.partition = self._partitions[index]
        self._limits = [port.limits for port in self.ports if port.limits is not None]
        self.bus = Bus(kernel, self)
        self.agent = PortZero(matcher, self.bus, self.ports, range(1, ports + 1), parameters, node, identity).agent
        self._congestion = CongestionWindows(settings, log, self.agent.cc_key, self.agent.cc_class_port_info)

    # What a port asks (sections 3.3 and 3.5).

    def route_whole(self, packet: Packet) -> None:
        """Every packet has its route with its header."""

    def largest_out_changed(self) -> None:
        """Looked at with each header."""

    def rejection(self, status: PortStatus, packet: Packet, free: list[int]) -> Verdict:
        """DLID 0 is nobody's; rows f to j, and the route of a packet to which none applies."""
        lrh = packet.lrh
        dlid = lrh & 0xFFFF
        rejection = header_rejection(packet, dlid != 0, status.largest, status.operational)
        if rejection:
            return rejection
        is_management = packet.vl == VL15
        if LID_MULTICAST_MIN <= dlid <= LID_MULTICAST_MAX:  # not on VL15: row d
            return self._multicast_rejection(status.index, packet, free)
        entry = _PORT_ZERO if is_management and dlid == LID_PERMISSIVE else self._entry(dlid)
        no_route = entry > len(self.ports)
        loops = entry == status.index + 1
        slot = packet.slot_in
        has_room = packet.need <= free[slot]
        if no_route:
            return Verdict.NO_ROUTE
        if loops:
            return Verdict.LOOP
        if entry != _PORT_ZERO and not is_management:
            slot = self._sl_to_vl[status.index][entry - 1][lrh >> 20 & 0xF]
            if slot >= self.ports[entry - 1].status.operational:
                return Verdict.VL_MAP
        if not has_room:
            return Verdict.VL15_DROPPED if is_management else Verdict.OVERRUN
        packet.slot = slot
        narrow = self.ports[status.index].output.pitch != 1 and not self.joins_whole
        if entry == _PORT_ZERO:
            packet.output = len(self.ports)
            packet.oversize = False
        else:
            out = self.ports[entry - 1]
            packet.output = entry - 1
            packet.oversize = packet.n > out.status.largest_out
            narrow = narrow and out.had_four_lanes
        if narrow:
            packet.join_row = packet.n - packet.n // 4
        if not is_management:
            arrival, departure = self._partitions[status.index].checks, self._partitions[packet.output].checks
            self._check_partition(packet, arrival, departure)
        return rejection

    def _multicast_rejection(self, index: int, packet: Packet, free: list[int]) -> Verdict:
        """Rows f to j of a multicast packet that came by an input, and its copies, which may be guarded."""
        arrival = index + 1
        ports = self._multicast.ports(packet.dlid, arrival)
        if not ports:
            return Verdict.NO_ROUTE
        ports &= ~(1 << arrival)
        if not ports:
            return Verdict.LOOP
        copies = Copies(packet)
        departure = 0
        sl = packet.sl
        if ports & 1 << _PORT_ZERO:
            copies.add(len(self.ports), packet.slot_in, False)
        for output, port in enumerate(self.ports):
            if ports >> output + 1 & 1:
                slot = self._sl_to_vl[index][output][sl]
                if slot < port.status.operational:
                    copies.add(output, slot, packet.n > port.status.largest_out)
                    departure |= self._partitions[output].checks
        if not copies.left:
            return Verdict.VL_MAP
        if packet.need > free[packet.slot_in]:
            return Verdict.OVERRUN
        packet.copies = copies
        if self.ports[index].output.pitch != 1 and not self.joins_whole:
            packet.join_row = packet.n - packet.n // 4
        self._check_partition(packet, self._partitions[index].checks, departure)
        return Verdict.GOOD

    def _check_partition(self, packet: Packet, arrival: int, departure: int) -> None:
        """What is checked of a packet, as PARTITION of its ports says, keeps it back."""
        if arrival | departure and check_partition(packet, arrival, departure):
            if packet.key_row:
                self._inspections[packet.input].arriving = packet
            is_kept = self.joins_whole or packet.constraint
            packet.join_row = packet.n if is_kept else max(packet.join_row, packet.key_row + JOIN_AFTER_KEY)

    def p_key_rejection(self, packet: Packet) -> Verdict:
        """By the tables of its two ports; by the first alone, if it has copies."""
        arrival = self._partitions[packet.input]
        departure = arrival if packet.copies is not None else self._partitions[packet.output]
        return p_key_rejection(packet, arrival, departure, self._kernel.now)

    def _look_for_copy(self, packet: Packet, output: int) -> None:
        """A guarded packet is inspected: the table of an output's port is looked into in the current cycle."""
        assert packet.copies is not None
        for copy in packet.copies.left:
            if copy.output == output and not may_leave(packet, self._partitions[output], self._kernel.now):
                copy.is_rejected = True
                self._kernel.at(self._kernel.now + _LOOK_TO_EVENT, UPDATE, self._tell_of_copy, (packet, output))

    def _tell_of_copy(self, rejected: tuple[Packet, int]) -> None:
        packet, output = rejected
        self.tell_of_p_key(packet, output, is_copy=True)

    def _entry(self, dlid: int) -> int:
        """The output port of a unicast DLID, which is below 0xC000 as the table's size is; else no route."""
        return self._lft[dlid] if dlid < len(self._lft) and dlid <= self._top else LFT_NO_ROUTE

    # Registers (section 10).

    def read_register(self, page: int, offset: int) -> int:
        """LinearFDBTop, LifeTimeValue, the multicast registers, congestion control, the LFT, the SL-to-VL tables."""
        if page == 0:
            if offset == NodeRegister.LIFE_TIME:
                return self._life.exponent(self._kernel.now)
            return self._top if offset == NodeRegister.LINEAR_FDB_TOP else self._multicast.read(offset)
        if page == CONGESTION_PAGE:
            return self._congestion.read(offset)
        if page == LFT_PAGE:
            return self._lft[offset] if offset < len(self._lft) else 0
        table = self._table(page, offset)
        return table[offset & 0xF] if table else 0

    def write_given(self, page: int, offset: int, value: int, cycle: int) -> None:
        """LifeTimeValue, and a threshold: a packet granted now may find it."""
        if page == CONGESTION_PAGE:
            self._congestion.write_given(offset, value)
        is_another = (
            (page, offset) == _LIFE_TIME and value < 1 << 5 and self._life.write(cycle, value, self._kernel.now)
        )
        for limits in self._limits if is_another else ():
            limits.life_time_given()

    def write_register(self, page: int, offset: int, value: int) -> None:
        """An LFT or MFT entry is looked up a cycle before the rest of the header's checks."""
        if page == 0:
            if offset == NodeRegister.LINEAR_FDB_TOP and value <= 0xFFFF:
                self._top = value
            elif offset == NodeRegister.LIFE_TIME and self._life.changes(self._kernel.now):
                for limits in self._limits:
                    limits.begin_anew()
            else:
                self._multicast.write(offset, value)
        elif page == CONGESTION_PAGE:
            self._congestion.write(offset, value)
        elif LFT_PAGE < page < SL_TO_VL_PAGE:
            self._kernel.at(self._kernel.now + 1, UPDATE, partial(self._write_mft, page, offset, value))
        elif page == LFT_PAGE:
            if offset < len(self._lft) and value <= 0xFF:
                self._kernel.at(self._kernel.now + 1, UPDATE, partial(self._write_lft, offset, value))
        elif (table := self._table(page, offset)) and value < SERVICE_LEVELS:
            table[offset & 0xF] = value

    def _write_lft(self, lid: int, value: int, _: None) -> None:
        self._lft[lid] = value

    def _write_mft(self, page: int, index: int, value: int, _: None) -> None:
        self._multicast.write_part(page, index, value)

    def _table(self, page: int, offset: int) -> list[int] | None:
        source, output = page - SL_TO_VL_PAGE, offset >> 4
        if 0 <= source < len(self.ports) and 1 <= output <= len(self.ports):
            return self._sl_to_vl[source][output - 1]
        return None
