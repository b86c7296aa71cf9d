"""Scenario files: what a user may write, and the errors for anything else."""

from pathlib import Path

import pytest

from cosim.scenario.find_scenario import ScenarioError, packaged_scenarios
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario, parse_scenario
from cosim.scenario.tables import Host, Link
from cosim.stimulus.flows import message_streams, scenario_packets, scenario_streams
from cosim.stimulus.injection import scenario_controls
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import TopologyError, read_topology
from wire.headers import LRH
from wire.parameters import NodeIdentity, SwitchParameters
from wire.registers import PortRegister
from wire.stimulus import Operation

TWO_HOSTS = """
cycles = 1000

[hosts.A]
[hosts.B]

[switches.S]
ports = 3

[[links]]
ends = ["A", "S[1]"]

[[links]]
ends = ["S[2]", "B"]
width = "1X"
flight_cycles = 7

[[flows]]
from = "A"
to = "B"
size = [0, 2048]
rate = 0.5
"""


def test_a_scenario_gives_the_fabric_that_the_engines_build():
    scenario = parse_scenario(TWO_HOSTS, "two.toml")
    fabric = scenario.fabric
    assert list(fabric.nodes) == ["S", "A", "B"]
    assert fabric.nodes["S"] == SwitchParameters(ports=3)
    assert [(link.a, link.a_port, link.b, link.b_port, link.flight) for link in fabric.links] == [
        ("A", 1, "S", 1, 1),
        ("S", 2, "B", 1, 7),
    ]
    assert scenario.lids == {"A": 1, "B": 2}


def test_a_fifo_switch_has_one_reader_unless_told_otherwise():
    assert parse_scenario(TWO_HOSTS + '[[ports]]\nat = "*"\ntick = 3', "x").switches["S"].parameters.readers == 2
    fifo = parse_scenario(TWO_HOSTS.replace("ports = 3", 'ports = 3\nqueueing = "fifo"'), "x")
    assert fifo.switches["S"].parameters.readers == 1


@pytest.mark.parametrize(
    ("link", "symbol_time_ns", "cycles"),
    [
        ({}, 4, 1),
        ({"flight_cycles": 9}, 4, 9),
        ({"flight_ns": 10}, 4, 3),
        ({"length_m": 100}, 4, 125),
        ({"length_m": 100}, 1, 500),
        ({"length_m": 0.8}, 4, 1),
        ({"length_m": 0.1}, 0.5, 1),
    ],
)
def test_the_flight_time_is_rounded_up_to_whole_cycles(link, symbol_time_ns, cycles):
    assert Link(ends=("A", "B"), **link).flight(symbol_time_ns) == cycles


def test_port_settings_name_registers():
    scenario = parse_scenario(TWO_HOSTS + '[[ports]]\nat = "S[2]"\ntick = 3\nfcp_period = 100', "x")
    assert scenario.ports[0].registers == {PortRegister.FCP_PERIOD: 100, PortRegister.TICK: 3}


@pytest.mark.parametrize("name", packaged_scenarios())
def test_scenarios_that_come_with_the_project_are_scenarios(name):
    assert load_scenario(name).name == name


