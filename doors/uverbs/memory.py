"""Protection domains, memory regions and windows of a program."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from doors.mads.umad_device import DeviceError
from doors.uverbs.context import Command, Context, Handled, Reply, check
from doors.uverbs.layouts import ALLOC_MW_RESP, ALLOC_PD_RESP, REG_MR_RESP, REREG_MR_RESP
from verbs.adapter import Adapter
from verbs.regions import Access, InUseError, KeyTable, MemoryRegion, MemoryWindow, Place, ProtectionDomain

__all__ = [
    "Domain",
    "alloc_mw",
    "alloc_pd",
    "dealloc_mw",
    "dealloc_pd",
    "dereg_mr",
    "reg_mr",
    "rereg_mr",
]

_ON_DEMAND: Final = 1 << 6
_HUGE: Final = 1 << 7
_OPTIONAL: Final = 0x3FF00000
"""IBV_ACCESS_ON_DEMAND, _HUGETLB, and the range of those that a device may leave alone (_RELAXED_ORDERING)."""

_KNOWN: Final = sum(Access)
_TRANSLATION, _DOMAIN, _ACCESS = 1, 2, 4
"""enum ibv_rereg_mr_flags."""

_WINDOW_TYPES: Final = (1, 2)
_ADDRESS_END: Final = 1 << 64


@dataclass(eq=False, slots=True)
class Domain(Handled):
    """A protection domain."""

    RANK = 2

    adapter: Adapter
    domain: ProtectionDomain

    def end(self) -> None:
        """See `Handled`."""
        self.adapter.deallocate_pd(self.domain)


@dataclass(eq=False, slots=True)
class Region(Handled):
    """A memory region, and what lets go of the memory that it is in."""

    keys: KeyTable
    region: MemoryRegion
    release: Callable[[], None]

    def end(self) -> None:
        """See `Handled`."""
        self.keys.deregister(self.region)
        self.release()


@dataclass(eq=False, slots=True)
class Window(Handled):
    """A memory window."""

    RANK = 0

    keys: KeyTable
    window: MemoryWindow

    def end(self) -> None:
        """See `Handled`."""
        self.keys.deallocate_window(self.window)


def alloc_pd(context: Context, _fields: Any, _command: Command) -> Reply:
    """A protection domain."""
    adapter = context.host.adapter
    domain = context.add(Domain(adapter, adapter.allocate_pd()))
    return Reply(ALLOC_PD_RESP.pack(pd_handle=domain.handle))


def dealloc_pd(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end."""
    context.remove(context.get(fields.handle, Domain))
    return Reply()


def _access(flags: int) -> Access:
    check(not flags & ~(_KNOWN | _ON_DEMAND | _HUGE | _OPTIONAL))
    return Access(flags & _KNOWN)


def _check_range(fields: Any) -> None:
    check(fields.start + fields.length <= _ADDRESS_END and fields.hca_va + fields.length <= _ADDRESS_END)


def reg_mr(context: Context, fields: Any, command: Command) -> Reply:
    """A region of the memory of the process that asks."""
    domain = context.get(fields.pd_handle, Domain)
    access = _access(fields.access_flags)
    _check_range(fields)
    memory, release = context.memory_of(command.process)
    keys = context.host.adapter.keys
    try:
        made = keys.register(domain.domain, memory, fields.start, fields.length, access, fields.hca_va)
    except ValueError:
        release()
        raise DeviceError(errno.EINVAL) from None
    region = context.add(Region(keys, made, release))
    return Reply(REG_MR_RESP.pack(mr_handle=region.handle, lkey=made.key, rkey=made.key))


def rereg_mr(context: Context, fields: Any, command: Command) -> Reply:
    """Changes what a region is of, its domain or its rights."""
    region = context.get(fields.mr_handle, Region)
    check(fields.flags and not fields.flags & ~(_TRANSLATION | _DOMAIN | _ACCESS))
    domain = context.get(fields.pd_handle, Domain).domain if fields.flags & _DOMAIN else None
    access = _access(fields.access_flags) if fields.flags & _ACCESS else None
    place, release = None, region.release
    if fields.flags & _TRANSLATION:
        _check_range(fields)
        memory, release = context.memory_of(command.process)
        place = Place(memory, fields.start), fields.length, fields.hca_va
    try:
        region.keys.reregister(region.region, pd=domain, place=place, access=access)
    except ValueError as error:
        if place is not None:
            release()
        raise DeviceError(errno.EBUSY if isinstance(error, InUseError) else errno.EINVAL) from None
    if place is not None:
        region.release()
        region.release = release
    return Reply(REREG_MR_RESP.pack(lkey=region.region.key, rkey=region.region.key))


def dereg_mr(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end."""
    context.remove(context.get(fields.handle, Region))
    return Reply()


def alloc_mw(context: Context, fields: Any, _command: Command) -> Reply:
    """A window."""
    domain = context.get(fields.pd_handle, Domain)
    check(fields.mw_type in _WINDOW_TYPES)
    keys = context.host.adapter.keys
    window = context.add(Window(keys, keys.allocate_window(domain.domain, fields.mw_type)))
    return Reply(ALLOC_MW_RESP.pack(mw_handle=window.handle, rkey=window.window.key))


def dealloc_mw(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end."""
    context.remove(context.get(fields.handle, Window))
    return Reply()
