"""cocotb tests of counter_top, run by test_build.py inside the simulators."""

import os
import struct
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge, Timer


@cocotb.test()
async def counts(dut):
    await Timer(402, "ns")
    assert int(dut.cycles.value) == 100
    assert int(dut.count.value) == 100


@cocotb.test(skip="BREAK" not in os.environ)
async def fails_on_purpose(dut):
    await Timer(10, "ns")
    assert int(dut.count.value) == -1, "broken on purpose"


@cocotb.test(skip="CYCLES" not in os.environ)
async def sleeps_long(dut):
    cycles = int(os.environ["CYCLES"])
    before = int(dut.cycles.value)
    await Timer(4 * cycles, "ns")
    assert int(dut.cycles.value) - before == cycles


@cocotb.test(skip="MAIL" not in os.environ)
async def mail(dut):
    """Packets appended to a file that the simulation has open are read exactly, and records come back."""
    packets, trace = Path("packets.bin"), Path("trace.bin")
    posted, seen = 0, 0
    clk = dut.clk
    for length in (1, 519, 3, 512):
        await Timer(10, "ns")
        words = [(posted + index) * 0x01010101 & 0xFFFFFFFF for index in range(length)]
        with packets.open("ab") as file:
            file.write(struct.pack(f">{length}I", *words))
        posted += length
        dut.posted.value = posted
        await RisingEdge(clk)
        await RisingEdge(clk)
        await Timer(1, "ns")
        records = trace.read_bytes()[seen:]
        seen += len(records)
        back = struct.unpack(f"={length + 2}I", records)
        assert list(back[:length]) == words
        assert back[-1] == 4 * length