def test_a_file_is_a_scenario_by_the_name_of_the_file(tmp_path):
    (tmp_path / "mine.toml").write_text(TWO_HOSTS)
    assert load_scenario(str(tmp_path / "mine.toml")).name == "mine"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cycles = 1000", "cycles = ", "two.toml: Invalid value (at line 2, column 10)"),
        ("cycles = 1000", "", "two.toml: cycles: missing, it must be given"),
        ("cycles = 1000", "cycles = -1", "two.toml: cycles: -1: expected greater than 0"),
        ("cycles = 1000", 'cycles = "1000"', "two.toml: cycles: '1000': expected a valid integer"),
        ("cycles = 1000", "cycles = 1000\nname = 'x'", "two.toml: name: unknown key"),
        ('width = "1X"', 'width = "2X"', "two.toml: links[1].width: '2X': expected '1X' or '4X'"),
        ("flight_cycles = 7", "flight_cycle = 7", "two.toml: links[1].flight_cycle: unknown key"),
        (
            "flight_cycles = 7",
            "flight_cycles = 7\nlength_m = 1",
            "two.toml: links[1]: flight_cycles and length_m given: expected at most one flight time",
        ),
        (
            "flight_cycles = 7",
            "length_m = 1e6",
            "two.toml: links: flight of link S[2]-B[1] 1250000: expected 1..65536",
        ),
        ("ports = 3", "ports = 1", "two.toml: switches: S: ports 1: expected 2..64"),
        ("ports = 3", "mtu = 300", "two.toml: switches: S: mtu 300: expected one of 256, 512, 1024, 2048, 4096"),
        ("ports = 3", "lft_size = 2", "two.toml: switches.S.lft_size: 2: expected more than the 3 LIDs"),
        ("S[2]", "S[4]", "two.toml: links: port of S in a link 4: expected 1..3"),
        ("S[2]", "S[1]", "two.toml: links: port S[1] is used by two links: expected one"),
        ("S[2]", "T[2]", "two.toml: links[1].ends: 'T[2]': no node 'T'; there are S, A, B"),
        ("S[2]", "S", "two.toml: links[1].ends: 'S': S is a switch, expected a port as in S[1]"),
        ("S[2]", "S.2", "two.toml: links[1].ends: 'S.2': expected NODE or NODE[PORT]"),
        ("[hosts.B]", "[hosts.B]\n[hosts.C]", "two.toml: links: adapter C has no link: expected one"),
        ("[hosts.B]", "[hosts.B]\n[hosts.S]", "two.toml: hosts: S: is a switch too, expected a name of its own"),
        ('to = "B"', 'to = "C"', "two.toml: flows[0].to: no host 'C'; there are A, B"),
        ('to = "B"', 'to = "A"', "two.toml: flows[0].to: 'A' is the source, expected another host"),
        ("2048]", "4000]", "two.toml: flows[0].size: 4000: expected at most the path's MTU, 2048 bytes"),
        ("[0, 2048]", "[9, 8]", "two.toml: flows[0].size: [9, 8]: expected 0..4096 bytes, or [least, most] of them"),
        ("rate = 0.5", "", "two.toml: flows[0]: neither count nor rate given: expected one or both"),
        ("rate = 0.5", "rate = 1.5", "two.toml: flows[0].rate: 1.5: expected less than or equal to 1"),
        ("rate = 0.5", "rate = 1\nsl = 16", "two.toml: flows[0].sl: 16: expected 0..15, or a list of them"),
        ("rate = 0.5", "rate = 1\nsl = []", "two.toml: flows[0].sl: []: expected 0..15, or a list of them"),
        ("rate = 0.5", "rate = 1\nsl = [1, 1]", "two.toml: flows[0].sl: [1, 1]: expected SLs that differ"),
        (
            "rate = 0.5",
            "rate = 1\noperation = 'rdma_write'",
            "two.toml: flows[0]: rdma_write is one message to one host: expected a count, one host and one SL",
        ),
        (
            "rate = 0.5",
            "count = 1\noperation = 'rdma_write'",
            "two.toml: flows[0]: size (0, 2048) of an rdma_write, expected a path's MTU: [256, 512, 1024, 2048, 4096]",
        ),
        ('from = "A"', 'from = "**"', "two.toml: flows[0].from: no host '**'; there are A, B"),
        (
            "rate = 0.5",
            'rate = 1\npattern = "transposed"',
            "two.toml: flows[0].pattern: 'transposed': expected 'uniform', 'transpose', 'bit_complement',"
            " 'permutation', 'all_to_all' or 'hotspot'",
        ),
        (
            "rate = 0.5",
            'rate = 1\npattern = "bit_complement"',
            "two.toml: flows[0]: pattern 'bit_complement': expected from and to '*', for it is of all hosts",
        ),
        (
            "rate = 0.5",
            "rate = 1\nhot_share = 0.2",
            "two.toml: flows[0]: hot_share given with pattern 'uniform': expected it with 'hotspot'",
        ),
        (
            'from = "A"\nto = "B"',
            'from = "*"\nto = "*"\npattern = "hotspot"\nhot = "S"',
            "two.toml: flows[0].hot: no host 'S'; there are A, B",
        ),
        (
            'from = "A"\nto = "B"',
            'from = "*"\nto = "*"\npattern = "transpose"',
            "two.toml: flows[0].pattern: 'transpose' of 2 hosts: expected a square number of them, 4, 9, 16, ...",
        ),
        ("rate = 0.5", "rate = 1\nburst = 0.5", "two.toml: flows[0].burst: 0.5: expected greater than or equal to 1"),
        (
            "rate = 0.5",
            "rate = 1\nburst = 2",
            "two.toml: flows[0]: burst 2: expected it with a rate and arrivals 'random'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(old, new, message):
    assert old in TWO_HOSTS
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_HOSTS.replace(old, new, 1), "two.toml")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[stalls]]\nhost = "C"\nfrom = 0\nto = 1', "stalls[0].host: no host 'C'; there are A, B"),
        ('[[stalls]]\nhost = "A"\nfrom = 1\nto = 1', "stalls[0]: from 1 to 1: expected to > from"),
        ('[[stalls]]\nhost = "A"\nfrom = 0\nto = 1\nvls = [1]', "stalls[0].vls: 1: expected 0..0 or 15"),
        ('[[errors]]\nkind = "ebp"\nfrom = "S[3]"\nat = 0', "errors[0].from: 'S[3]': has no link"),
        ('[[ports]]\nat = "S[3]"', "ports[0].at: 'S[3]': has no link"),
        ('[record]\nnodes = ["C"]', "record.nodes: no node 'C'"),
        ('[picture]\nports = ["A", "S[3]"]', "picture.ports[1]: 'S[3]': has no link"),
        ('[picture]\ncredits = ["C"]', "picture.credits[0]: 'C': no node 'C'; there are S, A, B"),
        ("[picture]\nfrom = 9\nto = 9", "picture: from 9 to 9: expected to > from"),
        ("[picture]\npanels = []", "picture.panels: []: expected at least one panel"),
        ('[picture]\npanels = ["wires"]', "picture.panels[0]: 'wires': expected 'packets', 'credits' or 'buffers'"),
    ],
)
def test_references_to_what_is_not_there_are_errors(more, message):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_HOSTS + more, "two.toml")
    assert str(caught.value) == f"two.toml: {message}"


