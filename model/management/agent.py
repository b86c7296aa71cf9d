"""A node's management agent, which works on one packet at a time (docs/management.md, sections 2 to 7)."""

from collections.abc import Collection, Generator, Mapping
from types import MappingProxyType
from typing import Final

from wire.codes import QP_GSI, PortState
from wire.congestion_control import CC_CLASS_VERSION, CcAttribute
from wire.crc import icrc_good
from wire.headers import LRH
from wire.layout import Record
from wire.mad import MadMethod, MgmtClass, mad_data
from wire.notice import ProducerType, TrapNumber
from wire.parameters import NodeIdentity, NodeParameters, SwitchParameters
from wire.registers import LEASE_SECOND_AT_RESET, lft_address
from wire.sma import SmaAttribute
from wire.smp import is_directed
from wire.stimulus import KeyViolation, WrongKey

from ..kernel import DECIDE, UPDATE, Kernel
from .agent_node import AgentNode
from .attribute import NO_WORDS, READ_STEPS, Attribute, respond
from .attributes import Attributes
from .cc_class_port_info import CcClassPortInfo
from .cc_key import CcKey
from .congestion_attribute import congestion_attributes
from .m_key import KeyCheck, Lease, check_key
from .mad_in_packet import answer_packet, gmp_in, is_smp, request_class, smp_in, with_fields
from .perf_attribute import perf_attributes
from .smi import FROM_HOST, TO_HOST, Toward, Way, answer_passage, pass_on, route
from .steps import LAST, Steps, Work, answer_steps, trap_steps, window_steps
from .traps import Traps, cc_trap_packet, trap_packet

__all__ = ["Agent"]

_CHECK_CYCLES: Final = 4
"""From the last word on the agent's wires, z, to the first step, T."""
_LAST_WITHOUT_ANSWER: Final = 15
"""Last step for a packet that is passed on, or has no answer."""
_LFT_STEP: Final = 2
_TRAP_TIMER_CYCLES: Final = 1024
"""With SubnetTimeOut 0."""
_OF_TRANSPORT: Final = {KeyViolation.P_KEY: TrapNumber.BAD_P_KEY, KeyViolation.Q_KEY: TrapNumber.BAD_Q_KEY}
"""What an adapter tells of because its host says so."""
_DATA_VALID: Final = 0x000F
"""What the trap about a P_Key that a switch rejects knows of the packet: LIDs, P_Key and SL, not QPs and GIDs."""
_ASKED: Final = ("method", "attribute_id", "attribute_modifier")
"""What the traps about a wrong M_Key and a wrong CC_Key tell of a request."""
_NO_DETAILS: Final[Mapping[str, int]] = MappingProxyType({})
_ADAPTER_LINK: Final = 0
_ADAPTER_HOST: Final = 1


