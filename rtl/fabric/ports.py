"""The ports of a whole fabric, as simulators and players see them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.words import HostStreamSignature, HostWordSignature
from rtl.link.row import RowSignature
from rtl.management.identity import IdentitySignature
from rtl.widths import OFFERED_BITS
from wire.parameters import AdapterParameters, FabricParameters, slots_of
from wire.trace import WORDS

__all__ = ["ControlSignature", "FabricPorts", "FabricSignature", "dump_ports", "load_ports"]


ControlSignature = wiring.Signature(
    {"valid": Out(1), "operation": Out(4), "target": Out(16), "args": Out(128), "rvalid": In(1), "rdata": In(32)}
)
"""Control operations, one a cycle at most, and what register reads answer.

Members:
    operation: a `wire.stimulus.Operation`, with `target` and `args` as said there (args[0] in the lowest bits).
    rvalid: `rdata` answers the read given four cycles before.
"""


@dataclass(frozen=True)
class FabricPorts:
    """What is behind each of a fabric's numbered ports.

    Attributes:
        streams: (node index, slot) of each packet stream into the fabric, ascending.
        hosts: node index of each adapter, ascending.
        trace: (source, kind) of each trace slot, ascending: the order of records within a cycle.
        open: (node index, port) of each port whose rows are driven from outside.
        identities: nodes, from the first on, whose identity comes from outside.
        taps: (link index, direction) of each direction of a link that is looked at.
        entered: of each of which all rows are summed up.
    """

    streams: tuple[tuple[int, int], ...]
    hosts: tuple[int, ...]
    trace: tuple[tuple[int, int], ...]
    open: tuple[tuple[int, int], ...] = ()
    identities: int = 0
    taps: tuple[tuple[int, int], ...] = ()
    entered: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        parameters: FabricParameters,
        trace: tuple[tuple[int, int], ...],
        *,
        identities: int = 0,
        taps: tuple[tuple[int, int], ...] = (),
        entered: tuple[tuple[int, int], ...] = (),
    ) -> FabricPorts:
        """The ports of a fabric with these nodes, trace slots and taps, and so many identities from outside."""
        adapters = {
            index: node for index, node in enumerate(parameters.nodes.values()) if isinstance(node, AdapterParameters)
        }
        streams = tuple((index, slot) for index, node in adapters.items() for slot in range(slots_of(node)))
        names = list(parameters.nodes)
        open_ports = tuple((names.index(name), port) for name, port in parameters.open_ports)
        return cls(streams, tuple(adapters), trace, open_ports, identities, taps, entered)


def dump_ports(ports: FabricPorts) -> str:
    """As JSON."""
    return json.dumps(asdict(ports))


def load_ports(text: str) -> FabricPorts:
    """From JSON."""
    loaded = json.loads(text)

    def pairs(name: str) -> tuple[tuple[int, int], ...]:
        return tuple((first, second) for first, second in loaded[name])

    hosts, identities = tuple(loaded["hosts"]), loaded["identities"]
    return FabricPorts(
        pairs("streams"), hosts, pairs("trace"), pairs("open"), identities, pairs("taps"), pairs("entered")
    )


class FabricSignature(wiring.Signature):
    """A fabric from outside.

    Members:
        control: control operations.
        send: one stream for each of `FabricPorts.streams`.
        recv: one sink for each of `FabricPorts.hosts`.
        trace_valid: bit i says that trace slot i has a record in this cycle.
        trace: the records' words, a in the lowest bits, for each of `FabricPorts.trace`.
        rx, tx: rows into and out of each of `FabricPorts.open`.
        offered: widths that the other end of each of these links offered in the cycle before, of 1X and 4X.
        offers: those that this end offers.
        identity: for each of `FabricPorts.identities`.
        tap: rows that enter each of `FabricPorts.taps`.
        entered: likewise, of `FabricPorts.entered`.
    """

    def __init__(self, ports: FabricPorts) -> None:
        super().__init__(
            {
                "control": In(ControlSignature),
                "send": Out(HostStreamSignature).array(len(ports.streams)),
                "recv": Out(HostWordSignature).array(len(ports.hosts)),
                "trace_valid": Out(len(ports.trace)),
                "trace": Out(32 * WORDS).array(len(ports.trace)),
                "rx": In(RowSignature).array(len(ports.open)),
                "tx": Out(RowSignature).array(len(ports.open)),
                "offered": In(OFFERED_BITS).array(len(ports.open)),
                "offers": Out(OFFERED_BITS).array(len(ports.open)),
                "identity": In(IdentitySignature()).array(ports.identities),
                "tap": Out(RowSignature).array(len(ports.taps)),
                "entered": Out(RowSignature).array(len(ports.entered)),
            }
        )