RC = '[[flows]]\nfrom = "B"\nto = "A"\ntransport = "rc"\n'
UD = RC.replace("rc", "ud")


def test_a_flow_with_a_transport_is_one_of_messages():
    scenario = parse_scenario(TWO_HOSTS + RC + "count = 3\nmessage_bytes = 5_000\npath_mtu = 1024", "two.toml")
    (flow,) = scenario.message_flows
    assert [one.label for one in scenario.packet_flows] == ["A-B"]
    assert (flow.operation, flow.size, flow.timeout, flow.retry_count, flow.rnr_retry) == ("send", 5_000, 8, 7, 7)
    (stream,) = message_streams(scenario)
    assert (stream.source, stream.destination, stream.name) == ("B", "A", "B-A")
    assert stream.path_mtu(scenario.topology) == 1024
    # Four full packets and one of 904 bytes, each with LRH, BTH and ICRC, on a link of one lane.
    assert stream.link_cycles(scenario.topology) == 4 * (4 * (6 + 256 + 1) + 6 + 226 + 1)


def test_atomics_have_eight_bytes_and_packets_the_mtu_of_the_path():
    (flow,) = parse_scenario(TWO_HOSTS + RC + 'operation = "fetch_add"\ncount = 1', "two.toml").message_flows
    assert flow.size == 8
    scenario = parse_scenario(
        TWO_HOSTS.replace("[hosts.B]", "[hosts.B]\nmtu = 512").replace("2048", "512") + RC + "rate = 1", "x"
    )
    assert message_streams(scenario)[0].path_mtu(scenario.topology) == 512


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (RC, "flows[1]: neither count nor rate given: expected one or both"),
        (RC + "count = 1\nsize = 9", "flows[1].size: unknown key"),
        (RC.replace("rc", "xrc") + "count = 1", "flows[1].transport: 'xrc': expected 'rc', 'uc' or 'ud'"),
        (RC.replace('"A"', '"*"') + "count = 1", "flows[1]: to '*': expected one host, for a queue pair has one peer"),
        (RC.replace('"A"', '"C"') + "count = 1", "flows[1].to: no host 'C'; there are A, B"),
        (RC + "count = 1\nmessage_bytes = 7", "flows[1].message_bytes: 7: expected greater than or equal to 8"),
        (RC + "count = 1\nsl = [1, 2]", "flows[1].sl: [1, 2]: expected a valid integer"),
        (RC + "count = 1\ntimeout = 32", "flows[1].timeout: 32: expected less than or equal to 31"),
        (RC + "count = 1\ndepth = 0", "flows[1].depth: 0: expected greater than or equal to 1"),
        (RC + "count = 1\npath_mtu = 300", "flows[1].path_mtu: 300: expected 256, 512, 1024, 2048 or 4096"),
        (RC + "count = 1\npath_mtu = 4096", "flows[1].path_mtu: 4096: expected at most the path's MTU, 2048 bytes"),
        (
            UD + "count = 1\nmessage_bytes = 2049",
            "flows[1].message_bytes: 2049: expected at most the path's MTU, 2048 bytes",
        ),
        (UD + "count = 1\nretry_count = 1", "flows[1]: retry_count given with transport 'ud': expected it with 'rc'"),
        (
            UD + "count = 1\npath_mtu = 256",
            "flows[1]: path_mtu given with transport 'ud': expected it with 'rc' or 'uc'",
        ),
        (
            UD + "count = 1\noperation = 'rdma_read'",
            "flows[1]: operation 'rdma_read': expected one of ud: send",
        ),
        (
            RC + "count = 1\noperation = 'cmp_swap'\nmessage_bytes = 16",
            "flows[1]: message_bytes 16: expected 8, for cmp_swap",
        ),
        (
            RC + "count = 1\noperation = 'rdma_write'\nreceives = 4",
            "flows[1]: receives given with operation 'rdma_write', which takes no receive request: "
            "expected it with send, rdma_write_with_imm",
        ),
    ],
)
def test_what_is_wrong_with_a_flow_of_messages_is_said_in_one_line(flow, message):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_HOSTS + flow, "two.toml")
    assert str(caught.value) == f"two.toml: {message}"


