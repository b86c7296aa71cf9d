"""Mail formats: what Python writes is what a player reads, and files are read only as far as they are whole."""

import struct
from pathlib import Path

import pytest

from cosim.harness.stream_files import (
    CONTROL_FILE,
    DELIVERY_HEAD,
    IDENTITY_FILE,
    IDLE_FILE,
    WIRE_ENTRY,
    DeliveryReader,
    Outbox,
    TraceReader,
    stream_file,
    wire_file,
    write_surroundings,
)
from rtl.fabric.ports import FabricPorts
from wire.node_info import NodeType
from wire.parameters import NodeIdentity
from wire.stimulus import Control, Delivery, Operation, Post
from wire.symbols import IDLE_PERIOD, idle_byte
from wire.trace import RECORD, Kind, Record

PORTS = FabricPorts(streams=((0, 0), (0, 1), (2, 0)), hosts=(0, 2), trace=())


def test_control_operation_has_its_first_argument_lowest(tmp_path: Path) -> None:
    with Outbox(tmp_path, PORTS) as outbox:
        outbox.control(Control(7, Operation.INJECT, 3, (1, 2, 3, 4)))
        assert outbox.controls == 1
    vector = int.from_bytes((tmp_path / CONTROL_FILE).read_bytes(), "big")
    assert vector & (1 << 128) - 1 == 1 | 2 << 32 | 3 << 64 | 4 << 96
    assert vector >> 128 == 7 << 32 | Operation.INJECT << 16 | 3


def test_each_stream_has_a_file_of_its_own(tmp_path: Path) -> None:
    with Outbox(tmp_path, PORTS) as outbox:
        outbox.packet(Post.of_words(5, 2, 0, (0x01020304, 0xFFFFFFFF)))
        outbox.packet(Post.of_words(9, 2, 0, (1, 2, 3)))
        assert outbox.packets == [0, 0, 2]
    expected = struct.pack(">QIII", 5, 2, 0x01020304, 0xFFFFFFFF) + struct.pack(">QI3I", 9, 3, 1, 2, 3)
    assert (tmp_path / stream_file(2)).read_bytes() == expected
    assert not (tmp_path / stream_file(0)).exists()


def disk_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_packets_that_were_read_take_no_disk_and_those_after_stay(tmp_path: Path) -> None:
    words = tuple(range(1000))
    count = 600  # 2.4 MB
    with Outbox(tmp_path, PORTS) as outbox:
        for cycle in range(count):
            outbox.packet(Post.of_words(cycle, 2, 0, words))
        outbox.flush()
        full = disk_bytes(tmp_path / stream_file(2))
        outbox.forget([0, 0, count - 2])
        outbox.packet(Post.of_words(count, 2, 0, (1, 2)))
    file = tmp_path / stream_file(2)
    assert disk_bytes(file) < full / 100
    last_two = struct.pack(">QI1000I", count - 2, 1000, *words) + struct.pack(">QI1000I", count - 1, 1000, *words)
    assert file.read_bytes().endswith(last_two + struct.pack(">QI2I", count, 2, 1, 2))


