"""PortXmitWait by VL, counted from the trace cycle by cycle (docs/pipeline.md, section 8.3)."""

import random
from collections import defaultdict

from wire.codes import VL15, LinkWidth, PortState
from wire.registers import Counter, PortRegister, port_address, vl_xmit_wait_address
from wire.stimulus import Injection, Operation, Trigger
from wire.trace import Kind
from wire.trace_layout import RxData, Scrap, TxData, TxDiscard

END = 9000
OUTPUT = 1
"""The port of the switch by which all packets leave; the others send there, and no input has another offer."""


def random_star(star, ready, rng):
    vls, hosts = rng.choice([1, 2, 4]), rng.choice([3, 5])
    bench = star(hosts, vls=vls, mtu=256, adapter={"mtu": 256, "receive_blocks": rng.choice([7, 40])})
    pitch = rng.choice([1, 4])
    if pitch == 4:
        for cycle, (node, port) in enumerate(((0, OUTPUT), (1, 1)), ready - 20):
            bench.write_port(node, port, PortRegister.WIDTH, LinkWidth.X1, cycle)
    for source in range(2, hosts + 1):
        for _ in range(rng.randrange(5, 30)):
            cycle, slot = rng.randrange(ready, END - 1500), rng.randrange(vls + 1)
            vl = VL15 if slot == vls else slot
            bench.post(cycle, source, 1, slot=slot, vl=vl, sl=slot % vls, payload=4 * rng.randrange(64))
    for cycle in sorted(rng.sample(range(ready, END - 100), 120)):
        match rng.randrange(5):
            case 0:
                bench.stall(cycle, 1, rng.getrandbits(vls))
            case 1:
                row = rng.choice([3, 6, 12, 40])
                flip = rng.choice([1 << 8, 8 << 32])
                bench.inject(cycle, rng.randrange(1, hosts), 1, Injection(Trigger.DATA, row, row, flip=flip))
            case 2 if rng.random() < 0.3:
                bench.link(cycle, 0, rng.random() < 0.5)
            case 3:
                bench.write_port(0, OUTPUT, PortRegister.TICK, rng.choice([0, 0, 1, 6, 31, 100]), cycle)
            case _:
                vl = rng.choice([*range(vls), VL15])
                if rng.random() < 0.2:
                    value = rng.choice([0, 5, 0xFFF0, 0xFFFF, 0x1_0000])
                    bench.write(0, vl_xmit_wait_address(OUTPUT, vl), value, cycle)
                else:
                    bench.read(0, vl_xmit_wait_address(OUTPUT, vl), cycle)
    return bench, vls, pitch


def grants(bench, pitch):
    """By input and slot, of each packet that left: when it was granted, and its last busy cycle."""
    left = [(one, TxData, one.c - 4, TxData.end_row.read(one)) for one in bench.of(Kind.TX_DATA, 0, OUTPUT)]
    left += [(one, Scrap, one.cycle - 3, 0) for one in bench.of(Kind.SCRAP, 0, OUTPUT)]
    for one in bench.of(Kind.TX_DISCARD, 0, OUTPUT):
        end = TxDiscard.end_row.read(one)
        left.append((one, TxDiscard, one.cycle - 4 - pitch * end, end))
    found = defaultdict(list)
    for one, layout, granted, end in sorted(left, key=lambda of: of[2]):
        last = granted + 1 + pitch * end + (end < layout.pkt_len.read(one))
        found[layout.input.read(one), layout.slot.read(one)].append((granted, last))
    return found


