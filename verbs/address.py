"""Where packets go: address vectors and the handles that hold them (IBTA vol 1, 11.2.2.1)."""

from __future__ import annotations

from dataclasses import dataclass

from verbs.regions import ProtectionDomain

__all__ = ["AddressHandle", "AddressVector", "GlobalRoute"]


@dataclass(frozen=True, slots=True)
class GlobalRoute:
    """What makes a GRH."""

    dgid: int
    sgid_index: int = 0
    flow_label: int = 0
    hop_limit: int = 64
    traffic_class: int = 0


@dataclass(frozen=True, slots=True)
class AddressVector:
    """A path to a port; with `route`, packets carry a GRH.

    Attributes:
        src_path_bits: of the LIDs that the sending port has, which one is SLID.
        port: the adapter's own port that is left by.
    """

    dlid: int
    sl: int = 0
    src_path_bits: int = 0
    route: GlobalRoute | None = None
    port: int = 1


@dataclass(eq=False, slots=True)
class AddressHandle:
    """An address vector that work requests of one protection domain may name."""

    pd: ProtectionDomain
    vector: AddressVector
