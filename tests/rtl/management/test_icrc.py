"""What the ICRC covers."""

from typing import Any

from tests.rtl.management.agent_bench import Bench
from tests.rtl.management.agent_packets import ANSWERED, get, works
from wire.headers import BTH


def test_fecn_and_vl_are_outside_the_icrc() -> None:
    body = BTH["fecn"].write(get(), 1, 8)

    async def script(bench: Bench) -> Any:
        yield await bench.send(body)

    (work,) = works(script)
    assert work.steps == ANSWERED
    assert BTH.unpack(work.data, 8).fecn == 1
