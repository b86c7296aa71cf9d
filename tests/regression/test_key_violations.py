"""Wrong keys that hosts find, and traps about them, while adapters are asked, set and reset (docs/management.md)."""

import random
from collections.abc import Iterator
from heapq import merge
from operator import attrgetter
from pathlib import Path

import pytest

from cosim.engines.simulation import run
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import Names, compare
from tests.regression.fabrics import PAIR
from wire.codes import PortState
from wire.mad import MadMethod, mad_data
from wire.mad_packet import smp_of, smp_packet
from wire.notice import NOTICE, TrapNumber
from wire.packet import parse
from wire.parameters import reset_cycles
from wire.port_info import PORT_INFO
from wire.registers import PortRegister, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request, unpack_smp
from wire.stimulus import Control, Delivery, KeyViolation, Operation, Post, WrongKey

H0, H1 = 1, 2
SLOT_VL15 = PAIR.nodes["h0"].vls
EVERY = 400
"""Cycles between two SMPs of a host to its own adapter: more than one takes."""

UP = 1_000

COUNTS = ("p_key_violations", "q_key_violations")


def smps(choose: random.Random, cycles: int) -> Iterator[Post]:
    """Gets and Sets of PortInfo, of which every other one clears a count or both."""
    for number, cycle in enumerate(range(100, cycles - EVERY, EVERY), 1):
        values = {name: choose.choice((0, 1)) for name in COUNTS}
        data = PORT_INFO.pack(**{"lid": 1, "master_sm_lid": 1, "neighbor_mtu": 1} | values)
        method = choose.choice((MadMethod.GET, MadMethod.SET))
        for host in (H0, H1):
            smp = smp_request(method, SmaAttribute.PORT_INFO, 0, data, transaction_id=number, path=[])
            yield Post(cycle, host, SLOT_VL15, smp_packet(smp, 0xFFFF, 0xFFFF).data)


def bring_up() -> Iterator[Control]:
    """The hosts' links are Active before cycle `UP`: adapters send traps then, to their own hosts."""
    for first, state in ((300, PortState.ARMED), (700, PortState.ACTIVE)):
        for cycle, (node, port) in enumerate(((0, 1), (0, 2), (H0, 1), (H1, 1)), first):
            yield Control(cycle, Operation.BUS_WRITE, node, (port_address(port, PortRegister.STATE), state, 0, 0))


def violations(choose: random.Random, cycles: int) -> Iterator[Control]:
    """One in about three cycles."""
    for cycle in range(UP, cycles):
        if choose.randrange(3) == 0:
            keys = choose.choice((KeyViolation.P_KEY, KeyViolation.Q_KEY, KeyViolation.P_KEY | KeyViolation.Q_KEY))
            wrong = WrongKey(keys, *(choose.getrandbits(width) for width in (32, 16, 16, 4, 24, 24)))
            yield Control(cycle, Operation.KEY_VIOLATION, choose.choice((H0, H1)), wrong.args())


def spec(seed: int, cycles: int) -> RunSpec:
    """Host h0's adapter is reset once."""
    choose = random.Random(seed)
    reset = Control(cycles // 3, Operation.RESET, H0)
    controls = (one for one in violations(choose, cycles) if one.cycle != reset.cycle)
    return RunSpec(
        PAIR, merge(bring_up(), controls, [reset], key=attrgetter("cycle")), list(smps(choose, cycles)), cycles
    )


@pytest.mark.parametrize(
    ("engine", "rtl"),
    [
        pytest.param("verilator", None, marks=pytest.mark.slow),
        pytest.param("verilator", ("h1",), marks=pytest.mark.slow),
        pytest.param("icarus", None, marks=pytest.mark.deep),
        pytest.param("amaranth", None, marks=pytest.mark.deep),
    ],
)
def test_adapters_count_wrong_keys_as_the_golden_model_does(
    engine: str, rtl: tuple[str, ...] | None, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    cycles = 15_000 if engine == "verilator" else 8_000
    expected: list[Delivery] = []
    seen: list[Delivery] = []
    with (
        run("model", spec(seed, cycles), tmp_path / "model", on_delivery=expected.append) as model,
        run(engine, spec(seed, cycles), tmp_path / engine, rtl=rtl, on_delivery=seen.append) as hardware,
    ):
        difference = compare(model, hardware).difference
    assert difference is None, difference.report(Names(PAIR), f"seed {seed}")
    assert seen == expected
    smps_seen = [unpack_smp(smp_of(parse(one.data))) for one in seen]
    traps = [NOTICE.unpack(mad_data(smp)) for smp in smps_seen if smp.method == MadMethod.TRAP]
    assert {notice.trap_number for notice in traps} == {TrapNumber.BAD_P_KEY, TrapNumber.BAD_Q_KEY}
    infos = [PORT_INFO.unpack(mad_data(smp)) for smp in smps_seen if smp.method == MadMethod.GET_RESP]
    assert {name for info in infos for name in COUNTS if info[name]} == set(COUNTS)


def test_what_is_found_while_an_adapter_is_reset_is_lost(tmp_path: Path) -> None:
    given = 200
    back = given + reset_cycles(PAIR.nodes["h0"]) + 1
    cycles = [100, given - 1, given + 1, back - 1, back]
    controls = [Control(cycle, Operation.KEY_VIOLATION, H0, (KeyViolation.P_KEY, 0, 0, 0)) for cycle in cycles]
    controls.insert(2, Control(given, Operation.RESET, H0))
    smp = smp_request(MadMethod.GET, SmaAttribute.PORT_INFO, 0, transaction_id=1, path=[])
    post = Post(back + 10, H0, SLOT_VL15, smp_packet(smp, 0xFFFF, 0xFFFF).data)
    found: list[Delivery] = []
    with run("model", RunSpec(PAIR, controls, [post], back + 600), tmp_path, on_delivery=found.append) as records:
        for _record in records:
            pass
    (answer,) = found
    assert PORT_INFO.unpack(mad_data(unpack_smp(smp_of(parse(answer.data))))).p_key_violations == 1
