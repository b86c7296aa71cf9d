"""The whole model: order, determinism, conservation, and rows against whole packets."""

import random
from collections import Counter as Tally
from collections import deque
from itertools import pairwise

import pytest

from model.crossing.output import SWALLOWED
from model.fabric import Fabric
from model.kernel import DECIDE, Kernel
from model.link.eligibility import Eligibility
from model.packet import Transmission
from tests.campaigns import first_of
from wire.codes import VL15, PortState
from wire.mad import MadMethod
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.registers import Counter, PortRegister, lft_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import ROW_MAX, Control, Injection, Operation, Post, Trigger
from wire.switch_info import SWITCH_INFO
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData


def saturate(bench, ready, seed, packets, slots=1):
    """Each adapter posts packets to random others."""
    rng = random.Random(seed)
    for source in range(1, bench.ports + 1):
        for _ in range(packets):
            target = rng.choice([port for port in range(1, bench.ports + 1) if port != source])
            slot = rng.randrange(slots)
            bench.post(ready, source, target, slot, sl=slot, payload=4 * rng.randrange(64), seed=rng.random())
    return bench


@pytest.mark.parametrize("queueing", ["voq", "fifo"])
def test_on_good_links_every_packet_arrives_once_and_in_order(star, ready, queueing):
    readers = 1 if queueing == "fifo" else 2
    bench = saturate(star(8, vls=2, queueing=queueing, readers=readers), ready, 1, 120, slots=2)
    bench.run(60_000)
    posted: dict[tuple[int, int, int], list[bytes]] = {}
    for post in bench.posts:
        data = post.data
        flow = (int.from_bytes(data[6:8], "big"), int.from_bytes(data[2:4], "big"), post.slot)
        posted.setdefault(flow, []).append(data[4:])
    arrived: dict[tuple[int, int, int], list[bytes]] = {}
    for delivery in bench.delivered:
        data = delivery.data
        flow = (int.from_bytes(data[6:8], "big"), int.from_bytes(data[2:4], "big"), delivery.slot)
        arrived.setdefault(flow, []).append(data[4:])
    assert arrived == posted


def test_on_bad_links_every_packet_arrives_or_an_error_says_why(star, ready):
    bench = saturate(star(4), ready, 2, 150)
    rng = random.Random(3)
    for i in range(120):
        flip = 1 << rng.randrange(36)
        injection = Injection(Trigger.DATA, first=rng.randrange(2, 30), last=ROW_MAX, flip=flip)
        bench.inject(ready + 100 + 60 * i, rng.randrange(4), rng.randrange(2), injection)
    bench.run(60_000)
    lost = Tally(
        Verdict(RxData.verdict.read(record)) for record in bench.of(Kind.RX_DATA) if RxData.verdict.read(record)
    )
    scraps = len(bench.of(Kind.SCRAP))
    # A packet damaged on entry is bad twice, where it was damaged and as REMOTE, or scrapped.
    assert len(bench.delivered) + lost[Verdict.PHYSICAL] == len(bench.posts)
    assert lost[Verdict.REMOTE] + scraps <= lost[Verdict.PHYSICAL]
    assert set(lost) == {Verdict.PHYSICAL, Verdict.REMOTE}


def test_records_are_ordered_and_a_run_repeats(star, ready):
    first, again = (saturate(star(4), ready, 5, 40).run(20_000).records for _ in range(2))
    assert first == again
    assert all(a[:3] < b[:3] for a, b in pairwise(first))


def test_a_run_in_pieces_is_one_run(star, ready):
    whole = saturate(star(3), ready, 6, 30).run(9000).records
    pieces = saturate(star(3), ready, 6, 30)
    for until in range(0, 9001, 7):
        pieces.run(until)
    assert pieces.run(9000).records == whole


def test_posts_may_come_with_the_fabric_or_one_by_one_ahead_of_their_cycles(star, ready):
    bench = saturate(star(3), ready, 7, 20, slots=1)
    controls = sorted(bench.controls)
    ahead = Fabric(bench.parameters, controls)
    for post in bench.posts:
        ahead.post(post)
    assert list(Fabric(bench.parameters, controls, bench.posts).run(9000)) == list(ahead.run(9000))


def test_idle_cycles_cost_nothing(star):
    """A hundred thousand million cycles of links idle except for flow control."""
    bench = star(2)
    for node, port in ((0, 1), (0, 2), (1, 1), (2, 1)):
        bench.write_port(node, port, PortRegister.FCP_PERIOD, (1 << 24) - 1)
        bench.write_port(node, port, PortRegister.FC_WATCHDOG, (1 << 24) - 1)
    bench.run(10**9)
    assert 200 < len(bench.records) < 1000