class Agent:
    """The SMI, the SMA, the PMA, a switch's congestion control and the sender of traps behind port 0.

    Its node reports to it what happens, and it acts through `AgentNode`. The node records DELIVER, SCRAP and
    SEND.

    Attributes:
        lease_second: the node's register LEASE_SECOND, for the node to read, and to write in phase `UPDATE`.
        cc_key: likewise a switch's CongestionKeyInfo.
        cc_class_port_info: likewise its ClassPortInfo of congestion control.
    """

    def __init__(self, kernel: Kernel, node: AgentNode, parameters: NodeParameters, identity: NodeIdentity) -> None:
        self.lease_second = LEASE_SECOND_AT_RESET
        self._kernel = kernel
        self._node = node
        # Outputs, by the numbers of external ports.
        self._outputs = {identity.port: _ADAPTER_LINK}
        if isinstance(parameters, SwitchParameters):
            self._outputs = {port: port - 1 for port in range(1, parameters.ports + 1)}
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._producer = ProducerType.SWITCH if self._is_switch else ProducerType(identity.type)
        self._vls = parameters.vls
        self._attributes = Attributes(node, parameters, identity)
        self._port_info = self._attributes.port_info
        self._switch_info = self._attributes.switch_info
        self._perf_attributes = perf_attributes(node, parameters, identity.port)
        self._congestion_attributes = congestion_attributes(node, parameters)
        self.cc_key = CcKey(kernel)
        self.cc_class_port_info = CcClassPortInfo(kernel, self._look_at_traps)
        self._steps = Steps(kernel)
        self._lease = Lease(kernel, self._lease_expired)
        self._free = True
        self._changed_in = -1  # the last cycle in which PortStateChange was set
        self._traps = Traps()
        self._trap_timer_ends = 0
        self._rejected_in = -1  # the last cycle in which a port rejected a packet for its P_Key
        self._rejected_first = (0, False)  # of the packet that is told of: by which port it came, and that it is a copy
        self._rejected: dict[str, int] = {}  # details of the trap about it

    # What the node reports.

    def granted(self) -> None:
        """A packet was granted to the agent in the current cycle g, in phase `MATCH`: it is no longer free."""
        self._free = False

    def arrived(self, data: bytes | None, arrival: int, slot: int) -> None:
        """The current cycle is z of the packet that was granted; `arrival` is 0 from an adapter's host.

        `data` is LRH..ICRC; None if the packet was scrapped or ended early, or its last row is flagged bad. `slot` is
        that on which it came.
        """
        first = self._kernel.now + _CHECK_CYCLES
        on_vl15 = slot == self._vls
        mgmt_class = 0 if data is None or on_vl15 else request_class(data)
        is_known = mgmt_class == MgmtClass.PERF or (self._is_switch and mgmt_class == MgmtClass.CONGESTION_CONTROL)
        if data is None or not (is_smp(data) if on_vl15 else is_known):
            self._kernel.at(first, DECIDE, self._become_free)
        elif not icrc_good(data):
            self._node.icrc_wrong(arrival, _CHECK_CYCLES + 1)
            self._kernel.at(first, DECIDE, self._become_free)
        elif on_vl15:
            steps = _steps_of(self._attributes.by_code, smp_in(data))
            self._kernel.at(first - 1, DECIDE, self._steps.start, (self._work_on_smp(data, arrival), steps))
        elif mgmt_class == MgmtClass.PERF:
            steps = _steps_of(self._perf_attributes, gmp_in(data))
            self._kernel.at(first - 1, DECIDE, self._steps.start, (self._work_on_perf(data, arrival, slot), steps))
        else:
            steps = _window_steps_of(self._congestion_attributes, gmp_in(data))
            self._kernel.at(
                first - 1, DECIDE, self._steps.start, (self._work_on_congestion(data, arrival, slot), steps)
            )

    def sent(self) -> None:
        """The packet offered was taken at a, and the current cycle is a+73; or it was dropped in the cycle before.

        The phase is `DECIDE`.
        """
        self._become_free(None)

    def held(self) -> None:
        """The test bus has an access in the current cycle, reported in phase `CONTROL`."""
        self._steps.held()

    def port_state_changed(self, old: PortState, new: PortState, *, by_write: bool) -> None:
        """A port's new state is visible in the current cycle, reported in phase `STATE`.

        `by_write`: it is Down, by a register write.
        """
        if self._switch_info is None:
            self._kernel.at(self._kernel.now, DECIDE, self._look_at_traps)
            return
        by_itself = new == PortState.DOWN and not by_write
        came_up = old == PortState.DOWN
        if (by_itself or came_up) and self._changed_in != self._kernel.now:  # several ports make one event
            self._changed_in = self._kernel.now
            self._kernel.at(self._kernel.now + 1, UPDATE, self._set_port_state_change)
            self._trap_event(TrapNumber.LINK_STATE_CHANGE)

    def key_violation(self, wrong: WrongKey) -> None:
        """An adapter's host has found a packet with wrong keys, given in the current cycle, in phase `CONTROL`."""
        self._kernel.at(self._kernel.now + 1, UPDATE, self._port_info.count_key_violation, wrong.found)
        details = {"lid1": wrong.slid, "lid2": wrong.dlid, "key": wrong.key, "sl": wrong.sl}
        details |= {"qp1": wrong.source_qp, "qp2": wrong.dest_qp}
        for key, trap in _OF_TRANSPORT.items():
            if wrong.found & key:
                self._trap_event(trap, details)

    def p_key_rejected(self, arrival: int, port: int, lrh: Record, p_key: int, *, is_copy: bool = False) -> None:
        """A switch's port rejects a packet that came by port `arrival` for its P_Key: its verdict is in the trace in
        the current cycle, or would be if it were that of a copy; reported in phase `UPDATE`."""
        details = {"lid1": lrh.slid, "lid2": lrh.dlid, "p_key": p_key, "sl": lrh.sl, "port": port}
        first = arrival, is_copy
        if self._rejected_in != self._kernel.now:  # several ports make one event
            self._rejected_in, self._rejected_first, self._rejected = self._kernel.now, first, details
            self._trap_event(TrapNumber.BAD_P_KEY_AT_SWITCH, self._rejected)
        elif first < self._rejected_first:
            self._rejected_first = first
            self._rejected.update(details)

    def host_sm(self, value: bool) -> None:
        """Whether an adapter's host has a Subnet Manager, visible in the current cycle, given in phase `UPDATE`."""
        if value != self._port_info.host_sm:
            self._port_info.host_sm = value
            self._trap_event(TrapNumber.LOCAL_CHANGES)

    # Taking, and being free (sections 2 and 5).

    def _become_free(self, _: None) -> None:
        """Free in the current cycle, unless a trap is due in it."""
        due = self._due()
        if due:
            self._begin_trap(due)
        else:
            self._free = True
            self._node.freed()

    def _look_at_traps(self, _: None) -> None:
        """A trap may have become due in the current cycle."""
        due = self._due() if self._free else ()
        if due:
            self._free = False
            self._node.taken_by_trap()
            self._begin_trap(due)

    def _due(self) -> Collection[TrapNumber]:
        """The traps that are due in the current cycle."""
        may_send = (
            bool(self._traps.pending)
            and self._port_info.own.lid != 0
            and self._kernel.now >= self._trap_timer_ends
            and (self._is_switch or self._node.is_active())
        )
        return [trap for trap in self._traps.pending if self._told_lid(trap)] if may_send else ()

    def _told_lid(self, trap: TrapNumber) -> int:
        """The LID that a trap goes to, as visible in the current cycle; 0 if there is nobody to tell."""
        if trap == TrapNumber.BAD_CC_KEY:
            return self.cc_class_port_info.record.trap_lid
        return self._port_info.own.master_sm_lid

    def _begin_trap(self, due: Collection[TrapNumber]) -> None:
        work = self._send_trap(self._traps.next(due))
        self._kernel.at(self._kernel.now + 1, DECIDE, self._steps.start, (work, trap_steps()))

    def _offer(self, packet: tuple[bytes, int, int]) -> None:
        data, output, slot = packet
        self._node.offer(data, output, slot)

    def _finish(self, data: bytes, output: int | None, slot: int) -> None:
        """The current cycle is that of the last step; `output` is None if the packet leads nowhere."""
        if output is None:
            self._finish_without_packet()
        else:
            self._kernel.at(self._kernel.now + 1, DECIDE, self._offer, (data, output, slot))

    def _finish_without_packet(self) -> None:
        self._kernel.at(self._kernel.now + 1, DECIDE, self._become_free)

    # Work (sections 3, 4, 6 and 7).

    def _work_on_smp(self, data: bytes, arrival: int) -> Work:
        yield 0
        own = self._port_info.own
        passage = pass_on(smp_in(data), LRH.unpack(data), arrival, is_switch=self._is_switch, lid=own.lid, lmc=own.lmc)
        data = with_fields(data, passage.lrh, passage.smp)
        if passage.way.toward != Toward.AGENT:
            output = yield from self._output(passage.way)
            yield _LAST_WITHOUT_ANSWER
            self._finish(data, output, self._vls)
            return
        smp = smp_in(data)
        check = check_key(smp.method, smp.m_key, own.m_key, own.m_key_protect_bits)
        if check == KeyCheck.GOOD:
            self._lease.stop()
        if check == KeyCheck.VIOLATION:
            self._violated(smp, LRH.unpack(data).slid)
        elif smp.method != MadMethod.TRAP_REPRESS:
            yield from self._answer(data, arrival, check == KeyCheck.ANSWERED_WITHOUT_KEY)
            return
        elif smp.attribute_id == SmaAttribute.NOTICE:
            self._traps.repress(smp.transaction_id)
        yield _LAST_WITHOUT_ANSWER
        self._finish_without_packet()

    def _answer(self, data: bytes, arrival: int, hides_key: bool) -> Work:
        smp, lrh = smp_in(data), LRH.unpack(data)
        way = answer_passage(smp, lrh, arrival, is_switch=self._is_switch, lid=self._port_info.own.lid).way
        output = yield from self._output(way)
        answer = yield from respond(self._attributes.by_code, smp, arrival, hides_key)
        yield LAST
        passage = answer_passage(smp, lrh, arrival, is_switch=self._is_switch, lid=self._port_info.own.lid)
        self._finish(with_fields(data, passage.lrh, {**answer, **passage.smp}), output, self._vls)

    def _work_on_perf(self, data: bytes, arrival: int, slot: int) -> Work:
        yield 0
        answering = respond(self._perf_attributes, gmp_in(data), arrival)
        yield from self._answer_gmp(data, arrival, slot, answering)

    def _work_on_congestion(self, data: bytes, arrival: int, slot: int) -> Work:
        yield 0
        mad = gmp_in(data)
        check = self.cc_key.check(mad.method, mad.cc_key, self.lease_second)
        if check == KeyCheck.VIOLATION:
            details = {"slid": LRH["slid"].read(data), "qp": QP_GSI, "cc_key": mad.cc_key}
            self._trap_event(TrapNumber.BAD_CC_KEY, details | {name: mad[name] for name in _ASKED})
        elif mad.method != MadMethod.TRAP_REPRESS:
            hides_key = check == KeyCheck.ANSWERED_WITHOUT_KEY
            answering = respond(self._congestion_attributes, mad, arrival, hides_key, CC_CLASS_VERSION)
            yield from self._answer_gmp(data, arrival, slot, answering)
            return
        elif mad.attribute_id == CcAttribute.NOTICE:
            self._traps.repress_cc(mad.transaction_id)
        yield _LAST_WITHOUT_ANSWER
        self._finish_without_packet()

    def _answer_gmp(self, data: bytes, arrival: int, slot: int, answering: Generator[int, None, Record]) -> Work:
        """The answer to a request of a general service, made in steps behind those that its way takes."""
        lrh = LRH.unpack(data)
        from_host = not self._is_switch and arrival == FROM_HOST
        output = yield from self._output(TO_HOST if from_host else route(lrh.slid))
        answer = yield from answering
        yield LAST
        if from_host:
            self._finish(answer_packet(data, answer), output, slot)
        else:
            self._finish_gmp(answer_packet(data, answer), output)

    def _finish_gmp(self, data: bytes, output: int | None) -> None:
        """As `_finish`: a MAD of a general service leaves by a link on the VL of its SL."""
        slot = 0 if output is None else self._attributes.sl_to_vl.vl_of_gmp(output + 1, LRH["sl"].read(data))
        self._finish(data, output if slot < self._vls else None, slot)

    def _output(self, way: Way) -> Generator[int, None, int | None]:
        """The output that a `Way` names; None if it leads nowhere."""
        if way.toward == Toward.HOST:
            return _ADAPTER_HOST
        if way.toward == Toward.PORT:
            return self._outputs.get(way.number)
        if way.toward == Toward.NOWHERE:
            return None
        if self._switch_info is None:
            return _ADAPTER_LINK
        table = self._switch_info.stored
        if way.number >= table.linear_fdb_cap:
            return None
        yield _LFT_STEP
        top = table.linear_fdb_top
        entry = self._node.give_read(lft_address(way.number))
        yield _LFT_STEP + READ_STEPS
        return self._outputs.get(entry.value) if way.number <= top else None

    # M_Key (section 4).

    def _violated(self, smp: Record, slid: int) -> None:
        own = self._port_info.own
        self._port_info.count_violation()
        self._lease.start(own.m_key_lease_period * self.lease_second)
        details = {
            "lid": slid,
            "dr_slid": smp.dr_slid if is_directed(smp) else 0,
            "m_key": smp.m_key,
        }
        self._trap_event(TrapNumber.BAD_M_KEY, details | {name: smp[name] for name in _ASKED})

    def _lease_expired(self) -> None:
        self._port_info.change_own(m_key_protect_bits=0)

    # PortStateChange and traps (section 5).

    def _set_port_state_change(self, _: None) -> None:
        assert self._switch_info is not None
        self._switch_info.port_state_change = True

    def _trap_event(self, trap: TrapNumber, details: Mapping[str, int] = _NO_DETAILS) -> None:
        """An event of a trap in the current cycle; the trap is pending in the next but one, if there is somebody to
        tell."""
        is_told = self._told_lid(trap) != 0
        self._kernel.at(self._kernel.now + 2, UPDATE, self._note_event, (trap, details, is_told))

    def _note_event(self, event: tuple[TrapNumber, Mapping[str, int], bool]) -> None:
        trap, details, is_told = event
        self._traps.details[trap] = details
        if is_told:
            self._traps.event(trap)
            self._kernel.at(self._kernel.now, DECIDE, self._look_at_traps)

    def _send_trap(self, trap: TrapNumber) -> Work:
        yield 0
        own = self._port_info.own
        self._trap_timer_ends = self._kernel.now + (_TRAP_TIMER_CYCLES << own.subnet_timeout)
        self._kernel.at(self._trap_timer_ends, DECIDE, self._look_at_traps)
        number, details = self._traps.pending[trap], self._details(trap)
        if trap == TrapNumber.BAD_CC_KEY:
            target = self.cc_class_port_info.record
            data = cc_trap_packet(number, self._producer, own.lid, target, details)
            output = yield from self._output(route(target.trap_lid))
            yield LAST
            self._finish_gmp(data, output)
            return
        data = trap_packet(trap, number, self._producer, own, details)
        at_own_host = not self._is_switch and own.master_sm_lid >> own.lmc == own.lid >> own.lmc
        output = yield from self._output(TO_HOST if at_own_host else route(own.master_sm_lid))
        yield LAST
        self._finish(data, output, self._vls)

    def _details(self, trap: TrapNumber) -> Mapping[str, int]:
        lid = self._port_info.own.lid
        if trap == TrapNumber.LOCAL_CHANGES:
            return {"lid": lid, "capability_mask": self._port_info.capability_mask}
        if trap == TrapNumber.LINK_STATE_CHANGE:
            return {"lid": lid}
        details = self._traps.details[trap]
        if trap == TrapNumber.BAD_P_KEY_AT_SWITCH:
            return {**details, "data_valid": _DATA_VALID, "sw_lid": lid}
        return details


def _steps_of(attributes: Mapping[int, Attribute], mad: Record) -> Mapping[int, int]:
    """Those of a request's answer; what has none needs the first alone."""
    attribute = attributes.get(mad.attribute_id)
    is_set = mad.method == MadMethod.SET
    if attribute is None:
        return answer_steps(is_set, NO_WORDS, NO_WORDS)
    return answer_steps(is_set, attribute.set_words, attribute.answer_words, attribute.laps(mad_data(mad)))


def _window_steps_of(attributes: Mapping[int, Attribute], mad: Record) -> Mapping[int, int]:
    """Those of a CC request, likewise."""
    attribute = attributes.get(mad.attribute_id)
    return window_steps(mad.method == MadMethod.SET, NO_WORDS if attribute is None else attribute.answer_words)
