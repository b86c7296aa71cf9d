"""Address handles, and all that they are made of."""

from __future__ import annotations

from typing import Final

from ironband.verbs.addresses import GID, GRH, AHAttr, GlobalRoute, gid_text
from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.enums import ibv_wc_flags
from ironband.verbs.pd import PD
from ironband.verbs.process_memory import MEMORY
from ironband.verbs.pyverbs_error import PyverbsUserError
from ironband.verbs.wc import WC
from wire.headers import GRH as GRH_LAYOUT

__all__ = ["AH", "GID", "GRH", "AHAttr", "GlobalRoute"]

_HOPS_BACK: Final = 255
"""Hop limit of what answers a packet, whose own way back may be longer."""


class AH(PyverbsCM):
    """An address handle, after an AHAttr, or back to where a datagram came from.

    Attributes:
        handle: the adapter's.
    """

    def __init__(
        self, pd: PD, *, attr: AHAttr | None = None, wc: WC | None = None, grh: int = 0, port_num: int = 1
    ) -> None:
        """ATTR, or WC of a datagram, of which GRH is the address of the first 40 bytes, and the port that took it."""
        super().__init__(pd)
        if attr is None:
            if wc is None:
                raise PyverbsUserError("AH: expected attr=, or wc=, grh= and port_num=")
            attr = _way_back(pd, wc, grh, port_num)
        with refusals("Failed to create AH"):
            self.handle = pd.context.adapter.create_ah(pd.domain, attr.vector())
        self._adapter = pd.context.adapter
        self.made()

    def _end(self) -> None:
        self._adapter.destroy_ah(self.handle)


def _way_back(pd: PD, wc: WC, grh: int, port_num: int) -> AHAttr:
    bits, gr = wc.dlid_path_bits, None
    if wc.wc_flags & ibv_wc_flags["IBV_WC_GRH"]:
        with refusals("Failed to create AH"):
            header = GRH_LAYOUT.unpack(MEMORY.read(grh, GRH_LAYOUT.size_bytes))
            gids = pd.context.port(port_num).gids
            if header.dgid not in gids:
                raise ValueError(f"DGID {gid_text(header.dgid)}: port {port_num} does not have it")
        gr = GlobalRoute(
            GID(gid_text(header.sgid)), header.flow_label, gids.index(header.dgid), _HOPS_BACK, header.t_class
        )
    return AHAttr(wc.slid, wc.sl, bits, 0, int(gr is not None), port_num, gr)
