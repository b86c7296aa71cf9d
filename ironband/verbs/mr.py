"""Memory regions and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.enums import ibv_rereg_mr_flags
from ironband.verbs.pd import PD
from ironband.verbs.process_memory import MEMORY
from ironband.verbs.pyverbs_error import PyverbsUserError
from verbs.regions import Access, Place

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MR", "MW", "MWBind", "MWBindInfo", "access_of"]

_RIGHTS: Final = sum(Access)
_HINTS: Final = 0x40 | 0x80 | 0x3FF0_0000
"""ON_DEMAND, HUGETLB, and the range of optional ones: they change nothing here."""


def access_of(flags: int) -> Access:
    """The adapter's rights for flags of `ibv_access_flags`.

    Raises:
        ValueError: flags that there are not.
    """
    if flags & ~(_RIGHTS | _HINTS):
        raise ValueError(f"access {flags:#x}: allowed bits {_RIGHTS | _HINTS:#x}")
    return Access(flags & _RIGHTS)


class MR(PyverbsCM):
    """A memory region, of memory of its own unless an address is given, or somebody's bytes.

    Attributes:
        pd: its protection domain.
        buf: address of its first byte.
        region: the adapter's.
    """

    def __init__(
        self, creator: PD, length: int = 0, access: int = 0, address: int | Buffer | None = None, implicit: bool = False
    ) -> None:
        """ADDRESS: of memory of `mem_alloc`, or a bytearray, an mmap, an array; all of it if LENGTH is 0.

        With IMPLICIT it is all memory that there is and ever will be, beginning with this.
        """
        if not isinstance(creator, PD):
            raise PyverbsUserError(f"MR of {type(creator).__name__}: expected PD")
        super().__init__(creator)
        self.pd = creator
        self._attached = False
        with refusals(f"Failed to register a MR. length: {length}, access flags: {access}"):
            length, rights = int(length), access_of(int(access))
            if isinstance(address, int):
                self.buf = address
                MEMORY.check(address, length)
            else:
                if address is not None:
                    room = memoryview(address).nbytes
                    length = length or room
                    if length > room:
                        raise ValueError(f"length {length}: {type(address).__name__} has {room} bytes")
                self.buf = MEMORY.allocate(length) if address is None else MEMORY.attach(address)
                self._attached = True
            self._length = length
            begin, size = (0, creator.context.adapter.limits.max_mr_size) if implicit else (self.buf, length)
            try:
                self.region = creator.context.adapter.keys.register(creator.domain, MEMORY, begin, size, rights)
            except ValueError:
                self._detach()
                raise
        self.made()

    def _end(self) -> None:
        self.pd.context.adapter.keys.deregister(self.region)
        self._detach()

    def _detach(self) -> None:
        if self._attached:
            MEMORY.release(self.buf)

    @property
    def lkey(self) -> int:
        """L_Key."""
        return self.region.key

    @property
    def rkey(self) -> int:
        """R_Key."""
        return self.region.key

    @property
    def handle(self) -> int:
        """Its number in the adapter."""
        return self.region.key

    @property
    def length(self) -> int:
        """Bytes from `buf` on."""
        return self._length

    def rereg(self, flags: int, pd: PD | None = None, addr: int = 0, length: int = 0, access: int = 0) -> None:
        """Changes what FLAGS of `ibv_rereg_mr_flags` say: the memory, the domain, the rights."""
        keys = self.pd.context.adapter.keys
        with refusals("Failed to rereg MR"):
            place = None
            if flags & ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_TRANSLATION:
                MEMORY.check(addr, length)
                place = Place(MEMORY, addr), length, addr
            changed = pd if flags & ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_PD else None
            rights = access_of(access) if flags & ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_ACCESS else None
            keys.reregister(self.region, pd=None if changed is None else changed.domain, place=place, access=rights)
        if place is not None:
            self._detach()
            self.buf, self._length, self._attached = addr, length, False
        if changed is not None:
            self.move(self.pd, changed)
            self.pd = changed

    def write(self, data: str | bytes | bytearray | memoryview, length: int | None = None, offset: int = 0) -> None:
        """Stores the first LENGTH bytes of DATA, all unless given, from OFFSET on."""
        stored = data.encode() if isinstance(data, str) else bytes(data)
        length = len(stored) if length is None else length
        if length > len(stored):
            raise PyverbsUserError(f"MR.write of {length} bytes: data has {len(stored)}")
        self._check("write", offset, length)
        MEMORY.write(self.buf + offset, stored[:length])

    def read(self, length: int, offset: int = 0) -> bytes:
        """LENGTH bytes from OFFSET on."""
        self._check("read", offset, length)
        return MEMORY.read(self.buf + offset, length)

    def _check(self, what: str, offset: int, length: int) -> None:
        self.check_open()
        if offset < 0 or length < 0 or offset + length > self.length:
            raise PyverbsUserError(f"MR.{what} of {length} bytes at offset {offset}: region has {self.length}")

    def __str__(self) -> str:
        shown = (("lkey", self.lkey), ("rkey", self.rkey), ("length", self.length), ("buf", self.buf))
        return "MR:\n" + "".join(f"{name:22}: {value:<20}\n" for name, value in shown)


class MWBindInfo(PyverbsCM):
    """What a window is to be bound to."""

    def __init__(self, mr: MR, addr: int, length: int, mw_access_flags: int) -> None:
        super().__init__()
        self.mr = mr
        self.addr = addr
        self.length = length
        self.mw_access_flags = mw_access_flags


class MWBind(PyverbsCM):
    """A binding of a window of type 1, and how it is posted."""

    def __init__(self, info: MWBindInfo, send_flags: int, wr_id: int = 0) -> None:
        super().__init__()
        self.info = info
        self.send_flags = send_flags
        self.wr_id = wr_id


class MW(PyverbsCM):
    """A memory window.

    Attributes:
        window: the adapter's.
    """

    def __init__(self, pd: PD, mw_type: int) -> None:
        """MW_TYPE: of `ibv_mw_type`."""
        super().__init__(pd)
        self.pd = pd
        with refusals("Failed to allocate MW"):
            self.window = pd.context.adapter.keys.allocate_window(pd.domain, int(mw_type))
        self.next_key: int | None = None
        """Of a binding of type 1 that has been posted."""
        self.made()

    def _end(self) -> None:
        self.pd.context.adapter.keys.deallocate_window(self.window)

    @property
    def rkey(self) -> int:
        """R_Key; of type 1 the new one from the posting of a binding on."""
        return self.window.key if self.next_key is None else self.next_key

    @property
    def type(self) -> int:
        """1 or 2."""
        return self.window.type

    @property
    def handle(self) -> int:
        """Its number in the adapter."""
        return self.window.key >> 8
