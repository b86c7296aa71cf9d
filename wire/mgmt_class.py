"""The management classes known here: the layout of their MADs and their attributes (IBTA vol 1, 13.4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .attribute import Attribute
from .layout import Layout, Record
from .mad import MAD_BYTES, MAD_HEADER, MgmtClass
from .pma import PERF_MAD, PMA_ATTRIBUTES
from .sma import SMA_ATTRIBUTES
from .smp import SMP_DIRECTED_ROUTE, SMP_LID_ROUTED

__all__ = ["CLASS_ATTRIBUTES", "CLASS_LAYOUTS", "attribute_of", "unpack_mad"]

CLASS_LAYOUTS: Final[Mapping[int, Layout]] = MappingProxyType(
    {
        MgmtClass.SUBN_LID_ROUTED: SMP_LID_ROUTED,
        MgmtClass.SUBN_DIRECTED_ROUTE: SMP_DIRECTED_ROUTE,
        MgmtClass.PERF: PERF_MAD,
    }
)
"""The layout of a class's MADs."""

CLASS_ATTRIBUTES: Final[Mapping[int, Mapping[int, Attribute]]] = MappingProxyType(
    {
        MgmtClass.SUBN_LID_ROUTED: SMA_ATTRIBUTES,
        MgmtClass.SUBN_DIRECTED_ROUTE: SMA_ATTRIBUTES,
        MgmtClass.PERF: PMA_ATTRIBUTES,
    }
)
"""A class's attributes by their codes."""


def unpack_mad(mad: bytes) -> Record:
    """The MAD in 256 bytes, as the layout of its class; of a class not known here, the common header alone.

    Raises:
        ValueError: another length.
    """
    if len(mad) != MAD_BYTES:
        raise ValueError(f"MAD of {len(mad)} bytes, allowed {MAD_BYTES}")
    return CLASS_LAYOUTS.get(MAD_HEADER["mgmt_class"].read(mad), MAD_HEADER).unpack(mad)


def attribute_of(mad: Record) -> Attribute | None:
    """The attribute that a MAD names; None where its class or AttributeID is not known here."""
    return CLASS_ATTRIBUTES.get(mad.mgmt_class, {}).get(mad.attribute_id)
