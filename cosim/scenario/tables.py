"""The tables of a scenario, each as a user writes it in TOML; docs/scenario.md describes every key."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from cosim.scenario.limits import MAX_CYCLES, NS_PER_METRE
from cosim.scenario.pattern import PatternName
from sm.partitions import P_KEY_BASE
from wire.codes import LID_MULTICAST_MIN, MTU, SERVICE_LEVELS, LinkWidth, mtu_bytes
from wire.parameters import MAX_FLIGHT, MAX_PORTS, VL15_BLOCKS, AdapterParameters, SwitchParameters
from wire.registers import PortRegister
from wire.stimulus import ROW_MAX
from wire.time_limits import NO_LIMIT
from wire.vl_arbitration import VlArbitration, weights_of_text

__all__ = [
    "ANY_HOST",
    "MOST_MESSAGE_BYTES",
    "AnyFlow",
    "Arbitration",
    "Cycles",
    "Drawing",
    "ErrorKind",
    "EventName",
    "Flow",
    "Group",
    "Host",
    "InjectedError",
    "Label",
    "Link",
    "PanelName",
    "Partition",
    "PortSettings",
    "Recording",
    "Stall",
    "Switch",
    "Table",
]

ANY_HOST = "*"
"""As `from` of a flow: each host. As `to`: for each packet another host, all equally likely."""

MOST_MESSAGE_BYTES = 1 << 31
"""IBTA vol 1, 9.7.2."""

EventName = Literal[
    "manage",
    "post",
    "send",
    "stall",
    "receive",
    "release",
    "credit",
    "deliver",
    "drop",
    "error",
    "state",
    "message",
    "recovery",
]
"""What a story can report (docs/scenario.md, [record])."""

PanelName = Literal["packets", "credits", "buffers"]
"""Parts of a picture."""

ErrorKind = Literal[
    "bit_flip", "lost_packet", "lost_flow_control", "truncate", "ebp", "stray_symbol", "link_down", "link_up"
]


class Table(BaseModel):
    """A TOML table: unknown keys are errors, values are taken as written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


Cycles = Annotated[int, Field(ge=0, lt=MAX_CYCLES)]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected characters that can be printed, on one line")
    return text


Label = Annotated[str, AfterValidator(_printable)]
"""Text for the story and the picture."""


class Switch(Table):
    """`[switches.NAME]`: wire.parameters.SwitchParameters, which also checks the values."""

    ports: int = 8
    vls: int = 1
    mtu: int = 2048
    buffer_blocks: int = 512
    vl15_blocks: int = VL15_BLOCKS
    queueing: Literal["voq", "fifo"] = "voq"
    forwarding: Literal["cut-through", "store-and-forward"] = "cut-through"
    readers: int | None = None
    lft_size: int = 1024
    life_time: int = Field(default=NO_LIMIT, ge=0, le=NO_LIMIT)
    """Exponent of the limit of a packet's time in the switch, 4.096 us x 2^life_time; above 19 there is none."""

    @property
    def parameters(self) -> SwitchParameters:
        """As the RTL and the model take them; `readers` is 2 with `voq`, 1 with `fifo` unless given."""
        values = self.model_dump(exclude={"life_time"})
        if self.readers is None:
            values["readers"] = 2 if self.queueing == "voq" else 1
        return SwitchParameters(**values)


class Host(Table):
    """`[hosts.NAME]`: a channel adapter, wire.parameters.AdapterParameters at each of its ports."""

    ports: int = Field(default=1, ge=1, le=MAX_PORTS)
    vls: int = 1
    mtu: int = 2048
    receive_blocks: int = 512
    send_blocks: int = 128
    vl15_blocks: int = VL15_BLOCKS

    @property
    def parameters(self) -> AdapterParameters:
        """As the RTL and the model take them."""
        return AdapterParameters(**self.model_dump(exclude={"ports"}))


class Link(Table):
    """`[[links]]`: a cable. Give at most one of the three flight times; without any it is one cycle."""

    ends: tuple[str, str]
    width: Literal["1X", "4X"] = "4X"
    flight_cycles: int | None = Field(default=None, ge=1, le=MAX_FLIGHT)
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