@pytest.mark.parametrize("queueing", ["voq", "fifo"])
def test_ports_without_packets_cost_nothing(star, ready, queueing, monkeypatch):
    """Two hosts talk; how many others are there makes no difference to the number of events."""
    scheduled = []
    schedule = Kernel.at

    def counted(kernel, cycle, phase, action, argument=None):
        scheduled.append(cycle)
        schedule(kernel, cycle, phase, action, argument)

    monkeypatch.setattr(Kernel, "at", counted)
    events = []
    for ports in (2, 36):
        bench = star(ports, queueing=queueing, readers=1)
        for i in range(200):
            bench.post(ready, 1 + i % 2, 2 - i % 2, payload=256, seed=i)
        quiet = max(control.cycle for control in bench.controls) + 100
        scheduled.clear()
        bench.run(ready + quiet)
        before = len(scheduled)
        bench.run(ready + quiet + 4000)
        assert len(bench.delivered) > 50
        events.append(len(scheduled) - before)
    few, many = events
    assert many - few < 34, "less than one event for each idle port"


def test_a_packet_crosses_two_switches(star):
    nodes = {
        "s": SwitchParameters(2),
        "t": SwitchParameters(2),
        "a": AdapterParameters(),
        "b": AdapterParameters(),
    }
    links = (LinkParameters("a", 1, "s", 1), LinkParameters("s", 2, "t", 1, 3), LinkParameters("t", 2, "b", 1))
    words = star.words(1, 2, payload=256)
    controls = [Control(i, Operation.BUS_WRITE, node, (0x80 << 16 | 2, 2, 0, 0)) for i, node in enumerate((0, 1))]
    controls.append(Control(2, Operation.BUS_WRITE, 3, (2, 2, 0, 0)))
    for state, cycle in ((PortState.ARMED, 100), (PortState.ACTIVE, 200)):
        for node, port in ((0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (3, 1)):
            cycle += 1
            controls.append(Control(cycle, Operation.BUS_WRITE, node, (port << 16, state, 0, 0)))
    delivered = []
    records = list(
        Fabric(FabricParameters(nodes, links), controls, [Post.of_words(500, 2, 0, words)], delivered.append).run(2000)
    )
    starts = [record.c for record in records if record.kind == Kind.TX_DATA]
    assert [later - earlier for earlier, later in pairwise(starts)] == [1 + 8, 3 + 8]
    assert len(delivered) == 1


@pytest.mark.parametrize(
    ("controls", "posts", "message"),
    [
        ([Control(5, 1, 0), Control(5, 1, 0)], [], "control in cycle 5: expected 6"),
        ([Control(5, 1, 7)], [], "control for node 7: expected 0..2"),
        ([Control(5, 4, 7)], [], "control for link 7: expected 0..1"),
        ([Control(5, 10, 0)], [], "control operation 10"),
        ([], [Post.of_words(1, 0, 0, (1,) * 8)], "node 0 is no adapter"),
        ([], iter([Post.of_words(9, 1, 0, (1,) * 8), Post.of_words(8, 1, 0, (1,) * 8)]), "post in cycle 8: expected 9"),
    ],
)
def test_stimulus_that_makes_no_sense_is_refused(star, controls, posts, message):
    with pytest.raises(ValueError, match=message):
        list(Fabric(star(2).parameters, controls, posts).run(100))


def stormy(star, ready, seed):
    """Random traffic, errors, cable pulls and state changes on a random star."""
    rng = random.Random(seed)
    ports, vls, queueing = rng.choice([2, 3, 4]), rng.choice([1, 2, 4]), rng.choice(["voq", "fifo"])
    bench = star(
        ports,
        flight=rng.choice([1, 2, 7, 40, 300]),
        vls=vls,
        mtu=256,
        buffer_blocks=rng.choice([7, 12, 40]),
        queueing=queueing,
        readers=1 if queueing == "fifo" else 2,
        adapter={"mtu": 256, "receive_blocks": rng.choice([7, 30])},
    )
    ends = [end for port in range(1, ports + 1) for end in ((0, port), (port, 1))]
    for node, port in ends:
        bench.write_port(node, port, PortRegister.FCP_PERIOD, rng.randrange(300, 2000))
        bench.write_port(node, port, PortRegister.FCP_THRESHOLD, rng.randrange(8))
        bench.write_port(node, port, PortRegister.FC_WATCHDOG, rng.randrange(400, 5000))
        bench.write_port(node, port, PortRegister.LINK_DOWN_TIMEOUT, rng.randrange(20, 2000))
        if node == 0 and rng.random() < 0.4:
            bench.write_port(0, port, PortRegister.WIDTH, 1)
            bench.write_port(port, 1, PortRegister.WIDTH, 1)
    for source in range(1, ports + 1):
        for slot in range(vls + 1):
            cycle = ready
            for i in range(rng.randrange(12)):
                cycle += rng.randrange(800)
                vl = VL15 if slot == vls else slot
                target = rng.randrange(1, ports + 2)
                bench.post(cycle, source, target, slot, payload=rng.choice([0, 8, 100, 256]), sl=slot, vl=vl, seed=i)
    events = rng.sample(range(ready, 8000), 160)
    for cycle in events[: rng.choice([0, 100])]:
        flip = rng.choice([1 << rng.randrange(36), 0x8_FB00_0000, 0x8_5C00_0000, 0x1_0000_00FD, rng.getrandbits(36)])
        keep = rng.choice([0, (1 << 36) - 1])
        row = rng.choice([0, 0, 1, 1, 2, rng.randrange(70)])
        last = rng.choice([row, ROW_MAX])
        injection = Injection(rng.choice(list(Trigger)), row, last, rng.random() < 0.3, keep, flip)
        bench.inject(cycle, rng.randrange(ports), rng.randrange(2), injection)
    for cycle in events[100 : rng.choice([100, 110])]:
        link = rng.randrange(ports)
        bench.link(cycle, link, False)
        bench.link(next(c for c in range(cycle + rng.randrange(1, 400), 9000) if c not in events), link, True)
        break
    for cycle in events[110 : rng.choice([110, 130])]:
        node, port = rng.choice(ends)
        register, values = rng.choice([(PortRegister.STATE, [1, 3, 4]), (PortRegister.OPERATIONAL_VLS, [1, 2])])
        bench.write_port(node, port, register, rng.choice(values), cycle)
    manage(bench, ready, rng, events[130:])
    for i, (node, port) in enumerate(ends * 2):
        state = PortState.ARMED if i < len(ends) else PortState.ACTIVE
        bench.write_port(node, port, PortRegister.STATE, state, 9500 + 40 * i)
    for i, (node, port) in enumerate(ends):
        for j, counter in enumerate(Counter):
            bench.read_port(node, port, counter, 14_000 + 20 * i + j)
    return bench


def manage(bench, ready, rng, cycles):
    """Hosts ask and set; ports fall asleep and wake; some packets for a switch are none of its business."""
    ports = bench.ports
    requests = [
        (MadMethod.GET, SmaAttribute.NODE_INFO, 0, b""),
        (MadMethod.GET, SmaAttribute.PORT_INFO, 1, b""),
        (MadMethod.SET, SmaAttribute.SWITCH_INFO, 0, SWITCH_INFO.pack(linear_fdb_top=9, port_state_change=1)),
        (MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE, 0, bytes([0, *range(1, ports + 1)])),
        (MadMethod.SET, SmaAttribute.PORT_INFO, 0, PORT_INFO.pack(lid=7, master_sm_lid=1, m_key=5)),
        (MadMethod.SET, SmaAttribute.PORT_INFO, 1, PORT_INFO.pack(lid=8, master_sm_lid=1, port_state=1)),
    ]
    for source in range(1, ports + 1):
        cycle = ready
        for i in range(rng.randrange(6)):
            cycle += rng.randrange(1200)
            path = rng.choice([None, [], [1], [1, rng.randrange(ports + 2)]])
            method, attribute, modifier, data = rng.choice(requests)
            smp = smp_request(method, attribute, modifier, data, transaction_id=i, path=path)
            bench.smp(cycle, source, smp, **({"slid": source, "dlid": rng.randrange(8)} if path is None else {}))
    for cycle in cycles[:20]:
        match rng.randrange(3):
            case 0:
                bench.write(0, lft_address(rng.randrange(1, ports + 1)), rng.randrange(ports + 1), cycle)
            case 1:
                port = rng.randrange(1, ports + 1)
                node, port = rng.choice([(0, port), (port, 1)])
                bench.write_port(node, port, PortRegister.PHYSICAL_STATE, rng.choice([1, 2, 2, 2, 3]), cycle)
            case 2:
                bench.host_sm(cycle, rng.randrange(1, ports + 1), rng.random() < 0.5)


@pytest.mark.parametrize("seed", first_of(range(30), 10))
def test_a_packet_taken_whole_is_what_its_rows_would_have_been(star, ready, seed, monkeypatch):
    """Two paths through the receiver: rows by the framing table always, or only where it matters."""
    quick = stormy(star, ready, seed).run(15_000).records
    monkeypatch.setattr(Transmission, "irregular", property(lambda _: True, lambda *_: None))
    by_rows = stormy(star, ready, seed).run(15_000).records
    assert quick == by_rows


@pytest.mark.parametrize("seed", first_of([1, 26, 37, 45, 56, 58], 3))  # in these, records are withdrawn
def test_records_of_kinds_that_nobody_reads_are_left_out_and_nothing_else_changes(star, ready, seed):
    whole, part = stormy(star, ready, seed).run(15_000), stormy(star, ready, seed)
    part.kinds = {Kind.STATE, Kind.TX_DISCARD, Kind.BUS_READ}
    part.run(15_000)
    assert part.records == [record for record in whole.records if record.kind in part.kinds]
    assert {record.kind for record in part.records} >= {Kind.STATE, Kind.BUS_READ}
    assert part.delivered == whole.delivered


@pytest.mark.parametrize("seed", first_of(range(100, 115), 5))
def test_what_the_matching_passes_over_would_have_chosen_nothing(star, ready, seed):
    """A pass over all outputs in every cycle, and flags computed in every cycle, change nothing."""
    quick = stormy(star, ready, seed).run(15_000).records
    thorough = stormy(star, ready, seed).run(0)
    kernel = thorough.fabric.kernel
    ports = [port for node in thorough.fabric.nodes for port in node.ports]
    hosts = [node.host for node in thorough.fabric.nodes if hasattr(node, "host")]

    def everywhere(_):
        for port in ports:
            port.flow.announcement_changes()
        for host in hosts:
            host.stall(~host.gate.open_slots)
        kernel.at(kernel.now + 1, DECIDE, everywhere)

    kernel.at(0, DECIDE, everywhere)
    assert thorough.run(15_000).records == quick


@pytest.mark.parametrize("seed", first_of(range(100, 107), 4))
def test_the_matching_goes_by_the_port_as_it_was_two_cycles_before(star, ready, seed, monkeypatch):
    bench = stormy(star, ready, seed).run(0)
    kernel = bench.fabric.kernel
    ports = [port for node in bench.fabric.nodes for port in node.ports]
    visible = {port.output.gate: deque(maxlen=3) for port in ports}
    asked = []

    def room(port, slot):
        """What section 7 says of a slot, by what is visible in the current cycle."""
        status = port.status
        if slot == status.vls:
            return SWALLOWED if status.state in (PortState.DOWN, PortState.ACTIVE_DEFER) else None
        if status.state == PortState.ACTIVE_DEFER:
            return "waits"
        if status.state != PortState.ACTIVE or slot >= status.operational:
            return SWALLOWED
        return (port.flow.credit_limit[slot] - port.flow.tbs[slot]) % 4096

    def look(_):
        for port in ports:
            visible[port.output.gate].append([room(port, slot) for slot in range(port.status.vls + 1)])
        kernel.at(kernel.now + 1, DECIDE, look)

    def checked(gate, slot):
        given = eligible_room(gate, slot)
        assert given == visible[gate][0][slot]
        asked.append(given)
        return given

    kernel.at(0, DECIDE, look)
    eligible_room = Eligibility.room
    monkeypatch.setattr(Eligibility, "room", checked)
    bench.run(15_000)
    assert asked


@pytest.mark.parametrize(("hosts", "vls"), [(2, 2), (3, 4)])
def test_hosts_that_always_send_on_every_vl_to_another_are_served_alike_on_each(star, ready, hosts, vls):
    """Though VLs and inputs take turns at the same output."""
    bench = star(hosts + 1, vls=vls, mtu=256)
    for i in range(1, hosts + 1):
        for vl in range(vls):
            for _ in range(400 // (hosts * vls)):
                bench.post(ready, i, hosts + 1, slot=vl, sl=vl, payload=128)
    bench.run(ready + 200 * 45)
    arrived = Tally((packet.data[6:8], packet.slot) for packet in bench.delivered)
    assert len(arrived) == hosts * vls
    assert min(arrived.values()) >= 0.9 * max(arrived.values()) > 10
