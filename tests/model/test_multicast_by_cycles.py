"""Random packets to hosts and groups are granted in the cycles in which the contract has it."""

import random
from itertools import product
from operator import itemgetter

import pytest

from tests.model.link.partitions import set_table
from tests.model.multicast_by_cycles import Arrival, grants
from wire.headers import RWH
from wire.packet import build_raw, build_ud_send
from wire.registers import PartitionCheck, PortRegister, mft_address, sl_to_vl_address
from wire.stimulus import Post
from wire.trace import Discard, Kind, Verdict, port_source
from wire.trace_layout import RxData, TxData, TxDiscard

PORTS, VLS = 4, 4
SLS = range(4)
P_KEYS = (0x8001, 1, 0x8002, 2)


@pytest.mark.parametrize(("queueing", "readers"), [("voq", 2), ("voq", 1), ("fifo", 1)])
def test_matching_with_multicast_packets_cycle_by_cycle(star, ready, queueing, readers):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    bench = star(
        PORTS, vls=VLS, queueing=queueing, readers=readers, mtu=256, buffer_blocks=4095, lft_size=16, mft_size=32
    )
    groups = {0xC000 + number: draw.randrange(6, 1 << PORTS + 1) & ~1 for number in range(6)}
    groups[0xC006] = (1 << PORTS + 1) - 2
    for mlid, mask in groups.items():
        bench.write(0, mft_address(mlid, 0), mask)
    # Several VLs become one.
    vl_of = {(i, o, sl): draw.randrange(VLS) for i, o, sl in product(range(1, PORTS + 1), range(1, PORTS + 1), SLS)}
    for (i, o, sl), vl in vl_of.items():
        bench.write(0, sl_to_vl_address(i, o, sl), vl)
    for i in range(1, PORTS + 1):
        hosts = [other for other in range(1, PORTS + 1) if other != i]
        mlids = [mlid for mlid, mask in groups.items() if mask & ~(1 << i)]
        for number in range(30):
            sl, dlid = draw.choice(SLS), draw.choice((draw.choice(hosts), draw.choice(mlids)))
            data = build_ud_send(
                slid=i,
                dlid=dlid,
                dest_qp=5,
                src_qp=6,
                q_key=0,
                sl=sl,
                vl=sl,
                payload=bytes(draw.choice((0, 0, 20, 90))),
            ).data
            bench.posts.append(Post(ready + draw.choice((0, 0, 200 * (number // 8))), i, sl, data))
    bench.run(12_000)
    received = [
        (record.cycle - RxData.pkt_len.read(record) + 1, record.source & 0xFF, record)
        for record in bench.of(Kind.RX_DATA)
        if record.source in {port_source(0, port) for port in range(1, PORTS + 1)}
    ]
    assert len(received) == 30 * PORTS
    arrivals = []
    for number, (joins, port, record) in enumerate(received):
        dlid, sl = RxData.dlid.read(record), RxData.sl.read(record)
        mask = groups.get(dlid, 1 << dlid) & ~(1 << port)
        copies = {(out - 1, vl_of[port, out, sl]) for out in range(1, PORTS + 1) if mask >> out & 1}
        words = RxData.pkt_len.read(record)
        arrivals.append(Arrival(number, port - 1, joins, RxData.vl.read(record), words, copies, dlid in groups))
    sent = [(port, record) for port in range(1, PORTS + 1) for record in bench.of(Kind.TX_DATA, 0, port)]
    flow_control = {
        (record.cycle - 5, port - 1) for port in range(1, PORTS + 1) for record in bench.of(Kind.TX_FCP, 0, port, 0)
    }
    said = {
        (TxData.first_cycle.read(record) - 4, port - 1, TxData.input.read(record), TxData.slot.read(record))
        for port, record in sent
    }
    inputs = PORTS + 1
    expected = grants(arrivals, flow_control, inputs=inputs, vls=VLS, readers=readers, fifo=queueing == "fifo")
    assert sorted(said) == sorted(one[:4] for one in expected)
    assert len(sent) > 30 * PORTS


@pytest.mark.parametrize(("queueing", "readers"), [("voq", 2), ("voq", 1), ("fifo", 1)])
def test_guarded_packets_are_inspected_cycle_by_cycle(star, ready, queueing, readers):
    """Some copies may not leave. P_Key 0 is a raw packet's; the packets of a port and VL come as they were posted."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    bench = star(
        PORTS, vls=VLS, queueing=queueing, readers=readers, mtu=256, buffer_blocks=4095, lft_size=16, mft_size=32
    )
    ports = range(1, PORTS + 1)
    groups = {0xC000 + number: draw.randrange(6, 1 << PORTS + 1) & ~1 for number in range(6)}
    groups[0xC006] = (1 << PORTS + 1) - 2
    for mlid, mask in groups.items():
        bench.write(0, mft_address(mlid, 0), mask)
    vl_of = {(i, o, sl): draw.randrange(VLS) for i, o, sl in product(ports, ports, SLS)}
    for (i, o, sl), vl in vl_of.items():
        bench.write(0, sl_to_vl_address(i, o, sl), vl)
    inbound, outbound, _, raw_outbound = PartitionCheck
    some = (0, inbound, outbound, raw_outbound, inbound | outbound | raw_outbound)
    drawn = draw.sample([outbound, some[-1], draw.choice(some), draw.choice(some)], PORTS)
    checks = {port: PartitionCheck(check) for port, check in zip(ports, drawn, strict=True)}
    tables = {port: draw.sample(P_KEYS, 2) for port in ports}
    for port in ports:
        bench.write_port(0, port, PortRegister.PARTITION, checks[port])
        set_table(bench, port, tables[port])
    posted: dict[tuple[int, int], list[tuple[int, int]]] = {(i, sl): [] for i, sl in product(ports, SLS)}
    for i in ports:
        hosts = [other for other in ports if other != i]
        mlids = [mlid for mlid, mask in groups.items() if mask & ~(1 << i)]
        for number in range(30):
            sl, dlid = draw.choice(SLS), draw.choice((draw.choice(hosts), *[draw.choice(mlids)] * 3))
            p_key, payload = draw.choice((0, *P_KEYS)), bytes(4 * draw.choice((2, 2, 5, 22)))
            lrh = {"slid": i, "dlid": dlid, "sl": sl, "vl": sl}
            if p_key:
                data = build_ud_send(**lrh, dest_qp=5, src_qp=6, q_key=0, p_key=p_key, payload=payload).data
            else:
                data = build_raw(lrh=lrh, header=RWH.record(ether_type=0x0800), payload=payload).data
            cycle = ready + draw.choice((0, 0, 200 * (number // 8)))
            bench.posts.append(Post(cycle, i, sl, data))
            posted[i, sl].append((cycle, p_key))
    for packets in posted.values():
        packets.sort(key=itemgetter(0))
    bench.run(12_000)

    def has(port: int, p_key: int, departs: bool) -> bool:
        return any((held ^ p_key) & 0x7FFF == 0 and (not departs or (held | p_key) >> 15) for held in tables[port])

    arrivals, taken, inspected = [], set(), 0
    received = [(port, record) for port in ports for record in bench.of(Kind.RX_DATA, 0, port)]
    assert len(received) == 30 * PORTS
    for number, (port, record) in enumerate(received):
        dlid, sl, n = RxData.dlid.read(record), RxData.sl.read(record), RxData.pkt_len.read(record)
        row_0, p_key = record.cycle - n - 2, posted[port, sl].pop(0)[1]
        mask = groups.get(dlid, 1 << dlid) & ~(1 << port)
        outs = [out for out in ports if mask >> out & 1]
        departs = [out for out in outs if (outbound if p_key else raw_outbound) in checks[out]]
        arrives = p_key != 0 and inbound in checks[port]
        rejected = {out for out in departs if not p_key or not has(out, p_key, True)}
        verdict = Verdict.GOOD
        if arrives and not has(port, p_key, False):
            verdict = Verdict.RCV_CONSTRAINT
        elif rejected and dlid not in groups:
            verdict = Verdict.XMIT_CONSTRAINT
        assert RxData.verdict.read(record) == verdict
        looked_for = p_key != 0 and (arrives or departs != [])
        if looked_for:
            taken |= {(port - 1, row_0 + 4), (port - 1, row_0 + 5)}
        if verdict == Verdict.GOOD:
            arrivals.append(
                Arrival(
                    number,
                    port - 1,
                    row_0 + (8 if looked_for else 3),
                    RxData.vl.read(record),
                    n,
                    {(out - 1, vl_of[port, out, sl]) for out in outs},
                    dlid in groups,
                    ends=record.cycle - 2,
                    is_guarded=dlid in groups and departs != [],
                    rejected=frozenset(out - 1 for out in rejected),
                )
            )
            inspected += arrivals[-1].is_guarded
    said = set()
    for port in ports:
        sent = bench.of(Kind.TX_DATA, 0, port)
        said |= {
            (TxData.first_cycle.read(one) - 4, port - 1, TxData.input.read(one), TxData.slot.read(one)) for one in sent
        }
        for one in bench.of(Kind.TX_DISCARD, 0, port):
            assert TxDiscard.reason.read(one) == Discard.CONSTRAINT
            said.add((one.cycle - 4, port - 1, TxDiscard.input.read(one), TxDiscard.slot.read(one)))
    flow_control = {(one.cycle - 5, port - 1) for port in ports for one in bench.of(Kind.TX_FCP, 0, port, 0)}
    expected = grants(
        arrivals, flow_control, taken, inputs=PORTS + 1, vls=VLS, readers=readers, fifo=queueing == "fifo"
    )
    assert sorted(said) == sorted(one[:4] for one in expected)
    assert inspected > 10
    assert sum(len(bench.of(Kind.TX_DISCARD, 0, port)) for port in ports) > 3
