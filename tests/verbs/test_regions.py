"""Memory regions, windows and keys (IBTA vol 1, 10.6)."""

import pytest

from tests.verbs.ends import ALL_ACCESS, MEMORY_BASE, End, connected, make_end, wire_between
from verbs.completions import CompletionOpcode, CompletionStatus
from verbs.memory import BufferMemory, MemoryFaultError
from verbs.regions import Access, MemoryWindow, ProtectionError
from verbs.work import ScatterGather, SendOpcode, SendRequest, WindowBinding

SUCCESS = CompletionStatus.SUCCESS


def bind(end: End, window: MemoryWindow, va: int, length: int, access: Access, *, key: int = 0) -> None:
    """Posts a BIND_MW; `key` changes the variant."""
    binding = WindowBinding(window, window.key ^ key, end.region.key, va, length, access)
    end.qp.post_send(SendRequest(0, SendOpcode.BIND_MW, binding=binding))
    end.adapter.poll(0)


def write(a: End, b: End, va: int, r_key: int, length: int = 16) -> CompletionStatus:
    a.qp.post_send(SendRequest(0, SendOpcode.RDMA_WRITE, [a.piece(0, length)], remote_va=va, r_key=r_key))
    wire_between(a, b).run()
    return a.sent()[-1].status


def test_remote_rights_to_change_memory_need_the_local_one() -> None:
    end = make_end(1)
    for access in (Access.REMOTE_WRITE, Access.REMOTE_ATOMIC):
        with pytest.raises(ValueError, match="need LOCAL_WRITE"):
            end.adapter.keys.register(end.pd, end.memory, MEMORY_BASE, 64, access)


def test_a_region_may_be_called_by_other_addresses_than_its_own() -> None:
    a, b = connected()
    for access, iova, first in ((ALL_ACCESS, 0x5000_0000, 0x5000_0000), (ALL_ACCESS | Access.ZERO_BASED, None, 0)):
        region = b.adapter.keys.register(b.pd, b.memory, MEMORY_BASE + 256, 64, access, iova)
        a.put(0, bytes([first & 0xFF | 1]) * 16)
        assert write(a, b, first + 8, region.key) is SUCCESS
        assert b.get(264, 16) == a.get(0, 16)


def test_a_key_is_of_nothing_once_its_region_has_ended() -> None:
    a, b = connected()
    region = b.adapter.keys.register(b.pd, b.memory, MEMORY_BASE, 64, ALL_ACCESS)
    b.adapter.keys.deregister(region)
    assert write(a, b, MEMORY_BASE, region.key) is CompletionStatus.REM_ACCESS_ERR


def test_a_window_of_type_2_gives_its_part_of_a_region_to_the_peer_of_its_queue_pair() -> None:
    a, b = connected()
    window = b.adapter.keys.allocate_window(b.pd, 2)
    bind(b, window, MEMORY_BASE + 100, 50, Access.REMOTE_WRITE, key=5)
    [bound] = b.sent()
    assert (bound.status, bound.opcode) == (SUCCESS, CompletionOpcode.BIND_MW)
    assert write(a, b, MEMORY_BASE + 100, window.key) is SUCCESS
    assert write(a, b, MEMORY_BASE + 140, window.key) is CompletionStatus.REM_ACCESS_ERR


@pytest.mark.parametrize("window_type", [1, 2])
def test_a_bound_window_holds_its_region(window_type: int) -> None:
    end = make_end(1)
    keys = end.adapter.keys
    window = keys.allocate_window(end.pd, window_type)
    where = {"pd": end.pd, "qp_number": end.qp.number, "new_key": window.key}
    keys.bind(window, end.region.key, MEMORY_BASE, 64, Access.REMOTE_READ, **where)
    with pytest.raises(ValueError, match=f"is used by window {window.key:#x}"):
        keys.deregister(end.region)
    keys.deallocate_window(window)
    keys.deregister(end.region)


def test_a_window_of_another_queue_pair_is_refused() -> None:
    a, b = connected()
    window = b.adapter.keys.allocate_window(b.pd, 2)
    where = {"pd": b.pd, "qp_number": b.qp.number + 1, "new_key": window.key}
    b.adapter.keys.bind(window, b.region.key, MEMORY_BASE, 64, Access.REMOTE_WRITE, **where)
    assert write(a, b, MEMORY_BASE, window.key) is CompletionStatus.REM_ACCESS_ERR


