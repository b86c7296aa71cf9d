"""The rings that programs and adapters share, whatever a program writes there."""

import mmap
import os

import pytest

from doors.uverbs.layouts import MMINFO, WC
from doors.uverbs.rxe_rings import CompletionRing, ReceiveRing, Ring, RingFile, SendRing
from tests.doors.verbs_client import Mapped, receive_wqe, send_wqe
from verbs.completions import CompletionFlag, CompletionOpcode, CompletionStatus, WorkCompletion


@pytest.fixture
def file():
    made = RingFile()
    yield made
    made.close()


def mapped(file: RingFile, ring: Ring) -> Mapped:
    where = MMINFO.unpack(ring.info)
    assert file.has(where.offset, where.size)
    return Mapped(mmap.mmap(file.descriptor, where.size, offset=where.offset))


def completion(number: int, flags: CompletionFlag = CompletionFlag.NONE) -> WorkCompletion:
    return WorkCompletion(number, CompletionStatus.SUCCESS, CompletionOpcode.RECV, 7, 1, 0x01020304, flags)


@pytest.mark.parametrize(("entries", "capacity"), [(1, 1), (2, 3), (3, 3), (4, 7), (100, 127)])
def test_a_ring_has_room_for_one_less_than_a_power_of_two(file, entries, capacity):
    ring = Ring(file, entries, 64)
    assert ring.capacity == capacity
    assert Ring.most(capacity) == capacity
    assert Ring.most(capacity + 1) == capacity


def test_completions_go_round_and_round(file):
    ring = CompletionRing(Ring(file, 3, 64))
    program = mapped(file, ring.ring)
    for first in range(0, 30, 3):
        for number in range(first, first + 3):
            ring.append(completion(number))
        assert len(ring) == 3
        assert [WC.unpack(program.take()).wr_id for _ in range(3)] == list(range(first, first + 3))
        assert (len(ring), program.take()) == (0, None)


def test_immediate_data_is_in_network_order_and_a_key_in_the_hosts(file):
    ring = CompletionRing(Ring(file, 3, 64))
    program = mapped(file, ring.ring)
    ring.append(completion(0, CompletionFlag.WITH_IMM))
    ring.append(completion(1, CompletionFlag.WITH_INV))
    assert [WC.unpack(program.take()).ex for _ in range(2)] == [b"\1\2\3\4", b"\4\3\2\1"]


def test_completions_that_were_not_polled_move_to_another_ring(file):
    ring = CompletionRing(Ring(file, 3, 64))
    program = mapped(file, ring.ring)
    for number in range(3):
        ring.append(completion(number))
    program.take()
    ring.move(Ring(file, 100, 64)).close()
    ring.append(completion(3))
    program = mapped(file, ring.ring)
    assert [WC.unpack(data).wr_id for data in iter(program.take, None)] == [1, 2, 3]


def test_receive_requests_move_to_another_ring(file):
    ring = ReceiveRing(Ring(file, 3, ReceiveRing.element(1)), 1)
    program = mapped(file, ring.ring)
    for number in range(3):
        program.put(receive_wqe(number, (0x1000, 8, 9)))
    assert ring.popleft().wr_id == 0
    program.put(receive_wqe(3))
    ring.move(Ring(file, 7, ReceiveRing.element(1))).close()
    mapped(file, ring.ring).put(receive_wqe(4))
    assert [ring.popleft().wr_id for _ in range(len(ring))] == [1, 2, 3, 4]


def test_no_more_pieces_are_taken_than_an_element_has_room_for(file):
    receives = ReceiveRing(Ring(file, 1, ReceiveRing.element(2)), 2)
    mapped(file, receives.ring).put(receive_wqe(0, (1, 2, 3), (4, 5, 6))[:28] + b"\xff\xff\xff\xff")
    assert len(receives.popleft().pieces) == 2
    sends = SendRing(Ring(file, 1, SendRing.element(2, 0)), 2)
    mapped(file, sends.ring).put(send_wqe(0)[:196] + b"\xff\xff\xff\xff")
    (posted,) = sends.drain()
    assert len(posted.pieces) == 2


@pytest.mark.parametrize("index", [5, 1 << 31, (1 << 32) - 1])
def test_an_index_that_is_a_lie_reaches_nothing_but_the_ring(file, index):
    ring = ReceiveRing(Ring(file, 3, ReceiveRing.element(0)), 0)
    program = mapped(file, ring.ring)
    program.memory[128:132] = index.to_bytes(4, "little")
    assert len(ring) == index & 3
    for _ in range(len(ring)):
        ring.popleft()
    assert len(ring) == 0


def test_requests_are_taken_once_and_stay_until_they_have_ended(file):
    sends = SendRing(Ring(file, 7, SendRing.element(0, 0)), 0)
    program = mapped(file, sends.ring)
    for number in range(5):
        program.put(send_wqe(number))
    assert [posted.wr_id for posted in sends.drain()] == [0, 1, 2, 3, 4]
    assert list(sends.drain()) == []
    assert program.consumed == 0
    sends.ended()
    assert program.consumed == 1
    program.put(send_wqe(5))
    sends.clear()
    assert (program.consumed, list(sends.drain())) == (6, [])


def test_the_file_of_rings_cannot_be_cut_short_by_a_program(file):
    Ring(file, 100, 64)
    with pytest.raises(PermissionError):
        os.ftruncate(file.descriptor, 0)


def test_only_what_there_is_can_be_mapped(file):
    ring = Ring(file, 1, 64)
    size = MMINFO.unpack(ring.info).size
    assert file.has(0, size)
    assert not file.has(1, size)
    assert not file.has(1 << 40, size)
    assert not file.has(0, 1 << 40)
    assert not file.has(0, 0)


def test_a_ring_that_was_given_back_takes_no_memory(file):
    ring = Ring(file, 10_000, 64)
    program = mapped(file, ring)
    for index in range(10_000):
        ring.write(index, b"x" * 64)
    used = os.fstat(file.descriptor).st_blocks
    ring.close()
    assert os.fstat(file.descriptor).st_blocks < used // 10
    assert program.memory[384:448] == bytes(64)
