"""What the agent does with a packet, from its first word to the last of what it sends."""

from typing import Any

import pytest

from tests.rtl.management.agent_bench import Bench, changed
from tests.rtl.management.agent_packets import ADAPTER, ANSWERED, SENT, SWITCH, get, works
from wire.mad import MadMethod
from wire.node_info import NODE_INFO


@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
def test_a_directed_get_is_answered_after_its_steps(parameters: Any) -> None:
    async def script(bench: Bench) -> Any:
        yield await bench.send(get(), arrival=1)

    (work,) = works(script, parameters)
    assert work.steps == ANSWERED
    assert work.outputs == (0,)
    assert work.free == work.offered + SENT
    assert work.accesses == []
    info = NODE_INFO.unpack(work.smp.pack(), 64)
    assert info.local_port_num == 1
    expected = changed(get(), method=MadMethod.GET_RESP, d=1, data=work.smp.data, return_path=1 << 8 * 62)
    assert work.data == expected
