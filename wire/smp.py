"""Subnet management packets, LID-routed and directed-route: layouts, requests, answers, paths (IBTA vol 1, 14.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .codes import LID_PERMISSIVE
from .layout import Field, Layout, Record
from .mad import (
    MAD_BYTES,
    MAD_HEADER,
    MadMethod,
    MadStatus,
    MgmtClass,
    header_fields,
    mad_response,
    pack_data,
    status_text,
)
from .meaning import HEX, Derived
from .table import Table

__all__ = [
    "MAX_HOPS",
    "SMP_DATA_BYTES",
    "SMP_DIRECTED_ROUTE",
    "SMP_LID_ROUTED",
    "SMP_PATH",
    "initial_path",
    "initial_port",
    "is_directed",
    "return_path",
    "return_port",
    "smp_layout",
    "smp_request",
    "smp_response",
    "unpack_smp",
    "with_return_port",
]

SMP_DATA_BYTES: Final = 64
"""Bytes of an attribute in an SMP, from byte 64 on."""

MAX_HOPS: Final = 63
"""The largest HopCount: entry 0 of a path is not used (IBTA vol 1, 14.2.1.2)."""


_M_KEY: Final = Field("m_key", 192, 64, meaning=HEX)
_DATA: Final = Field("data", 512, 8 * SMP_DATA_BYTES, meaning=HEX)

SMP_LID_ROUTED: Final = Layout("SMP", MAD_BYTES, [*header_fields(MgmtClass.SUBN_LID_ROUTED), _M_KEY, _DATA])
"""LID-routed SMP, 256 bytes (IBTA vol 1, 14.2.1.1)."""

SMP_DIRECTED_ROUTE: Final = Layout(
    "DirectedRouteSMP",
    MAD_BYTES,
    [
        *header_fields(MgmtClass.SUBN_DIRECTED_ROUTE, without=("status", "class_specific")),
        Field("d", 32, 1),
        Field("status", 33, 15, meaning=Derived(status_text)),
        Field("hop_pointer", 48, 8),
        Field("hop_count", 56, 8),
        _M_KEY,
        Field("dr_slid", 256, 16, LID_PERMISSIVE),
        Field("dr_dlid", 272, 16, LID_PERMISSIVE),
        _DATA,
        Field("initial_path", 1024, 512, meaning=HEX),
        Field("return_path", 1536, 512, meaning=HEX),
    ],
)
"""Directed-route SMP, 256 bytes (IBTA vol 1, 14.2.1.2). ``d`` is 0 when outgoing and 1 when returning;
``dr_slid`` and ``dr_dlid`` are permissive where no LID-routed part precedes or follows the directed one."""

SMP_PATH: Final = Table("Path", 64, Field("port", 0, 8))
"""The entries of ``initial_path`` and ``return_path``: the port that hop 1, 2, ... leaves by. Entry 0 is unused."""


def is_directed(smp: Record) -> bool:
    """True for a directed-route SMP."""
    return smp.layout == SMP_DIRECTED_ROUTE


def smp_request(
    method: MadMethod,
    attribute_id: int,
    attribute_modifier: int = 0,
    data: bytes = b"",
    *,
    transaction_id: int,
    m_key: int = 0,
    path: Sequence[int] | None = None,
    dr_slid: int = LID_PERMISSIVE,
    dr_dlid: int = LID_PERMISSIVE,
) -> Record:
    """An SMP that asks or reports: Get, Set, Trap, TrapRepress. ``data`` is filled up with zero bytes.

    ``path`` makes it directed-route: the ports to leave by, the requester's own first; an empty one stays in the
    node. HopPointer is 0, as before the requester's own SMI. Without a path the SMP is LID-routed.

    Raises:
        ValueError: more than 64 bytes of data, more than 63 hops, or a value that does not fit its field.
    """
    layout = SMP_LID_ROUTED if path is None else SMP_DIRECTED_ROUTE
    smp = layout.record(
        method=method,
        attribute_id=attribute_id,
        attribute_modifier=attribute_modifier,
        data=pack_data(layout, data),
        transaction_id=transaction_id,
        m_key=m_key,
    )
    if path is None:
        return smp
    if len(path) > MAX_HOPS:
        raise ValueError(f"directed route of {len(path)} hops, allowed up to {MAX_HOPS}")
    ports = int.from_bytes(SMP_PATH.pack([0, *path]), "big")
    return smp.replace(hop_count=len(path), initial_path=ports, dr_slid=dr_slid, dr_dlid=dr_dlid)


def smp_response(request: Record, data: bytes = b"", status: int = MadStatus.OK) -> Record:
    """The answer to a request, as before the answering node's own SMI: a directed-route SMP turns round.

    Raises:
        ValueError: a request of a method that is not answered, or more than 64 bytes of data.
    """
    answer = mad_response(request, data, status)
    return answer.replace(d=1) if is_directed(answer) else answer


def smp_layout(mad: bytes) -> Layout:
    """Which of the two layouts the SMP in the 256 bytes of a MAD has, as MgmtClass says.

    Raises:
        ValueError: another class or another length.
    """
    if len(mad) != MAD_BYTES:
        raise ValueError(f"MAD of {len(mad)} bytes, allowed {MAD_BYTES}")
    mgmt_class = MAD_HEADER["mgmt_class"].read(mad)
    if mgmt_class == MgmtClass.SUBN_LID_ROUTED:
        return SMP_LID_ROUTED
    if mgmt_class == MgmtClass.SUBN_DIRECTED_ROUTE:
        return SMP_DIRECTED_ROUTE
    raise ValueError(f"SMP of MgmtClass {mgmt_class:#04x}, allowed 0x01, 0x81")


def unpack_smp(mad: bytes) -> Record:
    """The SMP in the 256 bytes of a MAD.

    Raises:
        ValueError: another class or another length.
    """
    return smp_layout(mad).unpack(mad)


def initial_path(smp: Record) -> tuple[int, ...]:
    """The ports by which a directed-route request leaves each node, entries 1 to HopCount."""
    return _ports(smp.initial_path, smp.hop_count)


def return_path(smp: Record) -> tuple[int, ...]:
    """The ports by which its answer leaves each node, as far as they are written: entries 1 to HopCount."""
    return _ports(smp.return_path, smp.hop_count)


def initial_port(smp: Record, hop: int) -> int:
    """Entry ``hop`` of the InitialPath.

    Raises:
        ValueError: a hop outside 0..63.
    """
    return SMP_PATH.field(hop).read(_path(smp.initial_path))


def return_port(smp: Record, hop: int) -> int:
    """Entry ``hop`` of the ReturnPath.

    Raises:
        ValueError: a hop outside 0..63.
    """
    return SMP_PATH.field(hop).read(_path(smp.return_path))


def with_return_port(smp: Record, hop: int, port: int) -> Record:
    """The SMP with entry ``hop`` of its ReturnPath set.

    Raises:
        ValueError: a hop outside 0..63 or a port that does not fit 8 bits.
    """
    path = SMP_PATH.field(hop).write(_path(smp.return_path), port)
    return smp.replace(return_path=int.from_bytes(path, "big"))


def _path(number: int) -> bytes:
    return number.to_bytes(SMP_PATH.size_bytes, "big")


def _ports(path: int, hop_count: int) -> tuple[int, ...]:
    return SMP_PATH.unpack(_path(path))[1 : hop_count + 1]