class AnyFlow(Table):
    """What all `[[flows]]` have: ends, and when there is something to send."""

    name: Label | None = None
    source: str = Field(alias="from")
    destination: str = Field(alias="to")
    count: int | None = Field(default=None, ge=1, lt=1 << 24)
    rate: float | None = Field(default=None, gt=0, le=1)
    """Fraction of the time that the source's link is kept busy; without it all packets are ready at once."""
    arrivals: Literal["regular", "random"] = "regular"
    """Whether the gaps between packets are all equal or random (geometric)."""
    burst: float = Field(default=1, ge=1, lt=1 << 24)
    """Packets, or messages, in a burst, on the mean; 1: each comes by itself."""
    start: Cycles = 0

    @model_validator(mode="after")
    def _some_end(self) -> Self:
        if self.count is None and self.rate is None:
            raise ValueError("neither count nor rate given: expected one or both")
        if self.burst > 1 and (self.arrivals != "random" or self.rate is None):
            raise ValueError(f"burst {self.burst:g}: expected it with a rate and arrivals 'random'")
        return self

    @property
    def label(self) -> str:
        """Its name, or its ends."""
        return self.name or f"{self.source}-{self.destination}"


class Flow(AnyFlow):
    """`[[flows]]`: packets from one host to another, or between all of them."""

    sl: int | tuple[int, ...] = 0
    """One SL, or several of which each packet has a random one."""
    size: int | tuple[int, int] = 256
    """Payload bytes, or [least, most] of a uniform choice."""
    pattern: PatternName = "uniform"
    """Who sends to whom, if all do."""
    hot: str | None = None
    """The host that gets more than the others; the first if not given."""
    hot_share: float = Field(default=0.1, gt=0, le=1)
    """Probability that a packet goes to it; the rest goes to all others alike."""
    operation: Literal["send", "rdma_write"] = "send"
    """UD SEND Only packets, or those of one UC RDMA WRITE."""
    partition: str | None = None
    """Whose P_Key packets have; the default partition's if not given."""

    @field_validator("size", mode="before")
    @classmethod
    def _size(cls, size: Any) -> Any:
        least_and_most = [size, size] if not isinstance(size, list | tuple) else size
        whole = len(least_and_most) == 2 and all(type(one) is int for one in least_and_most)
        if not whole or not 0 <= least_and_most[0] <= least_and_most[1] <= mtu_bytes(MTU.MTU_4096):
            raise ValueError("expected 0..4096 bytes, or [least, most] of them")
        return size if isinstance(size, int) else tuple(size)

    @field_validator("sl", mode="before")
    @classmethod
    def _sl(cls, sl: Any) -> Any:
        several = sl if isinstance(sl, list | tuple) else [sl]
        if not several or not all(type(one) is int and 0 <= one < SERVICE_LEVELS for one in several):
            raise ValueError(f"expected 0..{SERVICE_LEVELS - 1}, or a list of them")
        if len(set(several)) < len(several):
            raise ValueError("expected SLs that differ")
        return sl if isinstance(sl, int) else tuple(several)

    @model_validator(mode="after")
    def _between_all(self) -> Flow:
        if self.pattern != "uniform" and not self.source == self.destination == ANY_HOST:
            raise ValueError(f"pattern {self.pattern!r}: expected from and to '*', for it is of all hosts")
        for key in ("hot", "hot_share"):
            if key in self.model_fields_set and self.pattern != "hotspot":
                raise ValueError(f"{key} given with pattern {self.pattern!r}: expected it with 'hotspot'")
        return self

    @model_validator(mode="after")
    def _one_message(self) -> Flow:
        if self.operation == "rdma_write":
            if self.count is None or self.destination == ANY_HOST or not isinstance(self.sl, int):
                raise ValueError("rdma_write is one message to one host: expected a count, one host and one SL")
            mtus = [mtu_bytes(mtu) for mtu in MTU]
            if self.size not in mtus:
                raise ValueError(f"size {self.size} of an rdma_write, expected a path's MTU: {mtus}")
            if self.count * self.sizes[1] > MOST_MESSAGE_BYTES:
                raise ValueError(f"{self.count} packets of {self.size} bytes, expected at most 2^31 bytes in a message")
        return self

    @property
    def sls(self) -> tuple[int, ...]:
        """The SLs that packets may have."""
        return (self.sl,) if isinstance(self.sl, int) else self.sl

    @property
    def sizes(self) -> tuple[int, int]:
        """Least and most payload bytes."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size


class Stall(Table):
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


class InjectedError(Table):
    """`[[errors]]`: what goes wrong on a link, in the direction away from `from`, at or after cycle `at`."""

    kind: ErrorKind
    source: str = Field(alias="from")
    at: Cycles
    row: int = Field(default=1, ge=0, lt=ROW_MAX)
    """Row of the packet that is changed, or from which on it is cut off."""
    bit: int = Field(default=0, ge=0, le=31)
    """Bit of the row to flip, 0 the first on lane 0 (its most significant)."""


def _weights(text: str) -> str:
    weights_of_text(text)
    return text


class Arbitration(Table):
    """`[vl_arbitration]`: lists as OpenSM's options have them, `VL:WEIGHT,...`."""

    high: Annotated[str, AfterValidator(_weights)] = ""
    low: Annotated[str, AfterValidator(_weights)] = ""
    high_limit: int = Field(default=0, ge=0, le=255)

    @model_validator(mode="after")
    def _allowed(self) -> Self:
        self.lists  # noqa: B018 - made to be checked
        return self

    @property
    def lists(self) -> VlArbitration:
        """What a port is to hold."""
        return VlArbitration(weights_of_text(self.high), weights_of_text(self.low), self.high_limit)