def test_an_invalidated_window_gives_nothing_and_may_be_bound_again() -> None:
    a, b = connected()
    window = b.adapter.keys.allocate_window(b.pd, 2)
    bind(b, window, MEMORY_BASE, 64, Access.REMOTE_WRITE)
    b.qp.post_send(SendRequest(0, SendOpcode.LOCAL_INV, r_key=window.key))
    bind(b, window, MEMORY_BASE, 64, Access.REMOTE_WRITE, key=1)
    assert [entry.status for entry in b.sent()] == [SUCCESS] * 3
    assert write(a, b, MEMORY_BASE, window.key) is SUCCESS
    assert write(a, b, MEMORY_BASE, window.key ^ 1) is CompletionStatus.REM_ACCESS_ERR


def test_what_cannot_be_bound_is_a_bind_error_and_nothing_changes() -> None:
    reasons = [
        (0, MEMORY_BASE - 1, 64, ALL_ACCESS),
        (1 << 8, MEMORY_BASE, 64, ALL_ACCESS),
    ]
    for key, va, length, _access in reasons:
        _a, b = connected()
        window = b.adapter.keys.allocate_window(b.pd, 2)
        before = window.key
        bind(b, window, va, length, Access.REMOTE_READ, key=key)
        assert [entry.status for entry in b.sent()] == [CompletionStatus.MW_BIND_ERR]
        assert (window.key, window.region) == (before, None)


def test_regions_without_the_right_to_be_bound_to_and_without_local_write_are_not() -> None:
    end = make_end(1)
    keys = end.adapter.keys
    window = keys.allocate_window(end.pd, 1)
    where = {"pd": end.pd, "qp_number": 2, "new_key": window.key}
    for access, asked in ((Access.LOCAL_WRITE, Access.REMOTE_READ), (Access.MW_BIND, Access.REMOTE_WRITE)):
        region = keys.register(end.pd, end.memory, MEMORY_BASE, 64, access)
        with pytest.raises(ProtectionError):
            keys.bind(window, region.key, MEMORY_BASE, 64, asked, **where)


def test_memory_says_what_it_has() -> None:
    memory = BufferMemory(16, 0x100)
    memory.write(0x10C, b"abcd")
    assert memory.read(0x10E, 2) == b"cd"
    for address in (0xFF, 0x10D):
        with pytest.raises(MemoryFaultError, match=r"allowed 0x100\.\.0x110"):
            memory.read(address, 4)


def test_memory_of_another_domain_is_not_reached_by_its_l_key() -> None:
    a, b = connected()
    other = a.adapter.keys.register(a.adapter.allocate_pd(), a.memory, MEMORY_BASE, 64, ALL_ACCESS)
    a.qp.post_send(SendRequest(0, SendOpcode.SEND, [ScatterGather(MEMORY_BASE, 8, other.key)]))
    wire_between(a, b).run()
    assert [entry.status for entry in a.sent()] == [CompletionStatus.LOC_PROT_ERR]


def test_a_window_of_another_queue_pair_is_not_invalidated() -> None:
    _a, b = connected()
    window = b.adapter.keys.allocate_window(b.pd, 2)
    where = {"pd": b.pd, "qp_number": b.qp.number + 1, "new_key": window.key}
    b.adapter.keys.bind(window, b.region.key, MEMORY_BASE, 64, Access.REMOTE_WRITE, **where)
    b.qp.post_send(SendRequest(0, SendOpcode.LOCAL_INV, r_key=window.key))
    b.adapter.poll(0)
    assert [entry.status for entry in b.sent()] == [CompletionStatus.LOC_QP_OP_ERR]
    assert window.region is b.region


def test_a_window_of_type_2_that_is_bound_is_not_bound_again() -> None:
    _a, b = connected()
    window = b.adapter.keys.allocate_window(b.pd, 2)
    bind(b, window, MEMORY_BASE, 64, Access.REMOTE_WRITE)
    bind(b, window, MEMORY_BASE, 32, Access.REMOTE_WRITE, key=1)
    assert [entry.status for entry in b.sent()] == [SUCCESS, CompletionStatus.MW_BIND_ERR]
    assert window.length == 64
