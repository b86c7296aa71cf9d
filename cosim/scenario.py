"""Scenarios: what a user writes in a TOML file to say which fabric runs which traffic.

docs/scenario.md describes every table and key.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from cosim.topology import Topology
from wire.codes import MTU, LinkWidth, mtu_bytes
from wire.parameters import (
    AdapterParameters,
    FabricParameters,
    LinkParameters,
    NodeParameters,
    SwitchParameters,
)
from wire.registers import PortRegister
from wire.stimulus import ROW_MAX

__all__ = [
    "MAX_CYCLES",
    "NS_PER_METRE",
    "ErrorKind",
    "EventName",
    "Flow",
    "Host",
    "InjectedError",
    "Link",
    "PortSettings",
    "Recording",
    "Scenario",
    "Stall",
    "Switch",
    "parse_end",
]

NS_PER_METRE = 5.0
"""Flight time of a cable, copper or fibre: light at two thirds of its speed in vacuum."""

MAX_CYCLES = 1 << 40
_SLS = 16

EventName = Literal["post", "send", "stall", "receive", "release", "credit", "deliver", "drop", "error", "state"]
"""What a story can tell (docs/scenario.md, [record])."""

ErrorKind = Literal[
    "bit_flip", "lost_packet", "lost_flow_control", "truncate", "ebp", "stray_symbol", "link_down", "link_up"
]

_NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
_END = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,30})(?:\[([0-9]{1,3})\])?")


class _Table(BaseModel):
    """A TOML table: unknown keys are errors, values are taken as written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Cycles = Annotated[int, Field(ge=0, lt=MAX_CYCLES)]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected characters that can be printed, on one line")
    return text


Label = Annotated[str, AfterValidator(_printable)]
"""Text for the story and the picture."""


class Switch(_Table):
    """`[switches.NAME]`: wire.parameters.SwitchParameters, which also checks the values."""

    ports: int = 8
    vls: int = 1
    mtu: int = 2048
    buffer_blocks: int = 512
    vl15_blocks: int = 10
    queueing: Literal["voq", "fifo"] = "voq"
    readers: int | None = None
    lft_size: int = 1024

    @property
    def parameters(self) -> SwitchParameters:
        """As the RTL and the model take them; `readers` is 2 with `voq`, 1 with `fifo` unless given."""
        values = self.model_dump()
        if self.readers is None:
            values["readers"] = 2 if self.queueing == "voq" else 1
        return SwitchParameters(**values)


class Host(_Table):
    """`[hosts.NAME]`: a channel adapter, wire.parameters.AdapterParameters."""

    vls: int = 1
    mtu: int = 2048
    receive_blocks: int = 512
    send_blocks: int = 128
    vl15_blocks: int = 10

    @property
    def parameters(self) -> AdapterParameters:
        """As the RTL and the model take them."""
        return AdapterParameters(**self.model_dump())


class Link(_Table):
    """`[[links]]`: a cable. Give at most one of the three flight times; without any it is one cycle."""

    ends: tuple[str, str]
    width: Literal["1X", "4X"] = "4X"
    flight_cycles: int | None = Field(default=None, ge=1, le=4096)
    flight_ns: float | None = Field(default=None, gt=0)
    length_m: float | None = Field(default=None, gt=0)

    @property
    def width_code(self) -> int:
        """As in PortInfo.LinkWidthActive."""
        return LinkWidth.X1 if self.width == "1X" else LinkWidth.X4

    def flight(self, symbol_time_ns: float) -> int:
        """Flight time in cycles, rounded up, at least 1."""
        if self.flight_cycles is not None:
            return self.flight_cycles
        if self.flight_ns is not None:
            nanoseconds = self.flight_ns
        elif self.length_m is not None:
            nanoseconds = self.length_m * NS_PER_METRE
        else:
            nanoseconds = 0.0
        # The small step down keeps 0.1 m × 5 ns/m from becoming one cycle too long by rounding.
        return max(1, math.ceil(nanoseconds / symbol_time_ns - 1e-9))

    @model_validator(mode="after")
    def _one_flight_time(self) -> Link:
        given = [n for n in ("flight_cycles", "flight_ns", "length_m") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} given: expected at most one flight time")
        return self


