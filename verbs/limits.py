"""How much of everything an adapter has; the names are those that programs know (IBTA vol 1, 11.2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AdapterLimits", "LimitError"]


class LimitError(ValueError):
    """More than the adapter has, or longer than it makes them."""


@dataclass(frozen=True, slots=True)
class AdapterLimits:
    """Limits of an adapter. They bound what one program can ask for, not what there is memory for.

    Attributes:
        max_sge, max_sge_rd: pieces of a work request, and of a READ.
        max_qp_rd_atom: READs and atomics outstanding at a queue pair as responder; `max_qp_init_rd_atom`: as requester.
        max_mcast_qp_attach: queue pairs of a multicast group.
        local_ca_ack_delay: code of the time that an ACK takes at most, as for Local ACK Timeouts.
    """

    max_mr_size: int = (1 << 64) - 1
    max_qp: int = 65536
    max_qp_wr: int = 16384
    max_sge: int = 32
    max_sge_rd: int = 32
    max_inline_data: int = 1024
    max_cq: int = 65536
    max_cqe: int = 4_194_303
    max_mr: int = 524288
    max_pd: int = 32768
    max_qp_rd_atom: int = 128
    max_qp_init_rd_atom: int = 128
    max_mw: int = 65536
    max_mcast_grp: int = 8192
    max_mcast_qp_attach: int = 56
    max_ah: int = 32768
    max_srq: int = 32768
    max_srq_wr: int = 16384
    max_srq_sge: int = 27
    local_ca_ack_delay: int = 15

    def check(self, **wanted: int) -> None:
        """Refuses what is above a limit, or below 0: values by the names of their limits.

        Raises:
            LimitError: naming the limit, the value and what is allowed.
        """
        for name, value in wanted.items():
            if not 0 <= value <= getattr(self, name):
                raise LimitError(f"{name} {value}: allowed 0..{getattr(self, name)}")
