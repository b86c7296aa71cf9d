"""The options of `ironband up` and of what does likewise, and what they say of a fabric."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from cosim.engines.base import ENGINES, MODEL, PART_ENGINES
from cosim.experiments.subnet_task import LinkFailure, SubnetTask
from cosim.scenario.limits import MAX_CYCLES
from cosim.topology.topology import is_end, named, no_such_node, parse_end
from sm.congestion_options import parse_congestion_options
from sm.errors import ManagerError
from sm.lids import Guid2LidError, LidRange, parse_guid2lid
from sm.options_file import OptionsError
from sm.partitions import Enforcement
from sm.partitions_file import PartitionsFileError, parse_partitions
from sm.qos_options import parse_qos_options, qos_policy_file
from sm.qos_policy import QosPolicy
from sm.qos_policy_file import QosPolicyError, parse_qos_policy
from sm.routing.dor import dor
from sm.routing.fat_tree import fat_tree
from sm.routing.lash import lash
from sm.routing.min_hop import min_hop
from sm.routing.up_down import up_down
from sm.settings import RoutingEngine, SubnetSettings
from sm.subnet import Subnet
from wire.codes import LID_UNICAST_MAX
from wire.node_info import NodeType
from wire.parameters import (
    AdapterParameters,
    FabricParameters,
    LinkParameters,
    SwitchParameters,
    adapter_port,
    node_text,
)
from wire.registers import PORT_RESET_VALUES, PortRegister

__all__ = [
    "ROUTING_ENGINES",
    "check_distinct",
    "lft_size",
    "link_down_timeout_option",
    "link_failure",
    "manager_host",
    "partition_options",
    "qos_option",
    "read_guid2lid",
    "read_partitions",
    "read_qos",
    "rtl_nodes",
    "rtl_option",
    "sim_option",
]

_USUAL_POLICY: Final = Path("/etc/opensm/qos-policy.conf")
"""What `opensm -c` names as the QoS policy, whether there is one or not."""
_RTL_ENGINES: Final = tuple(engine for engine in ENGINES if engine != MODEL)

rtl_option = click.option(
    "--rtl",
    default="none",
    metavar="all|none|NAME,...",
    help="Which nodes are RTL; the others are the golden model. It runs beside RTL, too, and is compared.",
)
sim_option = click.option("--sim", type=click.Choice(_RTL_ENGINES), default=_RTL_ENGINES[0], help="What simulates RTL.")


def link_down_timeout_option(text: str) -> Callable[[Any], Any]:
    """`--link-down-timeout`, with what it says in the help."""
    return click.option(
        "--link-down-timeout",
        type=click.IntRange(1, (1 << 24) - 1),
        default=PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT],
        metavar="CYCLES",
        help=text,
    )


qos_option = click.option(
    "--qos",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="VLs, SL to VL and VL arbitration as OpenSM's options file has them (qos_max_vls, qos_vlarb_high, ...), the "
    "QoS policy that it names (qos_policy_file), and congestion control if it says so (congestion_control, cc_...).",
)


def partition_options(command: Callable[..., int]) -> Callable[..., int]:
    """`--partitions` and `--enforce`."""
    file = click.option(
        "--partitions",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Who is in which partition, as OpenSM's partitions.conf has it.",
    )
    enforce = click.option(
        "--enforce",
        type=click.Choice(("both", "in", "out", "off")),
        help="Whether switch ports at hosts check P_Keys of packets that come in, that go out, or of both.  "
        "[default: both, with --partitions]",
    )
    return file(enforce(command))


ROUTING_ENGINES: Final[dict[str, RoutingEngine]] = {
    "min-hop": min_hop,
    "up-down": up_down,
    "fat-tree": fat_tree,
    "dor": dor,
    "lash": lash,
}
"""Of `--routing`."""

_FAILURE = re.compile(r"(.+)@([0-9]{1,30})")


def check_distinct(files: Iterable[tuple[str, Path | None]]) -> None:
    """Check that no two of these options name the same file.

    Raises:
        click.UsageError: two do.
    """
    options: dict[Path, str] = {}
    for option, path in files:
        if path is None:
            continue
        first = options.setdefault(path.resolve(), option)
        if first != option:
            raise click.UsageError(f"{option} {path}: names the file of {first}: expected another")


def lft_size(subnet: Subnet, lids: Mapping[int, LidRange], lmc: int) -> int:
    """Room for every LID in a switch's table: above those remembered, hosts' beginning at multiples of 2^lmc."""
    needed = sum(1 if subnet.nodes[end.guid].is_switch else 1 << lmc for end, _port in subnet.reachable_end_ports)
    highest = max((taken.last for taken in lids.values()), default=0) + (1 << lmc) - 1
    return max(SwitchParameters().lft_size, min(1 << (needed + highest).bit_length(), LID_UNICAST_MAX + 1))


def read_guid2lid(path: Path) -> dict[int, LidRange]:
    """LID ranges by PortGUID; none if there is no such file yet.

    Raises:
        Guid2LidError: it is no regular file, it cannot be read, or it is not a guid2lid file.
    """
    try:
        if not path.exists():
            return {}
        if not path.is_file():
            raise Guid2LidError(f"{path}: is no regular file, expected a guid2lid file")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Guid2LidError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Guid2LidError(f"{path}: byte {error.start} is not UTF-8, expected a guid2lid file") from None
    return parse_guid2lid(text, str(path))


def read_qos(path: Path | None, settings: SubnetSettings) -> SubnetSettings:
    """Settings with what a file of OpenSM's options says of quality of service, and of congestion control.

    Raises:
        OptionsError: it cannot be read, or says what is not allowed.
        QosPolicyError: the QoS policy that it names cannot be read, or says what is not allowed.
    """
    if path is None:
        return settings
    text = _text_of(path, "options", OptionsError)
    policy = qos_policy_file(text)
    return replace(
        settings,
        qos_by_type=parse_qos_options(text, str(path)),
        qos_policy=None if policy is None else _read_qos_policy(Path(policy)),
        congestion_control=parse_congestion_options(text, str(path)),
    )


def _read_qos_policy(path: Path) -> QosPolicy | None:
    """The policy of a file; without the one that every file of OpenSM's options names there is none."""
    if path == _USUAL_POLICY and not path.exists():
        return None
    return parse_qos_policy(_text_of(path, "QoS policy", QosPolicyError), str(path))