class Flow(_Table):
    """`[[flows]]`: packets from one host to another, all on one SL, delivered in order."""

    name: Label | None = None
    source: str = Field(alias="from")
    destination: str = Field(alias="to")
    sl: int = Field(default=0, ge=0, le=15)
    size: int | tuple[int, int] = 256
    """Payload bytes, or [least, most] of a uniform choice."""
    count: int | None = Field(default=None, ge=1, lt=1 << 24)
    rate: float | None = Field(default=None, gt=0, le=1)
    """Fraction of the time that the source's link is kept busy; without it all packets are ready at once."""
    start: Cycles = 0

    @field_validator("size", mode="before")
    @classmethod
    def _size(cls, size: Any) -> Any:
        least_and_most = [size, size] if not isinstance(size, list | tuple) else size
        whole = len(least_and_most) == 2 and all(type(one) is int for one in least_and_most)
        if not whole or not 0 <= least_and_most[0] <= least_and_most[1] <= mtu_bytes(MTU.MTU_4096):
            raise ValueError("expected 0..4096 bytes, or [least, most] of them")
        return size if isinstance(size, int) else tuple(size)

    @model_validator(mode="after")
    def _some_end(self) -> Flow:
        if self.count is None and self.rate is None:
            raise ValueError("neither count nor rate given: expected one or both")
        return self

    @property
    def sizes(self) -> tuple[int, int]:
        """Least and most payload bytes."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size


class Stall(_Table):
    """`[[stalls]]`: a host that does not take packets from cycle `from` until cycle `to`."""

    host: str
    start: Cycles = Field(alias="from")
    end: Cycles = Field(alias="to")
    vls: tuple[int, ...] | None = None
    """Data VLs, 15 for VL15; all of them if not given."""

    @model_validator(mode="after")
    def _in_order(self) -> Stall:
        if self.end <= self.start:
            raise ValueError(f"from {self.start} to {self.end}: expected to > from")
        return self


class InjectedError(_Table):
    """`[[errors]]`: what goes wrong on a link, in the direction away from `from`, at or after cycle `at`."""

    kind: ErrorKind
    source: str = Field(alias="from")
    at: Cycles
    row: int = Field(default=1, ge=0, lt=ROW_MAX)
    """Row of the packet that is changed, or from which on it is cut off."""
    bit: int = Field(default=0, ge=0, le=31)
    """Bit of the row to flip, 0 the first on lane 0 (its most significant)."""


class PortSettings(_Table):
    """`[[ports]]`: registers of one port, or of both ends of every link with `at = "*"`."""

    at: str
    fcp_threshold: int | None = Field(default=None, ge=0, le=4095)
    fcp_period: int | None = Field(default=None, ge=1, lt=1 << 24)
    fc_watchdog: int | None = Field(default=None, ge=1, lt=1 << 24)
    link_down_timeout: int | None = Field(default=None, ge=1, lt=1 << 24)
    tick: int | None = Field(default=None, ge=0, le=255)
    local_phy_errors: int | None = Field(default=None, ge=0, le=15)
    overrun_errors: int | None = Field(default=None, ge=0, le=15)

    @property
    def registers(self) -> dict[PortRegister, int]:
        """Register to the value to write."""
        return {
            PortRegister[name.upper()]: value
            for name, value in self.model_dump(exclude={"at"}, exclude_none=True).items()
        }


class Recording(_Table):
    """`[record]`: what the story tells and what is kept."""

    events: tuple[EventName, ...] = get_args(EventName)
    nodes: tuple[str, ...] | None = None
    """Nodes whose ports are told of; all of them if not given."""
    first: int = Field(default=40, ge=1)
    last: int = Field(default=20, ge=0)
    trace: bool = False
    """Keep the whole trace as `trace.bin` (wire/trace.py)."""


class Scenario(_Table):
    """A whole scenario. Cycles in it count from the one in which traffic may start."""

    name: str = "scenario"
    title: Label = ""
    symbol_time_ns: float = Field(default=4.0, gt=0, le=1000)
    cycles: int = Field(gt=0, lt=MAX_CYCLES)
    seed: int = Field(default=0, ge=0, lt=1 << 64)
    sl_to_vl: tuple[int, ...] = tuple(range(_SLS))
    """VL of each of the 16 SLs, modulo the data VLs of the link it leaves by."""
    switches: dict[str, Switch] = Field(default_factory=dict)
    hosts: dict[str, Host] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    flows: tuple[Flow, ...] = ()
    stalls: tuple[Stall, ...] = ()
    errors: tuple[InjectedError, ...] = ()
    ports: tuple[PortSettings, ...] = ()
    record: Recording = Field(default_factory=Recording)

    @field_validator("sl_to_vl")
    @classmethod
    def _sixteen(cls, table: tuple[int, ...]) -> tuple[int, ...]:
        if len(table) != _SLS or not all(0 <= vl <= 14 for vl in table):
            raise ValueError("expected 16 VLs, each 0..14")
        return table

    @field_validator("switches", "hosts")
    @classmethod
    def _node_tables(cls, tables: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        for name, table in tables.items():
            if not _NODE_NAME.fullmatch(name):
                raise ValueError(f"name {name!r}: expected a letter, then up to 30 letters, digits or _")
            try:
                table.parameters  # noqa: B018 - made to be checked
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            if info.field_name == "hosts" and name in info.data.get("switches", {}):
                raise ValueError(f"{name}: is a switch too, expected a name of its own")
        return tables

    @model_validator(mode="after")
    def _whole(self) -> Scenario:
        if not self.hosts:
            raise ValueError("hosts: none given, expected at least one")
        _check_references(self)
        try:
            fabric = self.fabric
        except ValueError as error:
            raise ValueError(f"links: {error}") from None
        _check_traffic(self, fabric)
        return self

    @property
    def nodes(self) -> dict[str, NodeParameters]:
        """Switches, then hosts, each in the order of the file; a node's index is its place."""
        tables: dict[str, Switch | Host] = {**self.switches, **self.hosts}
        return {name: table.parameters for name, table in tables.items()}

    @property
    def fabric(self) -> FabricParameters:
        """What the engines build."""
        links = []
        for link in self.links:
            (a, a_port), (b, b_port) = (self.port_of(end) for end in link.ends)
            links.append(LinkParameters(a, a_port, b, b_port, link.flight(self.symbol_time_ns)))
        return FabricParameters(self.nodes, tuple(links))

    @property
    def lids(self) -> dict[str, int]:
        """LID of each host: 1, 2, ... in the order of the file."""
        return {name: lid for lid, name in enumerate(self.hosts, 1)}

    def port_of(self, end: str) -> tuple[str, int]:
        """Node and port that an end such as `S[2]` or `A` (a host's one port) names.

        Raises:
            ValueError: not written so, no such node, or a switch without a port.
        """
        name, port = parse_end(end)
        if name not in self.switches and name not in self.hosts:
            raise ValueError(f"{end!r}: no node {name!r}; there are {', '.join([*self.switches, *self.hosts])}")
        if port is None:
            if name in self.switches:
                raise ValueError(f"{end!r}: {name} is a switch, expected a port as in {name}[1]")
            port = 1
        return name, port

    def flow_name(self, index: int) -> str:
        """A flow's own name, or its ends."""
        flow = self.flows[index]
        return flow.name or f"{flow.source}-{flow.destination}"