ALPHA = '[partitions.alpha]\nkey = 1\nfull = ["A"]\nlimited = ["B"]\n'


def p_keys(more: str, base: str = TWO_HOSTS) -> dict[str, list[str]]:
    """P_Keys of hosts; 8001 is that of a full member."""
    scenario = parse_scenario(base + more, "two.toml")
    return {host: [f"{p_key:04x}" for p_key in p_keys] for host, p_keys in scenario.p_keys.items()}


def test_a_host_has_the_p_key_of_each_partition_that_it_is_in():
    assert p_keys("") == {}
    assert p_keys(ALPHA) == {"A": ["ffff", "8001"], "B": ["ffff", "0001"]}
    beta = '[partitions.beta]\nkey = 0x7ffe\nlimited = ["A"]\n'
    assert p_keys(beta + ALPHA) == {"A": ["ffff", "7ffe", "8001"], "B": ["ffff", "0001"]}


def test_all_are_full_members_of_the_default_partition_unless_a_table_says_who_is_in_it():
    default = '[partitions.default]\nkey = 0x7fff\nlimited = ["B"]\n'
    assert p_keys(ALPHA + default) == {"A": ["8001"], "B": ["7fff", "0001"]}


def test_a_port_of_a_host_is_in_a_partition_by_itself():
    two_ports = TWO_HOSTS.replace("[hosts.A]", "[hosts.A]\nports = 2") + '[[links]]\nends = ["A[2]", "S[3]"]\n'
    alpha = ALPHA.replace('"B"', '"A[2]"')
    assert list(p_keys(alpha, two_ports).values()) == [["ffff", "8001"], ["ffff", "0001"], ["ffff"]]


