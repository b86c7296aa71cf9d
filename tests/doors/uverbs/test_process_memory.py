"""The memory of other processes."""

import ctypes
import mmap
import os

import pytest

from doors.uverbs.process_memory import ProcessMemory
from tests.doors.verbs_client import other_process
from verbs.memory import MemoryFaultError


def test_what_a_process_has_is_read_and_written():
    with other_process() as (process, address):
        memory = ProcessMemory(process.pid)
        assert memory.read(address, 6) == b"theirs"
        for data in (b"", b"1", b"12345678", b"123456789", os.urandom(60_000)):
            memory.write(address + 3, data)
            assert memory.read(address + 3, len(data)) == data
        memory.close()


def test_memory_of_a_process_that_has_ended_is_a_fault():
    with other_process() as (process, address):
        memory = ProcessMemory(process.pid)
    with pytest.raises(MemoryFaultError):
        memory.read(address, 6)
    with pytest.raises(MemoryFaultError):
        memory.write(address, b"x")
    memory.close()


@pytest.mark.parametrize("address", [0, 1 << 47, (1 << 63) - 1, (1 << 64) - 1])
def test_an_address_of_nothing_is_a_fault(address):
    memory = ProcessMemory(os.getpid())
    with pytest.raises(MemoryFaultError, match=f"at {address:#x}"):
        memory.read(address, 8)
    with pytest.raises(MemoryFaultError, match=f"at {address:#x}"):
        memory.write(address, bytes(8))
    memory.close()


def test_a_range_that_ends_in_nothing_is_a_fault(tmp_path):
    with (tmp_path / "pages").open("w+b") as file:
        file.truncate(2 * mmap.PAGESIZE)
        pages = mmap.mmap(file.fileno(), 2 * mmap.PAGESIZE)
        file.truncate(mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    memory = ProcessMemory(os.getpid())
    assert memory.read(address, mmap.PAGESIZE) == bytes(mmap.PAGESIZE)
    with pytest.raises(MemoryFaultError):
        memory.read(address, 2 * mmap.PAGESIZE)
    with pytest.raises(MemoryFaultError):
        memory.write(address, bytes(2 * mmap.PAGESIZE))
    memory.close()