class Partition(Table):
    """`[partitions.NAME]`: hosts, or ports of them, that hear each other; of two at least one is a full member."""

    key: int
    """The P_Key without the bit of full members."""
    full: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()

    @field_validator("key")
    @classmethod
    def _base(cls, key: int) -> int:
        if not 1 <= key <= P_KEY_BASE:
            raise ValueError(f"expected 1..0x{P_KEY_BASE:x}, a P_Key without the bit of full members")
        return key


class Group(Table):
    """`[groups.NAME]`: the members of a multicast group: hosts, or ports of them."""

    mlid: int
    """Its LID."""
    members: tuple[str, ...]

    @field_validator("mlid")
    @classmethod
    def _in_the_table(cls, mlid: int) -> int:
        last = LID_MULTICAST_MIN + SwitchParameters().mft_size - 1
        if not LID_MULTICAST_MIN <= mlid <= last:
            raise ValueError(f"expected 0x{LID_MULTICAST_MIN:x}..0x{last:x}, which switches have room for")
        return mlid


class PortSettings(Table):
    """`[[ports]]`: registers of one port, or of both ends of every link with `at = "*"`."""

    at: str
    fcp_threshold: int | None = Field(default=None, ge=0, le=4095)
    fcp_period: int | None = Field(default=None, ge=1, lt=1 << 24)
    fc_watchdog: int | None = Field(default=None, ge=1, lt=1 << 24)
    link_down_timeout: int | None = Field(default=None, ge=1, lt=1 << 24)
    tick: int | None = Field(default=None, ge=0, le=255)
    local_phy_errors: int | None = Field(default=None, ge=0, le=15)
    overrun_errors: int | None = Field(default=None, ge=0, le=15)
    hoq_life: int | None = Field(default=None, ge=0, le=NO_LIMIT)
    """Of a switch: how long a packet may wait at the head of a VL's queue, an exponent as `Switch.life_time`."""
    vl_stall_count: int | None = Field(default=None, ge=0, le=7)

    @property
    def registers(self) -> dict[PortRegister, int]:
        """Register to the value to write."""
        return {
            PortRegister[name.upper()]: value
            for name, value in self.model_dump(exclude={"at"}, exclude_none=True).items()
        }


class Recording(Table):
    """`[record]`: what the story reports and what is kept."""

    events: tuple[EventName, ...] = get_args(EventName)
    nodes: tuple[str, ...] | None = None
    """Nodes whose ports are reported; all of them if not given."""
    first: int = Field(default=40, ge=1)
    last: int = Field(default=20, ge=0)
    trace: bool = False
    """Keep the whole trace as `trace.bin` (wire/trace.py)."""


class Drawing(Table):
    """`[picture]`: what the picture shows."""

    panels: tuple[PanelName, ...] = get_args(PanelName)
    ports: tuple[str, ...] | None = None
    """Whose packets are drawn, and the buffers that they go to; the first that send, and all, if not given."""
    credits: tuple[str, ...] | None = None
    """Whose credits; those of the hosts if not given."""
    start: Cycles = Field(default=0, alias="from")
    end: Cycles | None = Field(default=None, alias="to")

    @field_validator("panels")
    @classmethod
    def _some_panels(cls, panels: tuple[PanelName, ...]) -> tuple[PanelName, ...]:
        if not panels:
            raise ValueError("expected at least one panel")
        return panels

    @model_validator(mode="after")
    def _in_order(self) -> Drawing:
        if self.end is not None and self.end <= self.start:
            raise ValueError(f"from {self.start} to {self.end}: expected to > from")
        return self
