"""Packet headers of the link, network and transport layers."""

from __future__ import annotations

from typing import Final

from .layout import Field, Layout

__all__ = [
    "AETH",
    "ATOMIC_ACK_ETH",
    "ATOMIC_ETH",
    "BTH",
    "DETH",
    "GRH",
    "GRH_IP_VER",
    "GRH_NXT_HDR_BTH",
    "IETH",
    "IMM_DT",
    "LRH",
    "RDETH",
    "RETH",
    "RWH",
    "XRCETH",
]

GRH_IP_VER: Final = 6
"""GRH.IPVer: the GRH is an IPv6 header."""

GRH_NXT_HDR_BTH: Final = 0x1B
"""GRH.NxtHdr when a BTH follows."""

LRH: Final = Layout(
    "LRH",
    8,
    [
        Field("vl", 0, 4),
        Field("lver", 4, 4),
        Field("sl", 8, 4),
        Field("resv2", 12, 2),
        Field("lnh", 14, 2),
        Field("dlid", 16, 16),
        Field("resv5", 32, 5),
        Field("pkt_len", 37, 11),
        Field("slid", 48, 16),
    ],
)
"""Local Route Header, 8 bytes (IBTA vol 1, 7.7). ``pkt_len`` counts 4-byte words from the LRH
through the ICRC, without the VCRC."""

GRH: Final = Layout(
    "GRH",
    40,
    [
        Field("ip_ver", 0, 4, GRH_IP_VER),
        Field("t_class", 4, 8),
        Field("flow_label", 12, 20),
        Field("pay_len", 32, 16),
        Field("nxt_hdr", 48, 8, GRH_NXT_HDR_BTH),
        Field("hop_lmt", 56, 8),
        Field("sgid", 64, 128),
        Field("dgid", 192, 128),
    ],
)
"""Global Route Header, 40 bytes (IBTA vol 1, 8.3). ``pay_len`` counts bytes from the BTH through
the ICRC."""

BTH: Final = Layout(
    "BTH",
    12,
    [
        Field("opcode", 0, 8),
        Field("se", 8, 1),
        Field("mig_req", 9, 1),
        Field("pad_cnt", 10, 2),
        Field("t_ver", 12, 4),
        Field("p_key", 16, 16),
        Field("fecn", 32, 1),
        Field("becn", 33, 1),
        Field("resv6a", 34, 6),
        Field("dest_qp", 40, 24),
        Field("ack_req", 64, 1),
        Field("resv7", 65, 7),
        Field("psn", 72, 24),
    ],
)
"""Base Transport Header, 12 bytes (IBTA vol 1, 9.2). ``opcode`` is the service in its upper 3 bits
and the operation in its lower 5; ``fecn``, ``becn`` and ``resv6a`` are the byte once called Resv8a."""

RDETH: Final = Layout("RDETH", 4, [Field("resv8", 0, 8), Field("eec", 8, 24)])
"""Reliable Datagram Extended Transport Header, 4 bytes (IBTA vol 1, 9.3.1)."""

DETH: Final = Layout("DETH", 8, [Field("q_key", 0, 32), Field("resv8", 32, 8), Field("src_qp", 40, 24)])
"""Datagram Extended Transport Header, 8 bytes (IBTA vol 1, 9.3.2)."""

RETH: Final = Layout("RETH", 16, [Field("va", 0, 64), Field("r_key", 64, 32), Field("dma_len", 96, 32)])
"""RDMA Extended Transport Header, 16 bytes (IBTA vol 1, 9.3.3). ``dma_len`` is in bytes."""

ATOMIC_ETH: Final = Layout(
    "AtomicETH",
    28,
    [Field("va", 0, 64), Field("r_key", 64, 32), Field("swap_dt", 96, 64), Field("cmp_dt", 160, 64)],
)
"""Atomic Extended Transport Header, 28 bytes (IBTA vol 1, 9.3.4). ``swap_dt`` holds the addend of a
FetchAdd."""

AETH: Final = Layout("AETH", 4, [Field("syndrome", 0, 8), Field("msn", 8, 24)])
"""ACK Extended Transport Header, 4 bytes (IBTA vol 1, 9.3.5)."""

ATOMIC_ACK_ETH: Final = Layout("AtomicAckETH", 8, [Field("orig_rem_dt", 0, 64)])
"""Atomic ACK Extended Transport Header, 8 bytes (IBTA vol 1, 9.5.3)."""

IMM_DT: Final = Layout("ImmDt", 4, [Field("imm_dt", 0, 32)])
"""Immediate data, 4 bytes (IBTA vol 1, 9.3.6)."""

IETH: Final = Layout("IETH", 4, [Field("r_key", 0, 32)])
"""Invalidate Extended Transport Header, 4 bytes (IBTA vol 1, 9.3.7)."""

XRCETH: Final = Layout("XRCETH", 4, [Field("resv8", 0, 8), Field("xrc_srq", 8, 24)])
"""XRC Extended Transport Header, 4 bytes (IBTA vol 1, annex A14)."""

RWH: Final = Layout("RWH", 4, [Field("resv16", 0, 16), Field("ether_type", 16, 16)])
"""Raw header of a packet that is not of the IBA transport, 4 bytes (IBTA vol 1, 5.3)."""