def waits(bench, vls, pitch):
    """The cycles in which each slot of the output waits."""
    heads, busy = defaultdict(set), defaultdict(set)
    gone = grants(bench, pitch)
    for source in range(2, bench.ports + 1):
        places = dict.fromkeys(range(vls + 1), 0)
        before = dict.fromkeys(range(vls + 1), -9)
        for one in bench.of(Kind.RX_DATA, 0, source):
            if not RxData.blocks.read(one):
                continue
            vl = RxData.vl.read(one)
            slot = vls if vl == VL15 else vl
            joins = one.cycle - 2 - (RxData.end_row.read(one) - 1) + 2
            shown = joins + 1 if before[slot] < joins - 1 else before[slot] + 5
            of_slot = gone[source - 1, slot]
            granted, last = of_slot[places[slot]] if places[slot] < len(of_slot) else (END, END)
            if granted == END and before[slot] == END:
                continue  # it is behind one that stays
            heads[slot] |= set(range(shown, granted + 2))
            busy[slot] |= set(range(granted + 1, last + 1))
            places[slot] += 1
            before[slot] = granted
    active, since = set(), None
    for cycle, state in [*bench.states(0, OUTPUT), (END, PortState.DOWN)]:
        if since is not None:
            active |= set(range(since, cycle))
        since = cycle if state == PortState.ACTIVE else None
    return {slot: (heads[slot] & active) - busy[slot] for slot in range(vls + 1)}


def expected(bench, vls, pitch):
    """What the bus reads of the counters, in order."""
    waited = waits(bench, vls, pitch)
    tick, since = 32, 0
    values = dict.fromkeys(range(vls + 1), 0)
    operations = defaultdict(list)
    for control in bench.controls:
        if control.target == 0 and control.args[0] >> 16 == OUTPUT:
            operations[control.cycle + 2].append(control)
    for cycle in range(END):
        for slot in values:
            if cycle > since and (cycle - since) % tick == 0:
                values[slot] = min(values[slot] + waited[slot].issuperset(range(cycle - tick, cycle)), 0xFFFF)
        for control in operations[cycle]:
            address, value = control.args[:2]
            vl = address - vl_xmit_wait_address(OUTPUT, 0)
            slot = vls if vl == VL15 else vl
            if address == port_address(OUTPUT, PortRegister.TICK):
                tick, since = value + 1, cycle
            elif slot in values and control.operation == Operation.BUS_READ:
                yield values[slot]
            elif slot in values and value <= 0xFFFF:
                values[slot] = value


def test_each_vl_waits_while_a_packet_of_its_own_is_neither_offered_nor_sent(star, ready):
    """With credits that run out, packets that end early or are scrapped, and a link that is down now and then."""
    first = random.randrange(1 << 32)
    print(f"seeds from {first}")
    most = 0
    for seed in range(first, first + 12):
        bench, vls, pitch = random_star(star, ready, random.Random(seed))
        bench.run(END)
        values = bench.values()
        assert values == list(expected(bench, vls, pitch)), f"seed {seed}"
        most = max(most, *values)
    assert most > 30


def test_a_vl_waits_while_another_one_sends(star, ready):
    """Ticks of one cycle. The output as a whole is seldom idle: it waits in the cycle of the first grant alone."""
    bench = star(3, vls=2)
    bench.write_port(0, OUTPUT, PortRegister.TICK, 0, ready)
    for source, slot in ((2, 0), (3, 1)):
        bench.post(ready + 10, source, 1, slot=slot, vl=slot, sl=slot, payload=256)
    addresses = [vl_xmit_wait_address(OUTPUT, vl) for vl in (0, 1, VL15)]
    for cycle, address in enumerate((*addresses, port_address(OUTPUT, Counter.XMIT_WAIT)), ready + 500):
        bench.read(0, address, cycle)
    bench.run(ready + 600)
    first, second = sorted(record.c for record in bench.of(Kind.TX_DATA, 0, OUTPUT))
    assert bench.values() == [1, second - first + 1, 0, 1]


def test_vls_that_a_port_has_not_count_nothing(star):
    bench = star(2, vls=2, bring_up=False)
    addresses = [vl_xmit_wait_address(2, vl) for vl in (0, 1, 2, 14, 15)]
    for place, address in enumerate(addresses):
        bench.write(0, address, 7, 50 + place)
        bench.write(0, address, 0x1_0000, 60 + place)
        bench.read(0, address, 70 + place)
    bench.run(100)
    assert bench.values() == [7, 7, 0, 0, 7]
