"""PortInfo of one port, by Get and Set: of port 0 of a switch, of another port, or of an adapter's port."""

from typing import Any

from tests.rtl.management.agent_bench import Bench, Work
from wire.codes import PortPhysicalState, PortState
from wire.layout import Record
from wire.mad import MadStatus
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.registers import PortRegister, port_address
from wire.sma import SmaAttribute

SWITCH = SwitchParameters(ports=3, vls=4, mtu=2048)
ADAPTER = AdapterParameters(vls=4, mtu=2048)
BASE, EXTERNAL, OF_ADAPTER = "0", "E", "A"
KINDS = (BASE, EXTERNAL, OF_ADAPTER)
OK, INVALID = MadStatus.OK, MadStatus.INVALID_ATTRIBUTE_VALUE
PORT = {BASE: 0, EXTERNAL: 2, OF_ADAPTER: 1}
ARRIVAL = {BASE: 3, EXTERNAL: 3, OF_ADAPTER: 1}
HARMLESS = {
    BASE: {"lid": 1, "master_sm_lid": 1},
    EXTERNAL: {"neighbor_mtu": 4},
    OF_ADAPTER: {"lid": 1, "master_sm_lid": 1, "neighbor_mtu": 4},
}
"""Without these a Set is refused."""

REG = PortRegister


def registers(kind: str, state: int = PortState.INITIALIZE) -> dict[int, int]:
    if kind == BASE:
        return {}
    port = PORT[kind]
    return {
        port_address(port, REG.WIDTH): 2,
        port_address(port, REG.STATE): state,
        port_address(port, REG.PHYSICAL_STATE): PortPhysicalState.LINK_UP,
    }


def node_of(kind: str) -> NodeParameters:
    return ADAPTER if kind == OF_ADAPTER else SWITCH


class Port:
    """PortInfo of one port, by Get and Set."""

    def __init__(self, bench: Bench, kind: str) -> None:
        self.bench = bench
        self.kind = kind
        self.m_key = 0

    async def get(self) -> Record:
        work = await self.bench.get(SmaAttribute.PORT_INFO, PORT[self.kind], self.m_key, ARRIVAL[self.kind])
        assert work.status == OK
        return PORT_INFO.unpack(work.attribute)

    async def set(self, **fields: int) -> Work:
        data = PORT_INFO.pack({**HARMLESS[self.kind], **fields})
        return await self.bench.set(SmaAttribute.PORT_INFO, data, PORT[self.kind], self.m_key, ARRIVAL[self.kind])


def on_port(kind: str, script: Any, parameters: NodeParameters | None = None, **settings: Any) -> None:
    bench = Bench(parameters or node_of(kind))
    bench.registers |= registers(kind)
    for name, value in settings.items():
        setattr(bench, name, value)

    async def run(bench: Bench) -> None:
        await script(Port(bench, kind))

    bench.run(run)
