"""What the agent does in which cycle with a packet, from its first word to the last of what it sends."""

import random
from typing import Any

import pytest

from tests.rtl.management.agent_bench import MAD_START, Access, Bench, Work, changed, packet_bytes, request
from wire.codes import LID_PERMISSIVE, PortState
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, LRH
from wire.layout import Layout
from wire.mad import MAD_HEADER, MadMethod
from wire.node_info import NODE_INFO
from wire.parameters import AdapterParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.registers import PortRegister, lft_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request

SWITCH = SwitchParameters(ports=8, lft_size=128)
ADAPTER = AdapterParameters()
PASSED_ON = 16
ANSWERED = 288
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


@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
def test_a_directed_get_is_answered_after_288_steps(parameters: Any) -> None:
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


def test_the_agent_is_free_again_when_the_last_word_is_taken() -> None:
    async def script(bench: Bench) -> Any:
        for wait in (0, 5):
            bench.take_after = wait
            yield await bench.send(get())

    assert [work.free - work.offered for work in works(script)] == [SENT, SENT + 5]


NO_SMPS = {
    "flagged bad": (get(), {"good": False}),
    "cut short": (get(), {"words": 40}),
    "cut before its second word": (get(), {"words": 1}),
    "scrapped": (get(), {"scrapped": True}),
    "on a data VL": (get(), {"slot": 0}),
    "longer": (get() + bytes(4), {}),
    "much longer": (get() + bytes(4 * 129), {}),
    "shorter": (get()[:-4], {}),
    "with a GRH": (in_header(get(), LRH, 0, lnh=3), {}),
    "raw": (LRH["lnh"].write(get(), 0), {}),
    "no UD SEND Only": (in_header(get(), BTH, 8, opcode=0x04), {}),
    "to QP1": (in_header(get(), BTH, 8, dest_qp=1), {}),
    "of another BaseVersion": (in_header(get(), MAD_HEADER, MAD_START, base_version=2), {}),
    "of another class": (in_header(get(), MAD_HEADER, MAD_START, mgmt_class=4), {}),
    "with a wrong ICRC": (get()[:-1] + bytes([get()[-1] ^ 1]), {}),
    "changed on the way": (get()[:60] + bytes([get()[60] ^ 0x10]) + get()[61:], {}),
}


def test_what_is_no_good_smp_is_dropped_and_the_agent_free_from_t_on() -> None:
    async def script(bench: Bench) -> Any:
        for data, how in NO_SMPS.values():
            yield await bench.send(data, **how)
        yield await bench.send(get())

    *dropped, last = works(script)
    assert {name: work.steps for name, work in zip(NO_SMPS, dropped, strict=True)} == dict.fromkeys(NO_SMPS, 0)
    assert last.steps == ANSWERED


def test_fecn_and_vl_are_outside_the_icrc() -> None:
    body = BTH["fecn"].write(get(), 1, 8)

    async def script(bench: Bench) -> Any:
        yield await bench.send(body)

    (work,) = works(script)
    assert work.steps == ANSWERED
    assert BTH.unpack(work.data, 8).fecn == 1


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
    assert [len(work.accesses) for work in alone] == [64, 16, 0, 0, 8, 0, 0, 0, 0]
    found = works(script, holds=lambda cycle: held[cycle])
    for before, after in zip(alone, found, strict=True):
        assert (after.accesses, after.outputs, after.data) == (before.accesses, before.outputs, before.data)


def test_a_packet_that_is_dropped_does_not_wait_for_the_test_bus() -> None:
    async def script(bench: Bench) -> Any:
        bench.holds = lambda cycle: True
        yield await bench.send(get(), good=False)

    assert [work.steps for work in works(script)] == [0]


ROUTES = {
    # SLID: LFT entry, output
    7: (4, (3,)),
    127: (8, (7,)),
    8: (0, ()),
    9: (9, ()),
    10: (255, ()),
    128: (1, ()),
    0xBFFF: (1, ()),
    LID_PERMISSIVE: (1, ()),
}


def test_a_lid_routed_answer_goes_by_the_lft() -> None:
    async def script(bench: Bench) -> Any:
        for slid, (entry, _) in ROUTES.items():
            bench.registers[lft_address(slid)] = entry
            yield await bench.send(lid_routed(slid), arrival=2)

    for (slid, (_, outputs)), work in zip(ROUTES.items(), works(script), strict=True):
        assert work.steps == ANSWERED
        assert work.outputs == outputs
        assert work.accesses == ([Access(2, lft_address(slid), None)] if slid < SWITCH.lft_size else [])
        if outputs:
            expected = changed(
                lid_routed(slid),
                {"slid": 1, "dlid": slid},
                method=MadMethod.GET_RESP,
                data=work.smp.data,
            )
            assert work.data == expected


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
