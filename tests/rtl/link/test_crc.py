"""VCRC, LPCRC and ICRC as rows pass."""

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rtl.link.crc import IcrcCheck, VcrcCheck
from tests.rtl.simulation import Simulation
from wire.packet import build_ud_send
from wire.symbols import Row, frame_data_packet, frame_link_packet

VECTORS = Path(__file__).parents[2] / "wire" / "vectors"
LINK_PACKETS = [
    bytes.fromhex(vector["wire_hex"]) for vector in json.loads((VECTORS / "fcp_lpcrc.json").read_text())["vectors"]
]
DATA_PACKETS = [
    bytes.fromhex(vector["packet_hex"])
    for vector in json.loads((VECTORS / "ib_spec_samples.json").read_text())["vectors"]
]


@cache
def simulated(check: type[VcrcCheck] | type[IcrcCheck]) -> tuple[VcrcCheck | IcrcCheck, Simulation]:
    dut = check()
    return dut, Simulation(dut)


def verdicts(check: type[VcrcCheck] | type[IcrcCheck], rows: Sequence[Row], gap: int = 0) -> list[int]:
    """`good` after each row; between rows there are `gap` cycles without one."""
    dut, simulation = simulated(check)
    found = []

    async def drive(ctx: Any) -> None:
        index = 0
        for row in rows:
            index = 0 if row.k & 8 else index + 1
            ctx.set(dut.row.data, row.data)
            ctx.set(dut.row.k, row.k)
            ctx.set(dut.row.valid, 1)
            if isinstance(dut, IcrcCheck):
                ctx.set(dut.index, index)
            await ctx.tick()
            found.append(ctx.get(dut.good))
            ctx.set(dut.row.valid, 0)
            for _ in range(gap):
                await ctx.tick()

    simulation.run(drive)
    return found


def flipped(rows: Sequence[Row], row: int, bit: int) -> list[Row]:
    """The rows with one data bit changed."""
    changed = list(rows)
    changed[row] = Row(rows[row].data ^ 1 << bit, rows[row].k)
    return changed


def test_the_lpcrc_of_captured_flow_control_packets_is_right() -> None:
    rows = [row for packet in LINK_PACKETS for row in frame_link_packet(packet)]
    assert verdicts(VcrcCheck, rows)[1::2] == [1] * len(LINK_PACKETS)


def test_any_one_bit_error_in_a_link_packet_shows_in_the_lpcrc() -> None:
    rows = frame_link_packet(LINK_PACKETS[0])
    places = [(0, bit) for bit in range(24)] + [(1, bit) for bit in range(8, 32)]
    damaged = [row for place in places for row in flipped(rows, *place)]
    assert verdicts(VcrcCheck, damaged)[1::2] == [0] * len(places)


@pytest.mark.parametrize("packet", DATA_PACKETS, ids=["local", "global"])
@pytest.mark.parametrize("gap", [0, 3])
def test_the_crcs_of_the_standards_sample_packets_are_right(packet: bytes, gap: int) -> None:
    rows = frame_data_packet(packet)
    assert verdicts(VcrcCheck, rows, gap)[-1] == 1
    assert verdicts(IcrcCheck, rows, gap)[-1] == 1


@pytest.mark.parametrize("packet", DATA_PACKETS, ids=["local", "global"])
def test_only_what_a_switch_or_router_may_change_is_outside_the_icrc(packet: bytes) -> None:
    rows = frame_data_packet(packet)
    with_grh = packet[1] & 3 == 3
    # Bytes of which some bit may change in transit, with the mask of those bits (IBTA vol 1, 7.8).
    bth = 48 if with_grh else 8
    variant = {bth + 4: 0xFF}
    if with_grh:
        variant |= dict.fromkeys([0, *range(2, 8)], 0xFF) | {1: 0xFC, 8: 0x0F, 9: 0xFF, 10: 0xFF, 11: 0xFF}
        variant[15] = 0xFF
    else:
        variant[0] = 0xF0
    places = [(byte, bit) for byte in range(len(packet) - 2) for bit in range(8)]
    if with_grh:
        places = [place for place in places if place not in ((1, 0), (1, 1))]  # LNH itself
    damaged = [row for byte, bit in places for row in flipped(rows, (byte + 1) // 4, 24 - (byte + 1) % 4 * 8 + bit)]
    good = verdicts(IcrcCheck, damaged)[len(rows) - 1 :: len(rows)]
    assert good == [variant.get(byte, 0) >> bit & 1 for byte, bit in places]


@pytest.mark.parametrize("seed", range(3))
def test_packets_back_to_back_have_a_crc_each(seed: int) -> None:
    source = random.Random(seed)
    print(f"seed {seed}")
    rows: list[Row] = []
    ends = []
    for _ in range(6):
        content = source.randbytes(source.randrange(0, 200))
        packet = build_ud_send(slid=1, dlid=2, dest_qp=3, src_qp=4, q_key=5, payload=content)
        rows += frame_data_packet(packet.wire)
        ends.append(len(rows) - 1)
    assert [at for at, good in enumerate(verdicts(VcrcCheck, rows)) if good] == ends
