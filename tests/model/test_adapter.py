"""The channel adapter (docs/pipeline.md, section 9)."""

from wire.codes import VL15
from wire.registers import NodeRegister, PortRegister, node_address
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData


def test_streams_take_turns_and_vl15_waits_for_its_turn_only_here(star, ready):
    bench = star(2, vls=2)
    for i in range(2):
        for slot in range(3):
            bench.post(ready, 1, 2, slot=slot, sl=slot, vl=VL15 if slot == 2 else slot, payload=256, seed=i)
    bench.run(4000)
    assert [record.a for record in bench.of(Kind.SEND)] == [0, 1, 2] * 2


def test_packets_are_taken_one_word_a_cycle(star, ready):
    bench = star(2)
    for i in range(3):
        bench.post(ready + i, 1, 2, payload=256, seed=i)
    bench.run(2000)
    n = len(bench.words(1, 2, payload=256))
    assert [record.cycle for record in bench.of(Kind.SEND)] == [ready + 1 + (n + 1) * i for i in range(3)]


def test_a_stream_waits_for_room_in_the_send_buffer(star, ready):
    bench = star(2, mtu=256, adapter={"mtu": 256, "send_blocks": 7})
    for i in range(2):
        bench.post(ready, 1, 2, payload=256, seed=i)
    bench.run(2000)
    n = len(bench.words(1, 2, payload=256))
    first, second = [record.cycle for record in bench.of(Kind.SEND)]
    read_last = first + n + 2 + 1 + 1 + n
    # Released one cycle after the last read, visible the next, taken in it, SEND one later.
    assert second == read_last + 1 + 1 + 1


def test_a_stalled_slot_waits_and_the_others_pass(star, ready):
    bench = star(2, vls=2)
    bench.stall(ready, 2, 0b001)
    for slot in (0, 1):
        bench.post(ready + 10, 1, 2, slot=slot, sl=slot, payload=256)
    bench.stall(1900, 2, 0)
    bench.run(3000)
    n = len(bench.words(1, 2, payload=256))
    assert [delivery.slot for delivery in bench.delivered] == [1, 0]
    # From 1901 on: grant 1901, row r read at 1902 + r, word w three cycles after row w + 1.
    given = bench.of(Kind.DELIVER, 2)[1]
    assert given.c == 1901 + 1 + 1 + 3
    assert bench.delivered[1].cycle == given.cycle == given.c + n - 1


def test_a_packet_is_measured_against_neighbormtu_three_cycles_after_its_turn(star, ready):
    for given, swallowed in ((ready + 1, 1), (ready + 2, 0)):  # visible at 1003, 1004
        bench = star(2)
        bench.write_port(1, 1, PortRegister.NEIGHBOR_MTU, 1, given)
        bench.post(ready, 1, 2, payload=512)
        bench.run(3000)
        assert len(bench.of(Kind.TX_DISCARD, 1)) == swallowed


def test_an_adapter_takes_its_lids_multicast_and_permissive_smps_only(star, ready):
    bench = star(2)
    bench.write(2, node_address(NodeRegister.LMC), 1, ready)
    bench.write(2, node_address(NodeRegister.LID), 3, ready + 1)
    bench.write(0, 0x80 << 16 | 3, 2, ready + 2)
    bench.write(0, 0x80 << 16 | 4, 2, ready + 3)
    for i, lid in enumerate((2, 3, 4)):
        bench.post(ready + 100 + 100 * i, 1, lid, payload=12)
    bench.run(2000)
    verdicts = [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 2)]
    assert verdicts == [Verdict.GOOD, Verdict.GOOD, Verdict.DLID]