def test_records_that_were_read_take_no_disk_and_those_after_come(tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    record = Record(7, 1, Kind.SEND, 1, 2, 3, 4, 5)
    path.write_bytes(RECORD.pack(*record) * 100_000)
    full = disk_bytes(path)
    reader = TraceReader(path)
    assert sum(1 for _ in reader.new()) == 100_000
    reader.forget()
    assert disk_bytes(path) < full / 100
    with path.open("ab") as file:
        file.write(RECORD.pack(*record))
    assert list(reader.new()) == [record]
    reader.close()


def test_each_open_port_of_a_part_has_two_files_of_entries(tmp_path: Path) -> None:
    part = FabricPorts(streams=((0, 0),), hosts=(0,), trace=(), open=((0, 1), (1, 4)), identities=2)
    entries = [WIRE_ENTRY.pack(cycle, 1, 8, 0, 7) for cycle in (3, 4)]
    with Outbox(tmp_path, part) as outbox:
        outbox.packet(Post.of_words(1, 0, 0, (1, 2)))
        outbox.wire(2, b"".join(entries))
        assert outbox.posted == [1, 0, 0, 2, 0]
        outbox.flush()
        assert (tmp_path / wire_file(2)).read_bytes() == b"".join(entries)
        assert (tmp_path / wire_file(3)).read_bytes() == b""


def test_entries_that_were_read_take_no_disk(tmp_path: Path) -> None:
    part = FabricPorts(streams=(), hosts=(), trace=(), open=((0, 1),), identities=1)
    count = 150_000  # 2.4 MB
    with Outbox(tmp_path, part) as outbox:
        outbox.wire(1, b"".join(WIRE_ENTRY.pack(cycle, 1, 0, 0, cycle) for cycle in range(count)))
        outbox.flush()
        full = disk_bytes(tmp_path / wire_file(1))
        outbox.forget([0, count - 1])
    assert disk_bytes(tmp_path / wire_file(1)) < full / 100
    assert (tmp_path / wire_file(1)).read_bytes().endswith(WIRE_ENTRY.pack(count - 1, 1, 0, 0, count - 1))


def test_a_part_reads_who_its_nodes_are(tmp_path: Path) -> None:
    write_surroundings(tmp_path, [NodeIdentity(1, 2, "one"), NodeIdentity(3, 4, "two", 5, 4, NodeType.ROUTER)])
    expected = b"".join(
        guid.to_bytes(8, "big") + (guid + 1).to_bytes(8, "big") + name.ljust(64, b"\0") + type_and_ports
        for guid, name, type_and_ports in ((1, b"one", b"\1\1\1"), (3, b"two", b"\3\5\4"))
    )
    assert (tmp_path / IDENTITY_FILE).read_bytes() == expected
    assert list((tmp_path / IDLE_FILE).read_bytes()) == [idle_byte(step) for step in range(IDLE_PERIOD)]


def test_post_for_a_slot_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with Outbox(tmp_path, PORTS) as outbox, pytest.raises(KeyError):
        outbox.packet(Post.of_words(0, 2, 1, (1, 2)))


def test_flushed_post_can_be_read_before_the_file_is_closed(tmp_path: Path) -> None:
    with Outbox(tmp_path, PORTS) as outbox:
        outbox.packet(Post.of_words(0, 0, 1, (1, 2)))
        outbox.flush()
        assert len((tmp_path / stream_file(1)).read_bytes()) == 12 + 8


def delivery_bytes(cycle: int, node: int, slot: int, words: list[int]) -> bytes:
    rest = [0xDEAD] * (-len(words) % 16)
    return DELIVERY_HEAD.pack(cycle, node, slot, len(words)) + struct.pack(f"<{len(words + rest)}I", *words, *rest)


@pytest.mark.parametrize("size", [2, 16, 17, 1055])
def test_delivery_is_read_once_it_is_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "deliveries"
    words = list(range(size))
    data = delivery_bytes(100, 3, 1, words)
    path.write_bytes(data[:-1])
    reader = DeliveryReader(path)
    assert reader.new() == []
    with path.open("ab") as file:
        file.write(data[-1:])
    assert reader.new() == [Delivery(100, 3, 1, struct.pack(f">{size}I", *words))]
    assert reader.new() == []
    reader.close()


def test_deliveries_of_a_cycle_are_ordered_by_node(tmp_path: Path) -> None:
    path = tmp_path / "deliveries"
    path.write_bytes(delivery_bytes(9, 2, 0, [1, 2]) + delivery_bytes(9, 1, 0, [3, 4]) + delivery_bytes(10, 0, 0, [5]))
    reader = DeliveryReader(path)
    assert [delivery.node for delivery in reader.new()] == [1, 2, 0]
    reader.close()


def test_trace_is_read_in_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    records = [Record(1, 2, Kind.SEND, 3, 4), Record(1 << 40, 0x8001, Kind.INJECT, 1, 2, 3, 4, 5)]
    data = b"".join(RECORD.pack(*record) for record in records)
    path.write_bytes(data[:40])
    reader = TraceReader(path)
    assert list(reader.new()) == records[:1]
    with path.open("ab") as file:
        file.write(data[40:])
    assert list(reader.new()) == records[1:]
    reader.close()
