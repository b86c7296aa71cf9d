"""Where packets go: address vectors and the handles that hold them (IBTA vol 1, 11.2.2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verbs.regions import ProtectionDomain
from wire.headers import GRH, LRH

__all__ = ["AddressHandle", "AddressVector", "GlobalRoute"]

MAX_LMC: Final = 7
"""PortInfo.LMC has 3 bits."""


@dataclass(frozen=True, slots=True)
class GlobalRoute:
    """What makes a GRH."""

    dgid: int
    sgid_index: int = 0
    flow_label: int = 0
    hop_limit: int = 64
    traffic_class: int = 0

    def __post_init__(self) -> None:
        """Check what goes into a GRH.

        Raises:
            ValueError: a value that does not fit.
        """
        GRH.record(dgid=self.dgid, flow_label=self.flow_label, hop_lmt=self.hop_limit, t_class=self.traffic_class)


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

    def __post_init__(self) -> None:
        """Check what goes into an LRH.

        Raises:
            ValueError: a value that does not fit.
        """
        for name, value in (("dlid", self.dlid), ("sl", self.sl)):
            LRH[name].check(value, "address vector")
        if not 0 <= self.src_path_bits < 1 << MAX_LMC:
            raise ValueError(f"src_path_bits {self.src_path_bits}: allowed 0..{(1 << MAX_LMC) - 1}")


@dataclass(eq=False, slots=True)
class AddressHandle:
    """An address vector that work requests of one protection domain may name."""

    pd: ProtectionDomain
    vector: AddressVector
