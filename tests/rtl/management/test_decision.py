"""For whom an SMP is (docs/management.md, section 3)."""

from typing import Any

import pytest

from tests.rtl.management.agent_bench import Bench, changed, packet_bytes
from tests.rtl.management.agent_packets import ADAPTER, PASSED_ON, lid_routed, works
from wire.mad import MadMethod
from wire.sma import SmaAttribute
from wire.smp import smp_request


@pytest.mark.parametrize("method", [MadMethod.GET_RESP, MadMethod.TRAP, MadMethod.SEND, 0x13])
def test_a_switch_drops_what_is_no_request(method: int) -> None:
    async def script(bench: Bench) -> Any:
        yield await bench.send(lid_routed(7, method))  # type: ignore[arg-type]

    (work,) = works(script)
    assert (work.steps, work.offered, work.accesses) == (PASSED_ON, None, [])


@pytest.mark.parametrize("lid_routing", [False, True], ids=["directed", "by LID"])
def test_an_adapters_host_gets_what_is_not_the_agents(lid_routing: bool) -> None:
    def packet(method: int, attribute: int) -> bytes:
        path = None if lid_routing else [1]
        smp = smp_request(method, attribute, transaction_id=3, path=path)  # type: ignore[arg-type]
        return packet_bytes(smp if lid_routing else smp.replace(hop_pointer=1), sl=9)

    kinds = [
        (MadMethod.GET, SmaAttribute.SM_INFO),
        (MadMethod.SET, SmaAttribute.SM_INFO),
        (MadMethod.TRAP, SmaAttribute.NOTICE),
        (MadMethod.GET_RESP, SmaAttribute.NODE_INFO),
    ]

    async def script(bench: Bench) -> Any:
        for kind in kinds:
            yield await bench.send(packet(*kind), arrival=1)

    for kind, work in zip(kinds, works(script, ADAPTER), strict=True):
        assert (work.steps, work.outputs) == (PASSED_ON, (1,))
        changes = {} if lid_routing else {"hop_pointer": 2, "return_path": 1 << 8 * 62}
        assert work.data == changed(packet(*kind), **changes)
