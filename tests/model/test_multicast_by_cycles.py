"""Random packets to hosts and groups are granted in the cycles in which the contract has it."""

import random
from itertools import product

import pytest

from tests.model.multicast_by_cycles import Arrival, grants
from wire.packet import build_ud_send
from wire.registers import mft_address, sl_to_vl_address
from wire.stimulus import Post
from wire.trace import Kind, port_source
from wire.trace_layout import RxData, TxData

PORTS, VLS = 4, 4
SLS = range(4)


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
