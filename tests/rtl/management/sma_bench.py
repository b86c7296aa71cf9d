"""What tests of the Subnet Management Agent ask, and what becomes of it."""

from collections.abc import Iterable

from tests.rtl.management.agent_bench import Bench, Work, request
from wire.forwarding_tables import MFT_MODIFIER
from wire.mad import MadMethod, MadStatus
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.port_tables import P_KEY_TABLE_MODIFIER, SL_TO_VL_MODIFIER, VL_ARBITRATION_MODIFIER

SWITCH = SwitchParameters(ports=3, vls=4, lft_size=100, mft_size=64)
ADAPTER = AdapterParameters(vls=2)
OK, VERSION = MadStatus.OK, MadStatus.BAD_VERSION
UNSUPPORTED, INVALID = MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED, MadStatus.INVALID_ATTRIBUTE_VALUE
GET, SET = MadMethod.GET, MadMethod.SET

Asked = tuple[int, int, int, bytes]
"""Method, attribute, modifier, data."""


def answers(parameters: NodeParameters, asked: Iterable[Asked], arrival: int = 1) -> list[Work]:
    """What becomes of requests, one after the other."""
    bench = Bench(parameters)
    found: list[Work] = []

    async def script(bench: Bench) -> None:
        for method, attribute, modifier, data in asked:
            found.append(await bench.smp(request(method, attribute, modifier, data), arrival))  # type: ignore[arg-type]

    bench.run(script)
    return found


def padded(attribute: bytes) -> bytes:
    return attribute.ljust(64, b"\0")


def p_key(port: int, block: int = 0) -> int:
    return P_KEY_TABLE_MODIFIER.to_int(port=port, block=block)


def pair(input_port: int, output_port: int) -> int:
    return SL_TO_VL_MODIFIER.to_int(input_port=input_port, output_port=output_port)


def arbitration(block: int, port: int) -> int:
    return VL_ARBITRATION_MODIFIER.to_int(block=block, port=port)


def mft(position: int, block: int) -> int:
    return MFT_MODIFIER.to_int(position=position, block=block)
