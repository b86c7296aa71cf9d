"""Standard loads: one switch, a host at each of its ports, and traffic between them as the literature has it."""

from __future__ import annotations

from typing import Literal

from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import ANY_HOST, Flow, Host, Link, Recording, Switch

__all__ = ["uniform_load"]


def uniform_load(
    ports: int,
    *,
    cycles: int,
    vls: int = 1,
    mtu: int = 2048,
    size: int | tuple[int, int] | None = None,
    queueing: Literal["voq", "fifo"] = "voq",
    buffer_blocks: int = 512,
    rate: float = 1.0,
    seed: int = 0,
) -> Scenario:
    """Every host sends to uniformly random others, independently of each other and of time.

    Args:
        ports: of the switch, and so many hosts, `H1` at port 1 and so on, all with 4X links.
        cycles: length, from the cycle in which traffic may start.
        vls: data VLs; each packet is on a random one.
        mtu: in bytes.
        size: payload bytes, or least and most of a uniform choice; the MTU if not given.
        queueing: of the switch.
        buffer_blocks: input buffer of the switch for each port and VL, in blocks of 64 bytes.
        rate: share of its time that a host would keep its link busy; at 1.0 a host always has a packet waiting.
        seed: of the traffic.

    Raises:
        ValueError: a value out of range (pydantic's ValidationError, whose text has the reason).
    """
    hosts = [f"H{port}" for port in range(1, ports + 1)]
    size = mtu if size is None else size
    flow = {"from": ANY_HOST, "to": ANY_HOST, "sl": tuple(range(vls)), "size": size, "rate": rate, "arrivals": "random"}
    return Scenario(
        name="uniform",
        cycles=cycles,
        seed=seed,
        switches={"S": Switch(ports=ports, vls=vls, mtu=mtu, buffer_blocks=buffer_blocks, queueing=queueing)},
        hosts={host: Host(vls=vls, mtu=mtu) for host in hosts},
        links=tuple(Link(ends=(host, f"S[{port}]")) for port, host in enumerate(hosts, 1)),
        flows=(Flow.model_validate(flow),),
        record=Recording(first=20, last=0),
    )