def _text_of(path: Path, what: str, error_type: type[ManagerError]) -> str:
    """The text of a file of OpenSM's.

    Raises:
        error_type: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise error_type(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise error_type(f"{path}: byte {error.start} is not UTF-8, expected OpenSM's {what}") from None


def read_partitions(path: Path | None, enforce: str | None, settings: SubnetSettings) -> SubnetSettings:
    """Settings with the partitions of a file of OpenSM's, and with what switch ports are to check.

    Raises:
        PartitionsFileError: it cannot be read, or OpenSM would not take it.
        click.UsageError: something is to be checked, and there are no partitions.
    """
    if path is None:
        if enforce is not None:
            raise click.UsageError(f"--enforce {enforce}: expected --partitions FILE, which it is about")
        return settings
    text = _text_of(path, "partitions", PartitionsFileError)
    partitions = parse_partitions(text, str(path), has_qos=bool(settings.qos_by_type))
    enforcement = settings.enforcement if enforce is None else Enforcement[enforce.upper()]
    return replace(settings, partitions=partitions, enforcement=enforcement)


def rtl_nodes(fabric: FabricParameters, rtl: str, sim: str) -> list[str] | None:
    """The nodes that are RTL, in the fabric's order; None if they are all.

    Raises:
        click.UsageError: no such nodes, or `sim` cannot simulate them alone.
    """
    chosen = []
    for text in rtl.split(","):
        # Without a port, all ports of an adapter.
        of_adapter = [name for name in fabric.nodes if adapter_port(name)[0] == text]
        chosen += of_adapter or [_known(fabric, text, "--rtl")[0]]
    chosen = [name for name in fabric.nodes if name in chosen]
    if len(chosen) == len(fabric.nodes):
        return None
    if sim not in PART_ENGINES:
        allowed = " or ".join(PART_ENGINES)
        raise click.UsageError(f"--rtl {rtl}: {sim} simulates whole fabrics: expected --sim {allowed}")
    return chosen


def manager_host(fabric: FabricParameters, sm: str | None, option: str = "--sm") -> str:
    """Where the Subnet Manager runs: at the first adapter unless given, and the first port of it that has a link.

    Raises:
        click.UsageError: no host, or not of this name.
    """
    hosts = [name for name, node in fabric.nodes.items() if isinstance(node, AdapterParameters)]
    if not hosts:
        raise click.UsageError("the topology has no host: expected one for the Subnet Manager to run at")
    if sm is not None:
        host, _port = _known(fabric, sm, option)
        if host not in hosts:
            raise click.UsageError(f"{option} {sm}: is a switch, expected a host")
        # Without a port, any of the adapter's.
        hosts = [name for name in hosts if adapter_port(name)[0] == sm] or [host]
    linked = {name for link in fabric.links for name in (link.a, link.b)}
    return min(hosts, key=lambda name: (name not in linked, fabric.identity(name).type is NodeType.ROUTER))


def link_failure(task: SubnetTask, text: str, timeout: int, out_of_reach: list[str]) -> LinkFailure:
    """The link and the cycle of `--fail`; `out_of_reach` are the nodes that the host is not connected with.

    Raises:
        click.UsageError: not written so, no such link, none that the Subnet Manager can hear of, or a cycle before
            or after its work.
    """
    match = _FAILURE.fullmatch(text)
    if match is None or not is_end(match[1]):
        raise click.UsageError(f"--fail {text}: expected NODE[PORT]@CYCLE or HOST@CYCLE")
    name, port = _known(task.fabric, match[1], "--fail")
    if port is None and isinstance(task.fabric.nodes[name], SwitchParameters):
        raise click.UsageError(f"--fail {text}: {name} is a switch: expected NODE[PORT]@CYCLE")
    end = (name, 1 if port is None else port)
    links = [index for index, link in enumerate(task.fabric.links) if end in _ends(link)]
    if not links:
        raise click.UsageError(f"--fail {text}: {match[1]} has no link")
    if name in out_of_reach:
        near, far = node_text(task.host), node_text(name)
        raise click.UsageError(f"--fail {text}: {near} is not connected with {far}: expected a link in its reach")
    cycle = int(match[2])
    if not task.start <= cycle < MAX_CYCLES:
        raise click.UsageError(f"--fail {text}: cycle {cycle}: expected {task.start}..{MAX_CYCLES - 1}")
    return LinkFailure(links[0], cycle, timeout)


def _ends(link: LinkParameters) -> tuple[tuple[str, int], tuple[str, int]]:
    return (link.a, link.a_port), (link.b, link.b_port)


def _known(fabric: FabricParameters, text: str, option: str) -> tuple[str, int | None]:
    """The node that a text such as `NODE` or `NODE[PORT]` names, and the port of it.

    Raises:
        click.UsageError: there is none.
    """
    name, port = named(fabric.nodes, *parse_end(text)) if is_end(text) else ("", None)
    if name not in fabric.nodes:
        raise click.UsageError(f"{option} {no_such_node(fabric, text)}")
    return name, port