@pytest.mark.parametrize(
    ("partition", "more", "p_keys"),
    [
        ("", "", {"A": 0xFFFF, "B": 0xFFFF}),
        ("", ALPHA, {"A": 0xFFFF, "B": 0xFFFF}),
        ("", '[partitions.all]\nkey = 0x7fff\nlimited = ["A"]', {"A": 0x7FFF, "B": 0xFFFF}),
        ('partition = "alpha"\n', ALPHA, {"A": 0x8001, "B": 0x0001}),
        ('partition = "alpha"\n', ALPHA.replace('"A"', ""), {"A": 0x8001, "B": 0x0001}),
    ],
)
def test_packets_have_the_p_key_of_their_source_and_that_of_a_full_member_where_it_has_none(partition, more, p_keys):
    text = TWO_HOSTS.replace('from = "A"\nto = "B"\n', f'from = "*"\nto = "*"\n{partition}')
    scenario = parse_scenario(text + more, "two.toml")
    (flow,) = scenario.packet_flows
    assert {source: scenario.p_key_of(flow, source) for source in ("A", "B")} == p_keys


MANY = "".join(f'[partitions.p{key}]\nkey = {key}\nfull = ["A"]\n' for key in range(1, 33))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ALPHA.replace("key = 1", "key = 0"),
            "partitions.alpha.key: 0: expected 1..0x7fff, a P_Key without the bit of full members",
        ),
        (
            ALPHA.replace("key = 1", "key = 0x8001"),
            "partitions.alpha.key: 32769: expected 1..0x7fff, a P_Key without the bit of full members",
        ),
        (ALPHA.replace("key = 1", 'key = "1"'), "partitions.alpha.key: '1': expected a valid integer"),
        (ALPHA.replace("key = 1", ""), "partitions.alpha.key: missing, it must be given"),
        (ALPHA.replace("full", "members"), "partitions.alpha.members: unknown key"),
        (ALPHA.replace('"A"', '"S"'), "partitions.alpha.full[0]: no host 'S'; there are A, B"),
        (ALPHA.replace('"B"', '"B[2]"'), "partitions.alpha.limited[0]: 'B[2]': B has one port"),
        (
            ALPHA.replace('"B"', '"B", "A[1]"'),
            "partitions.alpha.limited[1]: 'A[1]': is a member already, expected each host once",
        ),
        (
            ALPHA + ALPHA.replace("alpha", "beta"),
            "partitions.beta.key: 0x1: is that of alpha, expected another one",
        ),
        (
            MANY,
            "partitions: A is in 33 of them, expected at most 32, the size of its P_Key table",
        ),
        (
            ALPHA + UD + "count = 1",
            "flows[1].transport: 'ud': expected none beside partitions, which are for flows of packets",
        ),
        (UD + 'count = 1\npartition = "alpha"', "flows[1].partition: unknown key"),
    ],
)
def test_what_is_wrong_with_partitions_is_said_in_one_line(more, message):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_HOSTS + more, "two.toml")
    assert str(caught.value) == f"two.toml: {message}"


@pytest.mark.parametrize(("more", "there_are"), [("", "none"), (ALPHA, "alpha")])
def test_a_flow_is_of_a_partition_that_there_is(more, there_are):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_HOSTS + 'partition = "beta"\n' + more, "two.toml")
    assert str(caught.value) == f"two.toml: flows[0].partition: no partition 'beta'; there are {there_are}"


