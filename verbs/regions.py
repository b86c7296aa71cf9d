"""Protection domains, memory regions, memory windows and their keys (IBTA vol 1, 10.2.3 and 10.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, NamedTuple

from verbs.limits import AdapterLimits
from verbs.memory import Memory

__all__ = [
    "Access",
    "InUseError",
    "KeyTable",
    "MemoryRegion",
    "MemoryWindow",
    "Place",
    "ProtectionDomain",
    "ProtectionError",
    "ReliableDomain",
    "XrcDomain",
]


class Access(IntFlag):
    """What may be done with memory, or by way of a queue pair. Reading it locally is always allowed."""

    NONE = 0
    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4
    REMOTE_ATOMIC = 8
    MW_BIND = 16
    ZERO_BASED = 32


REMOTE_CHANGES: Final = Access.REMOTE_WRITE | Access.REMOTE_ATOMIC
"""What needs local write access besides."""


def _are_within(rights: Access, others: Access) -> bool:
    """True if the others have all of these. As numbers: it is asked for each packet, and flags take their time."""
    return not int(rights) & ~int(others)


class ProtectionError(Exception):
    """A key, a range or a right that does not allow an access."""


class InUseError(ValueError):
    """Something that cannot go while others use it."""

    @classmethod
    def check(cls, what: str, users: Iterable[str]) -> None:
        """Refuses to let go what has users.

        Raises:
            InUseError: naming it and them.
        """
        if named := list(users):
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            raise cls(f"{what} is used by {', '.join(named[:_NAMED])}{more}")


_NAMED: Final = 3
"""So many users are named, others counted."""


@dataclass(eq=False, slots=True)
class ProtectionDomain:
    """Queue pairs, regions, windows, shared receive queues and address handles of one domain work together."""

    number: int


@dataclass(eq=False, slots=True)
class XrcDomain:
    """Shared receive queues of XRC, and queue pairs that receive for them, work together in one."""

    number: int


@dataclass(eq=False, slots=True)
class ReliableDomain:
    """Queue pairs of RD send through the end-to-end contexts of their domain."""

    number: int


class Place(NamedTuple):
    """Where an access that is allowed meets memory."""

    memory: Memory
    address: int

    def read(self, length: int) -> bytes:
        """The bytes there.

        Raises:
            MemoryFaultError: the memory is not there any more.
        """
        return self.memory.read(self.address, length)

    def write(self, data: bytes) -> None:
        """Stores bytes there.

        Raises:
            MemoryFaultError: the memory is not there any more.
        """
        self.memory.write(self.address, data)


@dataclass(eq=False, slots=True)
class MemoryRegion:
    """Registered memory. L_Key and R_Key are the same number.

    Attributes:
        address: where the region lies in `memory`.
        iova: what its first byte is called in work requests and on the wire.
    """

    pd: ProtectionDomain
    memory: Memory
    address: int
    length: int
    iova: int
    access: Access
    key: int
    windows: int = 0

    def place(self, va: int, length: int) -> Place:
        """Where a range of the region is.

        Raises:
            ProtectionError: not all of it is in the region.
        """
        if va < self.iova or va + length > self.iova + self.length:
            raise ProtectionError(
                f"{length} bytes at {va:#x}: region {self.key:#x} has {self.iova:#x}..{self.iova + self.length:#x}"
            )
        return Place(self.memory, va - self.iova + self.address)


@dataclass(eq=False, slots=True)
class MemoryWindow:
    """A part of a region under an R_Key of its own, bound and unbound by work requests or by the consumer.

    A window of type 1 is bound by the consumer and is the domain's; one of type 2 is bound by a work request and
    belongs to that queue pair (type 2B).
    """

    pd: ProtectionDomain
    type: int
    key: int
    region: MemoryRegion | None = None
    qp_number: int = 0
    va: int = 0
    length: int = 0
    access: Access = Access.NONE

    def place(self, va: int, length: int) -> Place:
        """Where a range of the window is.

        Raises:
            ProtectionError: the window is not bound, or not all of the range is in it.
        """
        if self.region is None:
            raise ProtectionError(f"window {self.key:#x} is not bound")
        base = 0 if self.access & Access.ZERO_BASED else self.va
        if va < base or va + length > base + self.length:
            raise ProtectionError(
                f"{length} bytes at {va:#x}: window {self.key:#x} has {base:#x}..{base + self.length:#x}"
            )
        return self.region.place(va - base + self.va, length)


_VARIANT_BITS: Final = 8
_VARIANT_MASK: Final = (1 << _VARIANT_BITS) - 1
_KEY_STEP: Final = 0x9D
"""Keys of regions made one after the other differ in their variants too, so that a key off by one index is wrong."""


class KeyTable:
    """The keys of an adapter: index in the upper 24 bits, a variant in the lower 8, which consumers choose
    for windows of type 2 (IBTA vol 1, 10.6.3.3)."""

    def __init__(self, limits: AdapterLimits) -> None:
        self._limits = limits
        self._keyed: dict[int, MemoryRegion | MemoryWindow] = {}
        self._regions = 0
        self._next = 1

    def register(
        self, pd: ProtectionDomain, memory: Memory, address: int, length: int, access: Access, iova: int | None = None
    ) -> MemoryRegion:
        """A region of `length` bytes of `memory` from `address` on, called `iova` on, their address if not given.

        Raises:
            LimitError: longer than regions may be, or one more than there may be.
            ValueError: remote write or atomic access without local write access (IBTA vol 1, 10.6.3.1).
        """
        self._limits.check(max_mr_size=length, max_mr=self._regions + 1)
        self._check_region(length, access)
        if iova is None:
            iova = 0 if access & Access.ZERO_BASED else address
        region = MemoryRegion(pd, memory, address, length, iova, access, self._new_key())
        self._keyed[region.key] = region
        self._regions += 1
        return region

    @staticmethod
    def _check_region(length: int, access: Access) -> None:
        if access & REMOTE_CHANGES and not access & Access.LOCAL_WRITE:
            raise ValueError(f"access {access!r}: remote write and atomic access need LOCAL_WRITE")
        if length < 1:
            raise ValueError(f"length {length}: allowed 1 and above")

    def reregister(
        self,
        region: MemoryRegion,
        *,
        pd: ProtectionDomain | None = None,
        place: tuple[Place, int, int] | None = None,
        access: Access | None = None,
    ) -> None:
        """Changes a region's domain, its place, length and iova, its rights, or several; its key stays.

        Raises:
            InUseError: a window is bound to it (IBTA vol 1, 11.2.8.4).
            LimitError, ValueError: as for `register`.
        """
        self._check_free(region)
        length, rights = region.length if place is None else place[1], region.access if access is None else access
        self._limits.check(max_mr_size=length)
        self._check_region(length, rights)
        region.access = rights
        if pd is not None:
            region.pd = pd
        if place is not None:
            (region.memory, region.address), region.length, region.iova = place

    def deregister(self, region: MemoryRegion) -> None:
        """Ends a region.

        Raises:
            InUseError: a window is bound to it (IBTA vol 1, 10.6.7.2).
        """
        self._check_free(region)
        del self._keyed[region.key]
        self._regions -= 1

    def _check_free(self, region: MemoryRegion) -> None:
        if region.windows:
            bound = (window.key for window in self._windows() if window.region is region)
            InUseError.check(f"region {region.key:#x}", (f"window {key:#x}" for key in bound))

    def _windows(self) -> Iterator[MemoryWindow]:
        return (keyed for keyed in self._keyed.values() if isinstance(keyed, MemoryWindow))

    def users_of(self, pd: ProtectionDomain) -> Iterator[str]:
        """Names of the regions and windows of a domain."""
        for keyed in self._keyed.values():
            if keyed.pd is pd:
                yield f"{'region' if isinstance(keyed, MemoryRegion) else 'window'} {keyed.key:#x}"

    def unbind_all(self, qp_number: int) -> None:
        """Unbinds the windows of type 2 that belong to a queue pair, which ends."""
        for window in self._windows():
            if window.type == 2 and window.qp_number == qp_number:
                self._unbind(window)

    def allocate_window(self, pd: ProtectionDomain, window_type: int) -> MemoryWindow:
        """A window that is not bound to anything yet.

        Raises:
            LimitError: one more than there may be.
            ValueError: a type that there is not.
        """
        if window_type not in (1, 2):
            raise ValueError(f"window of type {window_type}: allowed 1, 2")
        self._limits.check(max_mw=len(self._keyed) - self._regions + 1)
        window = MemoryWindow(pd, window_type, self._new_key())
        self._keyed[window.key] = window
        return window

    def deallocate_window(self, window: MemoryWindow) -> None:
        """Ends a window, bound or not."""
        self._unbind(window)
        del self._keyed[window.key]

    def bind(
        self,
        window: MemoryWindow,
        region_key: int,
        va: int,
        length: int,
        access: Access,
        *,
        pd: ProtectionDomain,
        qp_number: int,
        new_key: int,
    ) -> None:
        """Binds a window to a part of a region; of length 0, unbinds it (IBTA vol 1, 10.6.7.2).

        Raises:
            ProtectionError: the region, its rights or its range do not allow it, or the new key is no variant of the
                window's.
        """
        if window.pd is not pd or self._keyed.get(window.key) is not window:
            raise ProtectionError(f"window {window.key:#x} is not of this protection domain")
        if new_key >> _VARIANT_BITS != window.key >> _VARIANT_BITS:
            raise ProtectionError(f"key {new_key:#x}: window {window.key:#x} may change bits 7:0 alone")
        if window.type == 2 and window.region is not None:
            raise ProtectionError(f"window {window.key:#x} of type 2 is bound: it has to be invalidated before")
        region = None
        if length:
            found = self._keyed.get(region_key)
            if not isinstance(found, MemoryRegion) or found.pd is not pd or not found.access & Access.MW_BIND:
                raise ProtectionError(f"key {region_key:#x} is of no region to which windows may be bound")
            if access & REMOTE_CHANGES and not found.access & Access.LOCAL_WRITE:
                raise ProtectionError(f"region {region_key:#x} has no LOCAL_WRITE access")
            found.place(va, length)
            region = found
        self._unbind(window)
        del self._keyed[window.key]
        window.key = new_key
        self._keyed[new_key] = window
        if region is not None:
            region.windows += 1
            window.region, window.qp_number = region, qp_number
            window.va, window.length, window.access = va, length, access

    def invalidate(self, key: int, pd: ProtectionDomain, qp_number: int) -> None:
        """Unbinds the window of type 2 that has this R_Key (IBTA vol 1, 10.6.5).

        Raises:
            ProtectionError: it is of no such window of this queue pair.
        """
        window = self._keyed.get(key)
        if (
            not isinstance(window, MemoryWindow)
            or (window.type, window.pd) != (2, pd)
            or window.region is None
            or window.qp_number != qp_number
        ):
            raise ProtectionError(f"key {key:#x} is of no window of type 2 bound at queue pair {qp_number:#x}")
        self._unbind(window)

    def window(self, key: int) -> MemoryWindow | None:
        """The window that has this key."""
        found = self._keyed.get(key)
        return found if isinstance(found, MemoryWindow) else None

    def local(self, key: int, va: int, length: int, pd: ProtectionDomain, access: Access) -> Place:
        """Where a local access meets memory.

        Raises:
            ProtectionError: the L_Key does not allow it.
        """
        region = self._keyed.get(key)
        if not isinstance(region, MemoryRegion) or region.pd is not pd:
            raise ProtectionError(f"L_Key {key:#x} is of no region of protection domain {pd.number}")
        if not _are_within(access, region.access):
            raise ProtectionError(f"L_Key {key:#x} allows {region.access!r}, needed {access!r}")
        return region.place(va, length)

    def remote(self, key: int, va: int, length: int, pd: ProtectionDomain, qp_number: int, access: Access) -> Place:
        """Where an RDMA or atomic access meets memory.

        Raises:
            ProtectionError: the R_Key does not allow it.
        """
        found = self._keyed.get(key)
        if found is None or found.pd is not pd:
            raise ProtectionError(f"R_Key {key:#x} is of nothing in protection domain {pd.number}")
        if isinstance(found, MemoryWindow) and found.type == 2 and found.qp_number != qp_number:
            raise ProtectionError(f"R_Key {key:#x} is of a window of another queue pair")
        if not _are_within(access, found.access):
            raise ProtectionError(f"R_Key {key:#x} allows {found.access!r}, needed {access!r}")
        return found.place(va, length)

    def _new_key(self) -> int:
        index, self._next = self._next, self._next + 1
        return index << _VARIANT_BITS | index * _KEY_STEP & _VARIANT_MASK

    @staticmethod
    def _unbind(window: MemoryWindow) -> None:
        if window.region is not None:
            window.region.windows -= 1
            window.region = None
