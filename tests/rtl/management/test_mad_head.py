"""Which packets are SMPs (docs/management.md, sections 1 and 2)."""

from typing import Any

from tests.rtl.management.agent_bench import MAD_START, Bench
from tests.rtl.management.agent_packets import ANSWERED, get, in_header, works
from wire.headers import BTH, LRH
from wire.mad import MAD_HEADER

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