def test_any_host_needs_another_one():
    alone = 'cycles = 9\n[hosts.A]\n[switches.S]\n[[links]]\nends = ["A", "S[1]"]\n'
    alone += '[[flows]]\nfrom = "*"\nto = "*"\nrate = 1'
    with pytest.raises(ScenarioError, match=r"flows\[0\]\.from: '\*': there is only one host, expected two or more"):
        parse_scenario(alone, "alone.toml")


def test_packets_to_any_host_fit_all_ways():
    text = TWO_HOSTS.replace("[hosts.B]", "[hosts.B]\nmtu = 1024").replace('to = "B"', 'to = "*"')
    with pytest.raises(ScenarioError, match=r"flows\[0\]\.size: 2048: expected at most the path's MTU, 1024 bytes"):
        parse_scenario(text, "two.toml")


def test_hosts_without_a_way_between_them_cannot_have_a_flow():
    apart = TWO_HOSTS.replace("[switches.S]", "[switches.T]\n[switches.S]").replace('"S[2]", "B"', '"T[2]", "B"')
    with pytest.raises(ScenarioError, match=r"two\.toml: flows\[0\]: no way from A to B"):
        parse_scenario(apart, "two.toml")


def test_an_unknown_scenario_is_answered_with_those_there_are(tmp_path):
    with pytest.raises(ScenarioError, match=r"^scenario 'jom': no such file, and Ironband comes with: .*jam"):
        load_scenario("jom")
    with pytest.raises(ScenarioError, match="No such file"):
        load_scenario(str(tmp_path / "nowhere.toml"))
    with pytest.raises(ScenarioError, match="Is a directory"):
        load_scenario(str(tmp_path))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="byte 0 is not UTF-8"):
        load_scenario(str(tmp_path / "binary.toml"))


def test_every_error_is_one_line():
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_HOSTS.replace("cycles = 1000", 'cycles = "a\\nb"'), "two.toml")
    assert "\n" not in str(caught.value)


def test_a_scenario_can_be_made_without_a_file():
    scenario = Scenario(cycles=10, hosts={"A": Host(), "B": Host()}, links=(Link(ends=("A", "B")),))
    assert list(scenario.fabric.nodes) == ["A", "B"]


NET = """
Switch 3 "S1" # "the switch"
[1] "H1"[1]
[3] "H2"[1] w=1
Ca 1 "H1"
[1] "S1"[1]
Ca 1 "H2"
[1] "S1"[3] w=1
"""


def with_net(tmp_path: Path, text: str) -> Scenario:
    (tmp_path / "two.net").write_text(NET)
    (tmp_path / "two.toml").write_text(f'cycles = 1\ntopology = "two.net"\n{text}')
    return load_scenario(str(tmp_path / "two.toml"))


def test_nodes_and_links_may_be_those_of_a_topology_file(tmp_path):
    scenario = with_net(tmp_path, "[switches.the_switch]\nvls = 2\n[hosts.H1]\nsend_blocks = 99")
    assert {name: (table.ports, table.vls) for name, table in scenario.switches.items()} == {"the_switch": (3, 2)}
    assert {name: table.send_blocks for name, table in scenario.hosts.items()} == {"H1": 99, "H2": 128}
    assert {(link.ends, link.width) for link in scenario.links} == {
        (("H1[1]", "the_switch[1]"), "4X"),
        (("H2[1]", "the_switch[3]"), "1X"),
    }


def test_nodes_are_who_they_are_in_the_topology_file(tmp_path):
    scenario = with_net(tmp_path, "")
    made = fabric_of(read_topology(tmp_path / "two.net"))
    assert {name: scenario.fabric.identity(name) for name in scenario.nodes} == made.fabric.identities
    assert scenario.fabric.identity("the_switch") == NodeIdentity(0x200000, 0x200000, "the switch")


