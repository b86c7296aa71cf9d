"""A switch: routes, and the crossing of its ports (docs/pipeline.md, sections 3.3, 3.5 and 10)."""

from functools import partial
from typing import Final

from wire.codes import LID_PERMISSIVE, SERVICE_LEVELS, VL15
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.parameters import NodeIdentity, SwitchParameters
from wire.registers import LFT_PAGE, SL_TO_VL_PAGE, NodeRegister
from wire.trace import Verdict, port_source

from .crossing.buffer import Buffer
from .crossing.matcher import Matcher
from .crossing.queues import FifoInput, Input, VoqInput
from .kernel import UPDATE, Kernel
from .link.life_time import LifeTime
from .link.packet_check import header_rejection
from .link.partition import JOIN_AFTER_KEY, Partition, check_partition, p_key_rejection
from .link.port import LinkPort
from .link.port_status import PortStatus
from .management.node import Node
from .management.port_zero import PortZero
from .management.register_bus import Bus
from .packet import Packet

__all__ = ["Switch"]

_PORT_ZERO: Final = 0
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
        row = [sl % vls for sl in range(SERVICE_LEVELS)]
        self._sl_to_vl = [[list(row) for _ in range(ports)] for _ in range(ports)]  # in, out, SL
        self._life = LifeTime(epoch)
        matcher = Matcher(kernel, ports + 1, vls, epoch)
        self.ports = []
        self._partitions = [Partition() for _ in range(ports + 1)]  # port 0's, the last, checks nothing
        for index in range(ports):
            buffer = Buffer([parameters.buffer_blocks] * vls + [parameters.vl15_blocks])
            if parameters.queueing == "fifo":
                queues: Input = FifoInput(kernel, index, buffer, vls + 1)
            else:
                queues = VoqInput(kernel, index, matcher.size, buffer, parameters.readers, vls + 1)
            source = port_source(node, index + 1)
            self.ports.append(LinkPort(self, matcher, queues, source, vls, parameters.mtu, self._life))
            self.ports[index].status.partition = self._partitions[index]
        self._limits = [port.limits for port in self.ports if port.limits is not None]
        self.bus = Bus(kernel, self)
        self.agent = PortZero(matcher, self.bus, self.ports, range(1, ports + 1), parameters, node, identity).agent

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
            narrow = narrow and out.output.pitch == 1
        if narrow:
            packet.join_row = packet.n - packet.n // 4
        arrival, departure = self._partitions[status.index].checks, self._partitions[packet.output].checks
        if arrival | departure and not is_management and check_partition(packet, arrival, departure):
            is_kept = self.joins_whole or packet.constraint
            packet.join_row = packet.n if is_kept else max(packet.join_row, packet.key_row + JOIN_AFTER_KEY)
        return rejection

    def p_key_rejection(self, packet: Packet) -> Verdict:
        """By the tables of its two ports."""
        arrival, departure = self._partitions[packet.input], self._partitions[packet.output]
        return p_key_rejection(packet, arrival, departure, self._kernel.now)

    def _entry(self, dlid: int) -> int:
        """The output port of a unicast DLID, which is below 0xC000 as the table's size is; else no route."""
        return self._lft[dlid] if dlid < len(self._lft) and dlid <= self._top else LFT_NO_ROUTE

    # Registers (section 10).

    def read_register(self, page: int, offset: int) -> int:
        """LinearFDBTop, LifeTimeValue, the LFT, the SL-to-VL tables."""
        if page == 0:
            if offset == NodeRegister.LIFE_TIME:
                return self._life.exponent(self._kernel.now)
            return self._top if offset == NodeRegister.LINEAR_FDB_TOP else 0
        if page == LFT_PAGE:
            return self._lft[offset] if offset < len(self._lft) else 0
        table = self._table(page, offset)
        return table[offset & 0xF] if table else 0

    def write_given(self, page: int, offset: int, value: int, cycle: int) -> None:
        """LifeTimeValue: a packet granted now may find it."""
        is_another = (
            (page, offset) == _LIFE_TIME and value < 1 << 5 and self._life.write(cycle, value, self._kernel.now)
        )
        for limits in self._limits if is_another else ():
            limits.life_time_given()

    def write_register(self, page: int, offset: int, value: int) -> None:
        """An LFT entry is looked up a cycle before the rest of the header's checks."""
        if page == 0:
            if offset == NodeRegister.LINEAR_FDB_TOP and value <= 0xFFFF:
                self._top = value
            elif offset == NodeRegister.LIFE_TIME and self._life.changes(self._kernel.now):
                for limits in self._limits:
                    limits.begin_anew()
        elif page == LFT_PAGE:
            if offset < len(self._lft) and value <= 0xFF:
                self._kernel.at(self._kernel.now + 1, UPDATE, partial(self._write_lft, offset, value))
        elif (table := self._table(page, offset)) and value < SERVICE_LEVELS:
            table[offset & 0xF] = value

    def _write_lft(self, lid: int, value: int, _: None) -> None:
        self._lft[lid] = value

    def _table(self, page: int, offset: int) -> list[int] | None:
        source, output = page - SL_TO_VL_PAGE, offset >> 4
        if 0 <= source < len(self.ports) and 1 <= output <= len(self.ports):
            return self._sl_to_vl[source][output - 1]
        return None
