"""Which IP addresses hosts' ports have."""

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer
from doors.rdma_cm.address_file import read_addresses
from doors.rdma_cm.address_plan import AddressPlan, derived_address
from tests.doors.ideal_wire import describe
from toolchain.errors import UserError


@pytest.fixture
def ports() -> dict[str, list[HostPort]]:
    layer = MadLayer()
    found = {}
    for index, (host, numbers) in enumerate((("H1", (1,)), ("node 2", (1, 2)))):
        found[host] = [HostPort(layer, host, 10 * index + number, number) for number in numbers]
    for lid, port in enumerate((found["H1"][0], found["node 2"][0]), 1):
        describe(port, lid)
    return found


NAMES = ["H1[1]", "node 2[1]", "node 2[2]"]


def addresses_in(tmp_path: Path, text: str) -> dict[IPv4Address, str]:
    file = tmp_path / "addresses"
    file.write_text(text)
    return read_addresses(file, NAMES)


def test_without_a_file_an_address_is_a_lid(ports):
    plan = AddressPlan(ports)
    assert [plan.address_of(port) for port in (*ports["H1"], *ports["node 2"])] == [
        IPv4Address("127.87.0.1"),
        IPv4Address("127.87.0.2"),
        None,
    ]
    assert plan.port_of(IPv4Address("127.87.0.2")) is ports["node 2"][0]
    assert plan.port_of(IPv4Address("127.87.0.0")) is None
    assert derived_address(0xBFFF) == IPv4Address("127.87.191.255")


def test_a_file_names_ports_of_hosts(ports, tmp_path):
    plan = AddressPlan(ports, addresses_in(tmp_path, "# mine\n10.0.0.1 H1\n\n  10.0.0.2   node 2[2]\n"))
    assert plan.address_of(ports["H1"][0]) == IPv4Address("10.0.0.1")
    assert [plan.address_of(port) for port in ports["node 2"]] == [None, IPv4Address("10.0.0.2")]
    assert plan.port_of(IPv4Address("10.0.0.1")) is ports["H1"][0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.0.0.1\n", ":1: '10.0.0.1': expected ADDRESS HOST[PORT]"),
        ("\n10.0.0.256 H1\n", ":2: address '10.0.0.256': expected an IPv4 address such as 10.87.0.1"),
        ("fd00::1 H1\n", ":1: address 'fd00::1': expected an IPv4 address such as 10.87.0.1"),
        ("0.0.0.0 H1\n", ":1: address 0.0.0.0: expected one of a port, not of any, all or a group"),
        ("255.255.255.255 H1\n", ":1: address 255.255.255.255: expected one of a port, not of any, all or a group"),
        ("224.0.0.1 H1\n", ":1: address 224.0.0.1: expected one of a port, not of any, all or a group"),
        ("10.0.0.1 H2\n", ":1: port 'H2': expected one of H1[1], node 2[1], node 2[2]"),
        ("10.0.0.1 H1[2]\n", ":1: port 'H1[2]': expected one of H1[1], node 2[1], node 2[2]"),
        ("10.0.0.1 H1\n10.0.0.2 H1[1]\n", ":2: H1[1] stands in line 1 too: expected one address for each port"),
        ("10.0.0.1 H1\n10.0.0.1 node 2[2]\n", ":2: 10.0.0.1 stands in line 1 too: expected one address for each port"),
    ],
)
def test_a_line_that_is_none_is_told_with_its_number(tmp_path, text, says):
    with pytest.raises(UserError) as error:
        addresses_in(tmp_path, text)
    assert str(error.value) == f"{tmp_path}/addresses{says}"


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(UserError, match="none: addresses cannot be read: No such file or directory"):
        read_addresses(tmp_path / "none", NAMES)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="binary: addresses cannot be read: not text"):
        read_addresses(tmp_path / "binary", NAMES)