TWO_PORTS = """
cycles = 1000
[switches.S]
ports = 4
[hosts.A]
ports = 3
[hosts.B]
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["A[2]", "S[2]"]
[[links]]
ends = ["B[1]", "S[3]"]
"""


def test_each_port_of_a_host_that_has_a_link_has_a_lid():
    scenario = parse_scenario(TWO_PORTS, "two.toml")
    assert list(scenario.nodes) == ["S", "A.1", "A.2", "A.3", "B"]
    assert scenario.lids == {"A.1": 1, "A.2": 2, "B": 3}
    assert scenario.topology.tables == {"S": {1: 1, 2: 2, 3: 3}}
    one, two = (scenario.fabric.identity(name) for name in ("A.1", "A.2"))
    assert (one.node_guid, one.ports, one.port, two.port) == (two.node_guid, 3, 1, 2)
    assert one.port_guid != two.port_guid


def test_flows_and_stalls_are_of_ports():
    more = """
[[flows]]
from = "A[2]"
to = "A"
count = 1
[[flows]]
from = "*"
to = "A[2]"
count = 1
[[stalls]]
host = "A[2]"
from = 0
to = 1
"""
    scenario = parse_scenario(TWO_PORTS + more, "two.toml")
    first, second = scenario.flows
    assert (scenario.sources_of(first), scenario.destinations_of(first, "A.2")) == (("A.2",), ("A.1",))
    assert scenario.sources_of(second) == ("A.1", "B")
    assert [stream.name for stream in scenario_streams(scenario)] == ["A[2]-A", "A[1]-A[2]", "B-A[2]"]
    (control, *_more) = scenario_controls(scenario, scenario.topology, 0)
    assert (control.operation, control.target) == (Operation.RECV_STALL, 2)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[flows]]\nfrom = "A[4]"\nto = "B"\ncount = 1', "flows[0].from: 'A[4]': A has ports 1..3"),
        ('[[flows]]\nfrom = "B[2]"\nto = "A"\ncount = 1', "flows[0].from: 'B[2]': B has one port"),
        ('[[flows]]\nfrom = "A[1]"\nto = "A"\ncount = 1', "flows[0].to: 'A' is the source, expected another host"),
        ('[[flows]]\nfrom = "A[3]"\nto = "A"\ncount = 1', "flows[0]: no way from A[3] to A[1]"),
        ('[[links]]\nends = ["A[2]", "S[4]"]', "links: port A[2] is used by two links: expected one"),
        ("[hosts.C]\nports = 65", "hosts.C.ports: 65: expected less than or equal to 64"),
    ],
)
def test_ports_of_a_host_that_are_not_there_are_errors(more, message):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TWO_PORTS + more, "two.toml")
    assert str(caught.value) == f"two.toml: {message}"


def test_hosts_of_a_topology_file_have_its_ports(tmp_path):
    net = NET.replace('Ca 1 "H2"', 'Ca 2 "H2"')
    (tmp_path / "two.net").write_text(net)
    (tmp_path / "two.toml").write_text('cycles = 1\ntopology = "two.net"\n')
    scenario = load_scenario(str(tmp_path / "two.toml"))
    assert scenario.fabric == fabric_of(read_topology(tmp_path / "two.net")).fabric
    assert list(scenario.lids) == ["H1", "H2.1"]


def test_what_the_topology_file_has_and_the_fabric_has_not_is_noted(tmp_path):
    assert with_net(tmp_path, "").notes == ()
    (tmp_path / "fast.net").write_text(
        'Ca 1 "A"\n[1] "B" # lid 0 lmc 0 "B" lid 0 2xHDR\nCa 1 "B"\n[1] "A" # lid 0 lmc 0 "A" lid 0 2xHDR\ndo dump'
    )
    scenario = parse_scenario('cycles = 1\ntopology = "fast.net"', "two.toml", folder=tmp_path)
    assert scenario.notes == (
        "links of the file: 1 of 2xHDR (here 1xSDR)",
        f"{tmp_path}/fast.net:5: 'do dump' is not done: of ibsim's console there is only link",
    )
    assert [link.width for link in scenario.links] == ["1X"]


