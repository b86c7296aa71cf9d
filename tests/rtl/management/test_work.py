"""In which cycle the agent does what (docs/management.md, section 2)."""

import random
from typing import Any

import pytest

from tests.rtl.management.agent_bench import Access, Bench, packet_bytes, request
from tests.rtl.management.agent_packets import (
    ANSWERED,
    SENT,
    get,
    lid_routed,
    works,
)
from wire.codes import PortState
from wire.mad import MadMethod
from wire.port_info import PORT_INFO
from wire.registers import PortRegister, lft_address, port_address
from wire.sma import SmaAttribute


def test_the_agent_is_free_again_when_the_last_word_is_taken() -> None:
    async def script(bench: Bench) -> Any:
        for wait in (0, 5):
            bench.take_after = wait
            yield await bench.send(get())

    assert [work.free - work.offered for work in works(script)] == [SENT, SENT + 5]


@pytest.mark.parametrize("seed", range(4))
def test_a_cycle_with_an_access_of_the_test_bus_has_no_step(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    held = {cycle for cycle in range(3000) if rng.random() < (0.1, 0.5, 0.8)[seed % 3]}
    asked = lid_routed(slid=7)

    async def script(bench: Bench) -> Any:
        bench.registers[lft_address(7)] = 4
        bench.holds = lambda cycle: cycle in held
        yield await bench.send(asked)

    (work,) = works(script)
    steps = [cycle for cycle in range(work.start, 5000) if cycle not in held]
    assert work.offered == steps[ANSWERED - 1] + 1
    assert work.accesses == [Access(2, lft_address(7), None)]
    assert work.outputs == (3,)
    assert work.smp.method == MadMethod.GET_RESP


def requests_of_every_kind() -> list[bytes]:
    """Sets and Gets with many accesses to the bus, one that is passed on, and a violation."""
    rng = random.Random(7)
    data = rng.randbytes(64)
    info = PORT_INFO.pack(lid=3, neighbor_mtu=2, port_state=PortState.ARMED, m_key=5, m_key_protect_bits=1, hoq_life=9)
    smps = [
        request(MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE, 1, data),
        request(MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, 0x0203, data),
        request(MadMethod.SET, SmaAttribute.P_KEY_TABLE, 0, data),
        request(MadMethod.GET, SmaAttribute.P_KEY_TABLE),
        request(MadMethod.SET, SmaAttribute.PORT_INFO, 2, info),
        request(MadMethod.GET, SmaAttribute.NODE_DESCRIPTION, hop_pointer=1, hop_count=2, initial_path=0x0203 << 480),
        request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info),
        request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, data),
        request(MadMethod.GET, SmaAttribute.PORT_INFO),
    ]
    return [packet_bytes(smp, slid=7, dlid=3) for smp in smps]


@pytest.mark.parametrize("seed", range(3))
def test_the_test_bus_changes_nothing_but_when(seed: int) -> None:
    print(f"seed {seed}")
    given = requests_of_every_kind()

    async def script(bench: Bench) -> Any:
        bench.registers |= {lft_address(7): 4, port_address(2, PortRegister.STATE): PortState.INITIALIZE}
        for data in given:
            yield await bench.send(data)

    rng = random.Random(seed)
    held = [rng.random() < 0.4 for _ in range(20_000)]
    alone = works(script)
    assert [len(work.accesses) for work in alone] == [64, 16, 0, 0, 15, 0, 0, 0, 0]
    found = works(script, holds=lambda cycle: held[cycle])
    for before, after in zip(alone, found, strict=True):
        assert (after.accesses, after.outputs, after.data) == (before.accesses, before.outputs, before.data)


def test_a_packet_that_is_dropped_does_not_wait_for_the_test_bus() -> None:
    async def script(bench: Bench) -> Any:
        bench.holds = lambda cycle: True
        yield await bench.send(get(), good=False)

    assert [work.steps for work in works(script)] == [0]
