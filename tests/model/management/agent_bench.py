"""An agent alone, at a node that writes down what it is asked."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from model.kernel import CONTROL, DECIDE, MATCH, STATE, UPDATE, Kernel
from model.management.agent import Agent
from model.management.agent_node import AgentNode
from model.management.mad_in_packet import gmp_in, smp_in
from wire.codes import LID_PERMISSIVE, PortPhysicalState, PortState
from wire.headers import LRH
from wire.layout import Record
from wire.mad import MadMethod, mad_data
from wire.mad_packet import gmp_packet, smp_packet
from wire.parameters import AdapterParameters, NodeIdentity, NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.registers import PortRegister, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import KeyViolation, WrongKey

IDENTITY = NodeIdentity(0x1234, 0x1235, "left of the door")
SWITCH = SwitchParameters(ports=4, vls=2, mtu=1024, lft_size=100, mft_size=64)
ADAPTER = AdapterParameters(vls=2, mtu=1024)
ARRIVES = 100
"""Cycle z of the first packet, unless another is said."""
START = ARRIVES + 4
"""Its step 0."""
OFFER_TO_SENT = 73
BLOCK = bytes(range(64))
"""What is written where any bytes will do."""


class Bench(AgentNode):
    """Events are (cycle, what, ...), in their order."""

    def __init__(self, parameters: NodeParameters, identity: NodeIdentity = IDENTITY) -> None:
        self.parameters = parameters
        self._link = identity.port
        self.kernel = Kernel()
        self.events: list[tuple[Any, ...]] = []
        self.registers: dict[int, int] = {}
        self.is_taken = True
        self.asked: Record | None = None  # of the PMA, last
        self.active = True
        for port in range(1, (parameters.ports if isinstance(parameters, SwitchParameters) else 1) + 1):
            self.registers[port_address(port, PortRegister.STATE)] = PortState.INITIALIZE
            self.registers[port_address(port, PortRegister.PHYSICAL_STATE)] = PortPhysicalState.LINK_UP
            self.registers[port_address(port, PortRegister.WIDTH)] = 2
        self.agent = Agent(self.kernel, self, parameters, identity)

    # The node's side.

    def _note(self, *what: Any) -> None:
        self.events.append((self.kernel.now, *what))

    def offer(self, data: bytes, output: int, slot: int) -> None:
        self._note("offer", output, data, slot)
        if self.is_taken:
            self.at(self.kernel.now + OFFER_TO_SENT, DECIDE, self.agent.sent)

    def freed(self) -> None:
        self._note("freed")

    def icrc_wrong(self, arrival: int, cycles: int) -> None:
        self._note("icrc wrong", arrival, cycles)

    def taken_by_trap(self) -> None:
        self._note("trap")

    def bus_write(self, address: int, value: int) -> None:
        self._note("write", address, value)
        self.at(self.kernel.now + 2, UPDATE, lambda: self.registers.__setitem__(address, value))

    def bus_read(self, address: int, take: Callable[[int], None]) -> None:
        self._note("read", address)
        self.at(self.kernel.now + 2, DECIDE, lambda: take(self.registers.get(address, 0)))

    def is_active(self) -> bool:
        return self.active

    # What happens.

    def at(self, cycle: int, phase: int, action: Callable[[], Any]) -> None:
        self.kernel.at(cycle, phase, lambda _: action())

    def arrive(
        self, data: bytes | None, cycle: int = ARRIVES, arrival: int | None = None, slot: int | None = None
    ) -> None:
        """The packet's last word is on the agent's wires in this cycle, z; by default on VL15's slot of port 1.

        An adapter's port may have another number.
        """
        arrival = self._link if arrival is None else arrival
        slot = self.parameters.vls if slot is None else slot
        self.at(cycle - 76, MATCH, self.agent.granted)
        self.at(cycle, UPDATE, lambda: self.agent.arrived(data, arrival, slot))

    def ask(
        self,
        smp: Record,
        cycle: int = ARRIVES,
        arrival: int | None = None,
        slid: int = LID_PERMISSIVE,
        dlid: int = LID_PERMISSIVE,
    ) -> None:
        self.arrive(smp_packet(smp, slid, dlid).data, cycle, arrival)

    def ask_perf(
        self,
        request: Record,
        cycle: int = ARRIVES,
        arrival: int | None = None,
        slid: int = 9,
        dlid: int = 7,
        slot: int = 0,
        **packet: int,
    ) -> None:
        self.asked = request
        self.arrive(gmp_packet(request, slid, dlid, vl=slot, **packet).data, cycle, arrival, slot)

    def hold(self, cycles: Iterable[int]) -> None:
        """The test bus has an access in each of these cycles."""
        for cycle in cycles:
            self.at(cycle, CONTROL, self.agent.held)

    def state_changes(self, cycle: int, old: PortState, new: PortState, *, by_write: bool = False) -> None:
        self.at(cycle, STATE, lambda: self.agent.port_state_changed(old, new, by_write=by_write))

    def host_sm(self, cycle: int, value: bool) -> None:
        self.at(cycle, UPDATE, lambda: self.agent.host_sm(value))

    def key_violation(self, cycle: int, found: KeyViolation, **packet: int) -> None:
        """Visible in this cycle."""
        self.at(cycle - 1, CONTROL, lambda: self.agent.key_violation(WrongKey(found, **packet)))

    def p_key_rejected(
        self, cycle: int, arrival: int, port: int, p_key: int = 1, *, is_copy: bool = False, **lrh: int
    ) -> None:
        record = LRH.record(**lrh)
        self.at(cycle, UPDATE, lambda: self.agent.p_key_rejected(arrival, port, record, p_key, is_copy=is_copy))

    def run(self, until: int = 10_000) -> "Bench":
        list(self.kernel.run(until))
        return self

    # What came of it.

    def of(self, what: str) -> list[tuple[Any, ...]]:
        """Events of a kind, without the kind."""
        return [(cycle, *rest) for cycle, kind, *rest in self.events if kind == what]

    def answer(self) -> Record:
        """The SMP in the packet offered last."""
        return smp_in(self.of("offer")[-1][2])

    def perf_answer(self) -> Record:
        """The performance management MAD in the packet offered last."""
        return gmp_in(self.of("offer")[-1][2])

    def answer_lrh(self) -> Record:
        return LRH.unpack(self.of("offer")[-1][2])

    def carry_out(self, smp: Record, **where: int) -> Record | None:
        """Ask, from now on, and return the answer, None if there is none."""
        before = len(self.of("offer"))
        self.ask(smp, self.kernel.now + ARRIVES, **where)
        self.run(self.kernel.now + 1000)
        return self.answer() if len(self.of("offer")) > before else None

    def read(self, attribute: int, modifier: int = 0) -> tuple[int, bytes]:
        """Status and data that a Get is answered."""
        answer = self.carry_out(get(attribute, modifier))
        assert answer is not None
        return answer.status, mad_data(answer)

    def write(self, attribute: int, data: bytes, modifier: int = 0) -> tuple[int, bytes]:
        """Status and data that a Set is answered."""
        answer = self.carry_out(change(attribute, data, modifier))
        assert answer is not None
        return answer.status, mad_data(answer)

    def port_info(self, port: int = 0, m_key: int = 0) -> Record | None:
        """PortInfo as a Get with this key is answered."""
        answer = self.carry_out(get(SmaAttribute.PORT_INFO, port, m_key=m_key))
        return None if answer is None else PORT_INFO.unpack(mad_data(answer))

    def set_port_info(self, fields: Mapping[str, int], port: int = 0, m_key: int = 0) -> Record:
        """Change fields by a Get and a Set with a good key, and return the answer; only LIDs of 0 are refused."""
        before = self.port_info(port, m_key)
        assert before is not None
        data = before.replace(**{"port_state": 0, "port_physical_state": 0, **fields}).pack()
        answer = self.carry_out(change(SmaAttribute.PORT_INFO, data, port, m_key=m_key))
        assert answer is not None
        return answer


def get(attribute: int, modifier: int = 0, path: tuple[int, ...] | None = (), **fields: int) -> Record:
    """A Get as it arrives at the end of its path, by default of an empty one."""
    return smp_request(MadMethod.GET, attribute, modifier, transaction_id=7, path=path).replace(**fields)


def change(attribute: int, data: bytes, modifier: int = 0, path: tuple[int, ...] | None = (), **fields: int) -> Record:
    """A Set likewise."""
    return smp_request(MadMethod.SET, attribute, modifier, data, transaction_id=7, path=path).replace(**fields)
