"""A switch tells the Subnet Manager which packets its ports reject for their P_Key (docs/management.md, section 5)."""

import pytest

from tests.rtl.switch.bench import SWITCH, Fabric
from tests.rtl.switch.test_partition_checks import INBOUND, OUTBOUND, RAW_INBOUND, WRONG, checking, words
from wire.codes import LNH
from wire.layout import Record
from wire.mad import MadMethod, mad_data
from wire.mad_packet import smp_packet
from wire.notice import NOTICE, TrapNumber, details_of
from wire.port_info import PORT_INFO
from wire.registers import Detail, PartitionCheck, lft_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request, unpack_smp
from wire.trace import Kind, Verdict

pytestmark = pytest.mark.slow

OWN, SM = 5, 1
MAD_START = 28
AGENT_SET = 500
"""Cycles in which the host's SMP is certainly done with."""


def managed(checks: dict[int, PartitionCheck]) -> tuple[Fabric, int]:
    """A switch that knows its Subnet Manager, at the first host, and the cycle from which packets may follow."""
    fabric, ready = checking(checks)
    fabric.write(ready - 6, SWITCH, lft_address(OWN), 0)
    info = PORT_INFO.pack(lid=OWN, master_sm_lid=SM, neighbor_mtu=1)
    smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, transaction_id=1)
    data = smp_packet(smp, SM, OWN).data
    vl15 = fabric.adapters[0].parameters.vls
    fabric.post(ready, 0, vl15, tuple(int.from_bytes(data[at : at + 4]) for at in range(0, len(data), 4)))
    return fabric, ready + AGENT_SET


def traps(fabric: Fabric) -> list[tuple[int, Record]]:
    """TransactionID and details of each that has come to the Subnet Manager."""
    found = []
    for slot, packet in fabric.delivered[0]:
        if slot == fabric.adapters[0].parameters.vls:
            smp = unpack_smp(b"".join(word.to_bytes(4) for word in packet)[MAD_START:-4])
            if smp.method == MadMethod.TRAP:
                details = details_of(NOTICE.unpack(mad_data(smp)))
                assert details is not None
                found.append((smp.transaction_id, details))
    return found


def told(fabric: Fabric) -> tuple[int, dict[str, int]]:
    """How many events there were, and what is told of the latest."""
    [(transaction, details)] = traps(fabric)
    assert transaction >> 32 == TrapNumber.BAD_P_KEY_AT_SWITCH
    return transaction & 0xFFFF_FFFF, {name: details[name] for name in ("lid1", "lid2", "p_key", "sl", "port")}


def test_of_two_at_a_time_the_lowest_ports_is_told_with_the_port_that_rejects_it() -> None:
    fabric, start = managed({1: OUTBOUND, 2: RAW_INBOUND, 3: INBOUND})
    for source, p_key in ((2, WRONG), (1, WRONG + 2)):
        fabric.post(start, source, 0, words(source, 0, 20, p_key, lnh=LNH.IBA_GLOBAL))
    # Raw packets are rejected, and those too short for one, but not for their P_Key.
    fabric.post(start, 1, 0, words(1, 0, 20, lnh=LNH.RAW))
    fabric.post(start, 1, 0, words(1, 0, 14, WRONG, lnh=LNH.IBA_GLOBAL))
    # Each counts at the port that rejects it.
    for port in range(1, 5):
        fabric.read(start + 600 + port, SWITCH, port_address(port, Detail.P_KEY_VIOLATIONS))
    fabric.run(start + 700)
    judged = [event for event in fabric.of(Kind.RX_DATA, SWITCH) if event.cycle > start and event.port > 1]
    verdicts = [(event.port, Verdict(event.words[0] & 0xFF)) for event in judged]
    assert verdicts[:2] == [(2, Verdict.XMIT_CONSTRAINT), (3, Verdict.RCV_CONSTRAINT)]
    assert verdicts[2:] == [(2, Verdict.RCV_CONSTRAINT), (2, Verdict.XMIT_CONSTRAINT)]
    assert judged[0].cycle == judged[1].cycle
    assert told(fabric) == (1, {"lid1": 2, "lid2": 1, "p_key": WRONG + 2, "sl": 0, "port": 1})
    assert [value for _, value in fabric.answers[SWITCH]] == [1, 0, 1, 0]
