"""The fabrics and flows of the laboratory's measurements (docs/measure.md): hosts around one switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from cosim.scenario.congestion import Congestion
from cosim.scenario.message_flow import MessageFlow
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Flow, Host, Link, PortSettings, Switch

__all__ = [
    "buffer_scenario",
    "congestion_scenario",
    "credit_scenario",
    "flow_scenario",
    "tick_scenario",
]

_MTU: Final = 2048
_ROWS: Final = 519
"""A packet of RDMA WRITE with an MTU of payload takes as many cycles on a 4X link."""

_START: Final = 1_000
"""Traffic starts then, when links have gone quiet."""

_LATER: Final = 20_000
"""A second sender starts so many cycles after the first."""

_SPARE: Final = 4_000
"""Cycles for what is on its way when the last packet begins."""

_SHARE_OF_FLOW_CONTROL: Final = 1.01
"""Flow control packets take less than a hundredth of a link."""

_IDLE_PERIOD: Final = 48_488
"""Cycles, the idle period of the link in EXPERIMENTS 2."""

_MESSAGE_PACKETS: Final = 4
_TRACED_PACKETS: Final = 26
_ONE_BLOCK_BYTES: Final = 28
"""Payload of a UD packet of 62 bytes."""


def rdma_write(
    source: str, destination: str, count: int, *, start: int = _START, sl: int = 0, rate: float | None = None
) -> Flow:
    """One RDMA WRITE of COUNT packets of 2 KiB, as fast as its link takes them, or at a share of that."""
    flow = {"from": source, "to": destination, "operation": "rdma_write", "size": _MTU}
    return Flow.model_validate({**flow, "count": count, "start": start, "sl": sl, "rate": rate})


def rc_write(
    source: str,
    destination: str,
    count: int,
    *,
    start: int = _START,
    rate: float | None = None,
    message_packets: int | None = None,
) -> MessageFlow:
    """The same over a reliable connection, whose ACKs go the other way; in messages of so many packets, or in one."""
    each = message_packets or count
    flow = {"from": source, "to": destination, "transport": "rc", "operation": "rdma_write", "path_mtu": _MTU}
    size = {"message_bytes": each * _MTU, "count": count // each}
    return MessageFlow.model_validate({**flow, **size, "start": start, "rate": rate})


def _scenario(
    name: str,
    hosts: Sequence[str],
    flows: Sequence[Flow | MessageFlow],
    cycles: int,
    *,
    switch: Mapping[str, Any] = {},
    narrow: Sequence[str] = (),
    ports: Sequence[PortSettings] = (),
    congestion: Congestion | None = None,
) -> Scenario:
    """Hosts at the ports of one switch, the first at port 1; those of NARROW by a 1X link."""
    vls = switch.get("vls", 1)
    return Scenario(
        name=name,
        cycles=cycles,
        switches={"S": Switch(ports=len(hosts), **switch)},
        hosts={host: Host(vls=vls) for host in hosts},
        links=tuple(
            Link(ends=(host, f"S[{port}]"), width="1X" if host in narrow else "4X")
            for port, host in enumerate(hosts, 1)
        ),
        flows=tuple(flows),
        ports=tuple(ports),
        congestion=congestion,
    )


def _duration(packets: int) -> int:
    """Cycles that so many packets take on a 4X link, and what is behind them."""
    return int(packets * _ROWS * _SHARE_OF_FLOW_CONTROL) + _SPARE


def credit_scenario(packets: int, buffer_blocks: int = 512) -> Scenario:
    """A sends to B, whose link is a quarter as wide: 26 packets of 2 KiB, later PACKETS of one block.

    Before each is time for flow control packets without news. Every change of room is announced at once.
    """
    burst = {"from": "A", "to": "B", "size": _ONE_BLOCK_BYTES, "count": packets}
    first = 2 * _IDLE_PERIOD + _START
    second = first + 4 * _TRACED_PACKETS * _ROWS + 2 * _IDLE_PERIOD
    end = second + packets * 4 * 16 + _IDLE_PERIOD + _SPARE
    flows = [rdma_write("A", "B", _TRACED_PACKETS, start=first), Flow.model_validate({**burst, "start": second})]
    settings = PortSettings(at="*", fcp_threshold=0, fcp_period=_IDLE_PERIOD)
    switch = {"buffer_blocks": buffer_blocks}
    return _scenario("credits", ["A", "B"], flows, end, switch=switch, narrow=["B"], ports=[settings])


def flow_scenario(packets: int, senders: int, transport: Literal["uc", "rc"] = "uc") -> Scenario:
    """One host or several, H1 and so on, send PACKETS each to R, all at once; with `rc` they are acknowledged."""
    sources = [f"H{number}" for number in range(1, senders + 1)]
    write = rc_write if transport == "rc" else rdma_write
    flows = [write(source, "R", packets) for source in sources]
    hosts = sources if senders > 1 else [*sources, "H2"]
    return _scenario(f"{senders}-flows", [*hosts, "R"], flows, _START + _duration(packets * senders))


def buffer_scenario(packets: int, vls: int, buffer_blocks: int) -> Scenario:
    """A and B send PACKETS each to R on each data VL, a VL after the other, B later than A."""
    period = _LATER + _duration(2 * packets)
    flows = []
    for vl in range(vls):
        start = _START + vl * period
        flows += [
            rdma_write("A", "R", packets, start=start, sl=vl),
            rdma_write("B", "R", packets, start=start + _LATER, sl=vl),
        ]
    switch = {"vls": vls, "buffer_blocks": buffer_blocks}
    return _scenario("buffer", ["A", "B", "R"], flows, _START + vls * period, switch=switch)


def tick_scenario(packets: int, tick: int) -> Scenario:
    """A and B send PACKETS each to R; a tick of A's PortXmitWait is TICK cycles."""
    flows = [rdma_write(source, "R", packets) for source in ("A", "B")]
    ports = [PortSettings(at="A", tick=tick - 1)]
    return _scenario("tick", ["A", "B", "R"], flows, _START + _duration(2 * packets), ports=ports)


def congestion_scenario(packets: int, *, control: bool = False) -> Scenario:
    """H1 sends PACKETS to R and as many to V, for which nobody else has any, and gives each flow half of its link.

    H2 and H3 come later with a quarter as many each for R, and go before H1 is done. With congestion control it is
    over reliable connections, whose ACKs tell of congestion, in messages of four packets.
    """
    quarter = packets // 4
    later = _START + 2 * quarter * _ROWS
    write = partial(rc_write, message_packets=_MESSAGE_PACKETS) if control else rdma_write
    flows = [
        write("H1", "R", packets, rate=0.5),
        write("H1", "V", packets, rate=0.5),
        write("H2", "R", quarter, start=later),
        write("H3", "R", quarter, start=later),
    ]
    return _scenario(
        "congestion",
        ["H1", "H2", "H3", "V", "R"],
        flows,
        _START + _duration(4 * packets),
        switch={"buffer_blocks": 132},
        congestion=Congestion() if control else None,
    )
