"""Packets for an agent, and what becomes of them."""

from typing import Any

from tests.agent_steps import steps_of_request
from tests.rtl.management.agent_bench import Bench, Work, packet_bytes
from wire.crc import ICRC_BYTES, icrc
from wire.layout import Layout
from wire.mad import MadMethod
from wire.parameters import AdapterParameters, SwitchParameters
from wire.sma import SmaAttribute
from wire.smp import smp_request

SWITCH = SwitchParameters(ports=8, lft_size=128)
ADAPTER = AdapterParameters()
PASSED_ON = 16
ANSWERED = steps_of_request(MadMethod.GET, SmaAttribute.NODE_INFO)
SENT = 73
"""Cycles from an offer that is taken at once to the agent being free again."""


def get(attribute: SmaAttribute = SmaAttribute.NODE_INFO, modifier: int = 0) -> bytes:
    """A directed-route Get that ends in the node."""
    smp = smp_request(MadMethod.GET, attribute, modifier, transaction_id=0x12345678_9ABCDEF0, path=[1])
    return packet_bytes(smp.replace(hop_pointer=1))


def lid_routed(slid: int, method: MadMethod = MadMethod.GET) -> bytes:
    return packet_bytes(smp_request(method, SmaAttribute.NODE_INFO, transaction_id=5), slid=slid, dlid=1, sl=2)


def in_header(data: bytes, layout: Layout, start: int, **fields: int) -> bytes:
    """A packet with fields changed of a header at byte `start`, and the ICRC that belongs to it."""
    body = data[:-ICRC_BYTES]
    for name, value in fields.items():
        body = layout[name].write(body, value, start)
    return body + icrc(body)


def works(script: Any, parameters: Any = SWITCH, **settings: Any) -> list[Work]:
    """What becomes of the packets that a script sends."""
    bench = Bench(parameters)
    for name, value in settings.items():
        setattr(bench, name, value)
    found: list[Work] = []

    async def run(bench: Bench) -> None:
        found.extend([work async for work in script(bench)])

    bench.run(run)
    return found
