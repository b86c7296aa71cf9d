"""The Subnet Management Interface: where SMPs go, and what changes in them there."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.rtl.management.agent_bench import Bench, changed, packet_bytes
from wire.codes import LID_PERMISSIVE
from wire.mad import MadMethod
from wire.parameters import AdapterParameters, NodeParameters, SwitchParameters
from wire.registers import lft_address
from wire.sma import SmaAttribute
from wire.smp import SMP_PATH, return_port, smp_request, with_return_port

SWITCH = SwitchParameters(ports=8, lft_size=128)
ADAPTER = AdapterParameters()
LINK, HOST = (0,), (1,)
"""Outputs of an adapter."""

INITIAL = int.from_bytes(SMP_PATH.pack([0, *(1 + (3 * hop) % 8 for hop in range(1, 64))]), "big")
RETURN = int.from_bytes(SMP_PATH.pack([0, *(1 + (5 * hop) % 8 for hop in range(1, 64))]), "big")
ONES = int.from_bytes(SMP_PATH.pack([1] * 64), "big")

TO_AGENT = "to the agent"


def initial(hop: int) -> int:
    return 1 + (3 * hop) % 8


def returning(hop: int) -> int:
    return 1 + (5 * hop) % 8


def out(port: int) -> tuple[int, ...]:
    return (port - 1,)


class Row(NamedTuple):
    """An SMP that comes, and what is to become of it: its outputs, or none, or that the agent answers it."""

    name: str
    came: int
    fields: dict[str, int]
    outputs: Any
    smp: Mapping[str, int] = MappingProxyType({})
    lrh: Mapping[str, int] = MappingProxyType({})
    record: tuple[int, int] | None = None


def fields(d: int, hp: int, hc: int, **more: int) -> dict[str, int]:
    return {"d": d, "hop_pointer": hp, "hop_count": hc, **more}


DIRECT = {"dlid": LID_PERMISSIVE, "slid": LID_PERMISSIVE}
FROM_A_LID = {"dr_slid": 7}
TO_A_LID = {"dr_dlid": 9}

IN_SWITCH = [
    Row("too many hops", 2, fields(0, 1, 64), ()),
    Row("too many hops, back", 2, fields(1, 65, 64), ()),
    Row("no hops", 2, fields(0, 0, 0), TO_AGENT),
    Row("a LID-routed part ends here", 2, fields(0, 0, 3), out(initial(1)), {"hop_pointer": 1}, DIRECT),
    Row("on its way", 2, fields(0, 1, 3), out(initial(2)), {"hop_pointer": 2}, DIRECT, (1, 2)),
    Row("on its way, far", 8, fields(0, 62, 63), out(initial(63)), {"hop_pointer": 63}, DIRECT, (62, 8)),
    Row("at its end", 4, fields(0, 3, 3), TO_AGENT, record=(3, 4)),
    Row("at its end, far", 4, fields(0, 63, 63), TO_AGENT, record=(63, 4)),
    Row(
        "on by LID",
        4,
        fields(0, 3, 3, **TO_A_LID),
        out(6),
        {"hop_pointer": 4},
        {"dlid": 9, "slid": 0},
        (3, 4),
    ),
    Row("after its end", 4, fields(0, 4, 3), TO_AGENT),
    Row("after its end without hops", 4, fields(0, 1, 0), TO_AGENT),
    Row("far after its end", 4, fields(0, 5, 3), ()),
    Row("back from a LID-routed part", 5, fields(1, 4, 3), out(returning(3)), {"hop_pointer": 3}, DIRECT),
    Row("on its way back", 5, fields(1, 3, 3), out(returning(2)), {"hop_pointer": 2}, DIRECT),
    Row("on its way back, far", 5, fields(1, 63, 63), out(returning(62)), {"hop_pointer": 62}, DIRECT),
    Row("its way back ends here", 5, fields(1, 1, 3), ()),
    Row("back by LID", 5, fields(1, 1, 3, **FROM_A_LID), out(7), {"hop_pointer": 0}, {"dlid": 7, "slid": 0}),
    Row("back for a host", 5, fields(1, 0, 3), ()),
    Row("back from nowhere", 5, fields(1, 5, 3), ()),
    Row("back without hops", 5, fields(1, 1, 0), ()),
]

WITHOUT_LIDS = [
    Row("begins here", 2, fields(0, 0, 3), ()),
    Row("turns here", 2, fields(1, 4, 3), ()),
]
"""Rows of a switch that need a DLID, with the permissive one."""

IN_ADAPTER = [
    Row("too many hops", 1, fields(0, 64, 64), ()),
    Row("no hops, from the host", 0, fields(0, 0, 0), TO_AGENT),
    Row("no hops, from the link", 1, fields(0, 0, 0), TO_AGENT),
    Row("the host's, by LID first", 0, fields(0, 0, 3, **FROM_A_LID), LINK),
    Row("the host's", 0, fields(0, 0, 3), LINK, {"hop_pointer": 1}, DIRECT),
    Row("the host's, on its way already", 0, fields(0, 1, 3), ()),
    Row("begins at the link", 1, fields(0, 0, 3), ()),
    Row("on its way through", 1, fields(0, 1, 3), ()),
    Row("at its end", 1, fields(0, 3, 3), TO_AGENT, record=(3, 1)),
    Row("at its end but for a LID", 1, fields(0, 3, 3, **TO_A_LID), ()),
    Row("after its end", 1, fields(0, 4, 3), TO_AGENT),
    Row("the host's answer, by LID first", 0, fields(1, 4, 3, **TO_A_LID), LINK),
    Row("the host's answer", 0, fields(1, 4, 3), LINK, {"hop_pointer": 3}, DIRECT),
    Row("the host's answer without hops", 0, fields(1, 1, 0), ()),
    Row("an answer on its way through", 1, fields(1, 2, 3), ()),
    Row("an answer arrives", 1, fields(1, 1, 3), HOST, {"hop_pointer": 0}),
    Row("an answer arrives, but for a LID", 1, fields(1, 1, 3, **FROM_A_LID), ()),
    Row("an answer arrives by LID", 1, fields(1, 0, 3), HOST),
]


def asked(row: Row, initial_path: int, return_path: int) -> Any:
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=77, path=[])
    return smp.replace(**{"initial_path": initial_path, "return_path": return_path, **row.fields})


def check(parameters: NodeParameters, rows: list[Row], paths: tuple[int, int], slid: int, dlid: int) -> None:
    bench = Bench(parameters)
    bench.registers |= {lft_address(7): 7, lft_address(9): 6, lft_address(slid): 3}

    async def script(bench: Bench) -> None:
        for row in rows:
            smp = asked(row, *paths)
            given = packet_bytes(smp, slid, dlid, sl=3)
            work = await bench.send(given, row.came)
            if row.outputs == TO_AGENT:
                assert (work.answered, work.smp.method) == (True, MadMethod.GET_RESP), row.name
                if row.record:
                    assert return_port(work.smp, row.record[0]) == row.record[1], row.name
                continue
            assert work.steps == 16, row.name
            assert work.outputs == row.outputs, row.name
            if not row.outputs:
                assert work.offered is None, row.name
                continue
            changes = dict(row.smp)
            if row.record:
                changes["return_path"] = with_return_port(smp, *row.record).return_path
            assert work.data == changed(given, row.lrh, **changes), row.name

    bench.run(script)


def test_every_case_in_a_switch() -> None:
    check(SWITCH, IN_SWITCH, (INITIAL, RETURN), slid=21, dlid=22)


def test_a_switch_begins_no_directed_route_by_itself() -> None:
    check(SWITCH, WITHOUT_LIDS, (INITIAL, RETURN), slid=LID_PERMISSIVE, dlid=LID_PERMISSIVE)


def test_every_case_in_an_adapter() -> None:
    check(ADAPTER, IN_ADAPTER, (ONES, ONES), slid=LID_PERMISSIVE, dlid=LID_PERMISSIVE)


@pytest.mark.parametrize("entry", [0, 9, 255])
def test_a_directed_route_through_a_port_that_the_switch_does_not_have_is_dropped(entry: int) -> None:
    path = int.from_bytes(SMP_PATH.pack([0, entry, entry, entry]), "big")
    rows = [Row("out", 2, fields(0, 1, 3), ()), Row("back", 2, fields(1, 3, 3), ())]
    check(SWITCH, rows, (path, path), slid=LID_PERMISSIVE, dlid=LID_PERMISSIVE)


def test_an_adapter_has_port_1_only() -> None:
    rows = [Row("out", 0, fields(0, 0, 3), ()), Row("back", 0, fields(1, 4, 3), ())]
    for entry in (0, 2):
        path = int.from_bytes(SMP_PATH.pack([entry] * 64), "big")
        check(ADAPTER, rows, (path, path), slid=LID_PERMISSIVE, dlid=LID_PERMISSIVE)