def parse_end(text: str) -> tuple[str, int | None]:
    """Node name and port number (None if not given) of `NODE` or `NODE[PORT]`.

    Raises:
        ValueError: not written so.
    """
    match = _END.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: expected NODE or NODE[PORT]")
    return match[1], int(match[2]) if match[2] else None


def _check_references(scenario: Scenario) -> None:
    """Every node and port that is named exists."""
    for index, link in enumerate(scenario.links):
        for end in link.ends:
            _at(f"links[{index}].ends", scenario.port_of, end)
    linked = {scenario.port_of(end) for link in scenario.links for end in link.ends}

    def linked_port(end: str) -> None:
        if scenario.port_of(end) not in linked:
            raise ValueError(f"{end!r}: has no link")

    hosts = ", ".join(scenario.hosts) or "none"
    for index, flow in enumerate(scenario.flows):
        for key, name in (("from", flow.source), ("to", flow.destination)):
            if name not in scenario.hosts:
                raise ValueError(f"flows[{index}].{key}: no host {name!r}; there are {hosts}")
        if flow.source == flow.destination:
            raise ValueError(f"flows[{index}].to: {flow.destination!r} is the source, expected another host")
    for index, stall in enumerate(scenario.stalls):
        if stall.host not in scenario.hosts:
            raise ValueError(f"stalls[{index}].host: no host {stall.host!r}; there are {hosts}")
        vls = scenario.hosts[stall.host].vls
        for vl in stall.vls or ():
            if vl not in (*range(vls), 15):
                raise ValueError(f"stalls[{index}].vls: {vl}: expected 0..{vls - 1} or 15")
    for index, error in enumerate(scenario.errors):
        _at(f"errors[{index}].from", linked_port, error.source)
    for index, port in enumerate(scenario.ports):
        if port.at != "*":
            _at(f"ports[{index}].at", linked_port, port.at)
    for name in scenario.record.nodes or ():
        if name not in scenario.switches and name not in scenario.hosts:
            raise ValueError(f"record.nodes: no node {name!r}")


def _check_traffic(scenario: Scenario, fabric: FabricParameters) -> None:
    """Every flow's packets fit and have a way."""
    topology = Topology.of(scenario, fabric)
    for index, flow in enumerate(scenario.flows):
        path = topology.path(flow.source, flow.destination)
        if path is None:
            raise ValueError(f"flows[{index}]: no way from {flow.source} to {flow.destination}")
        mtu = min(topology.mtu(hop) for hop in path)
        if flow.sizes[1] > mtu:
            raise ValueError(f"flows[{index}].size: {flow.sizes[1]}: expected at most the path's MTU, {mtu} bytes")
    for name, switch in scenario.switches.items():
        if len(scenario.hosts) >= switch.lft_size:
            raise ValueError(
                f"switches.{name}.lft_size: {switch.lft_size}: expected more than the {len(scenario.hosts)} LIDs"
            )


def _at(place: str, check: Any, value: str) -> None:
    try:
        check(value)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