@pytest.mark.parametrize("key", ["identities", "notes"])
def test_a_scenario_file_has_no_identities_or_notes(key):
    with pytest.raises(ScenarioError, match=rf"^two\.toml: {key}: unknown key$"):
        parse_scenario(f"{TWO_HOSTS}\n[{key}]", "two.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[links]]\nends = ["H1", "H2"]', "links: expected none beside those of two.net"),
        ("[hosts.H3]", "hosts.H3: two.net has none of this name"),
        ("[switches.the_switch]\nports = 4", "switches.the_switch: expected a table without ports, which are those of"),
        ("[hosts.H1]\nsend_blocks = 1", "hosts: H1: send_blocks 1: expected"),
    ],
)
def test_what_is_wrong_beside_a_topology_file_is_said_in_one_line(tmp_path, text, said):
    with pytest.raises(ScenarioError) as caught:
        with_net(tmp_path, text)
    assert str(caught.value).removeprefix(f"{tmp_path}/two.toml: ").startswith(said)


def test_a_bad_topology_file_is_told_with_its_line(tmp_path):
    (tmp_path / "bad.net").write_text("Switch\n")
    with pytest.raises(TopologyError, match=r"bad\.net:1: malformed line"):
        parse_scenario('cycles = 1\ntopology = "bad.net"', "two.toml", folder=tmp_path)


GROUP = (
    TWO_HOSTS.replace('to = "B"', 'to = "all"')
    + """
[groups.all]
mlid = 0xC001
members = ["A", "B"]
"""
)


def test_a_group_has_members_and_a_lid_and_its_packets_go_to_all_but_the_sender():
    scenario = parse_scenario(GROUP, "x")
    assert scenario.topology.groups == {0xC001: ("A", "B")}
    assert scenario.topology.multicast_tables == {"S": {0xC001: (1, 2)}}
    packets = list(scenario_packets(scenario, scenario.topology, 0, 1))
    assert {LRH["dlid"].read(packet.data) for packet in packets} == {0xC001}
    assert {(packet.source, packet.destination, packet.copies) for packet in packets} == {("A", None, (("B", 0),))}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0xC001", "0xC100", "groups.all.mlid: 49408: expected 0xc000..0xc0ff, which switches have room for"),
        ("[groups.all]", "[groups.A]", "groups.A: is a node too, expected a name of its own"),
        ('["A", "B"]', '["A"]', "groups.all.members: A: expected two or more, each once"),
        ('["A", "B"]', '["A", "B", "A"]', "groups.all.members: A, B, A: expected two or more, each once"),
        ('["A", "B"]', '["A", "C"]', "groups.all.members[1]: no host 'C'; there are A, B"),
        (
            '["A", "B"]',
            '["A", "B"]\n[groups.b]\nmlid = 0xC001\nmembers = ["A", "B"]',
            "groups.b.mlid: 0xc001: is that of all, expected another one",
        ),
        (
            "size = [0, 2048]",
            "transport = 'ud'\nmessage_bytes = 64",
            "flows[0].to: 'all' is a group: expected a flow of UD packets",
        ),
    ],
)
def test_what_is_no_group(old, new, message):
    assert old in GROUP
    with pytest.raises(ScenarioError) as error:
        parse_scenario(GROUP.replace(old, new), "x")
    assert message in str(error.value)


def test_who_is_no_member_sends_nothing_to_a_group():
    three = GROUP.replace("[hosts.B]", "[hosts.B]\n[hosts.C]").replace(
        "[groups", "[[links]]\nends = ['S[3]', 'C']\n[groups"
    )
    parse_scenario(three, "x")
    with pytest.raises(ScenarioError, match=r"flows\[0\].from: 'C' is no member of all, expected one"):
        parse_scenario(three.replace('from = "A"', 'from = "C"'), "x")
