"""The fabric around programs: brought up, let run, cut, disturbed, looked at."""

import json
import subprocess
import sys

import pytest

from cosim.stimulus.actors import Replay
from ironband.verbs import (
    CQ,
    IBV_LINK_LAYER_INFINIBAND,
    IBV_MTU_2048,
    IBV_MTU_4096,
    IBV_PORT_ACTIVE,
    IBV_PORT_INIT,
    IBV_QPS_RTS,
    IBV_WC_RETRY_EXC_ERR,
    IBV_WC_SUCCESS,
    IBV_WR_RDMA_WRITE,
    AHAttr,
    Context,
    Fabric,
    PyverbsError,
    PyverbsUserError,
    connect,
    get_device_list,
)
from tests.ironband.verbs.sides import attributes, connected, make_side

MESSAGE = bytes(range(256)) * 40


@pytest.mark.parametrize("bring_up", ["sm", "bus"])
def test_hosts_have_what_brought_the_fabric_up_gave_them(bring_up):
    with Fabric("star", bring_up=bring_up) as fabric:
        ports = [Context(fabric, host).query_port(1) for host in fabric.hosts]
        assert all(port.state == IBV_PORT_ACTIVE and port.lid for port in ports)
        assert len({port.lid for port in ports}) == 2
        assert {port.active_mtu for port in ports} == {IBV_MTU_2048}
        assert {port.link_layer for port in ports} == {IBV_LINK_LAYER_INFINIBAND}
        assert [port.sm_lid for port in ports] == ([ports[0].lid] * 2 if bring_up == "sm" else [0, 0])
        one, two = connected(fabric)
        two.receive()
        one.send(b"x")
        assert two.completion().status == IBV_WC_SUCCESS


def test_a_fabric_of_several_switches_carries_messages_of_its_largest_mtu():
    with Fabric("fat_tree", bring_up="bus", mtu=4096, vls=2) as fabric:
        first, *_between, last = fabric.hosts
        one, two = connected(fabric, hosts=(first, last), path_mtu=IBV_MTU_4096)
        two.receive(length=len(MESSAGE))
        one.send(MESSAGE)
        assert two.completion().byte_len == len(MESSAGE)
        assert two.mr.read(len(MESSAGE)) == MESSAGE


def test_a_file_is_a_topology_too(tmp_path):
    file = tmp_path / "pair.net"
    file.write_text('Switch 4 "S"\n[1] "A"[1]\n[2] "B"[1]\nHca 1 "A"\n[1] "S"[1]\nHca 2 "B"\n[1] "S"[2]\n')
    with Fabric(file, bring_up="bus") as fabric:
        assert list(fabric.hosts) == ["A", "B"]
        there = Context(fabric, "B")
        assert there.query_device().phys_port_cnt == 2
        assert [there.query_port(number).state for number in (1, 2)] == [IBV_PORT_ACTIVE, IBV_PORT_INIT]


def test_a_context_without_a_fabric_is_at_the_one_opened_last():
    with pytest.raises(PyverbsUserError, match=r"no fabric is open: expected `with Fabric\(TOPOLOGY\):` around it"):
        Context(name="H1")
    with Fabric("star", bring_up="bus"), Fabric("ring_4", bring_up="bus") as ring:
        devices = get_device_list()
        assert [device.name.decode() for device in devices] == list(ring.hosts)
        assert Context(name=devices[1].name.decode()).network is ring
        ring.close()
        assert [device.name for device in get_device_list()] == [b"H1", b"H2"]


def test_two_fabrics_have_times_of_their_own(star):
    with Fabric("star", bring_up="bus") as other:
        sides = connected(star), connected(other)
        star.run(5_000)
        assert star.now - other.now == 5_000
        for one, two in sides:
            two.receive()
            one.send(b"x")
            assert two.completion().byte_len == 1


def test_time_stands_still_between_calls_and_goes_on_as_far_as_is_said(star):
    before = star.now
    one, two = connected(star)
    two.receive()
    one.send(MESSAGE[:100])
    assert star.now == before
    star.run(1)
    assert star.now == before + 1
    star.run(12_345)
    assert star.now == before + 12_346
    assert one.cq.poll()[0] == two.cq.poll()[0] == 1


def test_what_is_waited_for_ends_the_waiting(star):
    one, two = connected(star)
    assert star.run_until(lambda: False) is False
    two.receive()
    one.send(b"x")
    assert star.run_until(lambda: two.mr.read(1) == b"x") is True
    assert star.run_until(lambda: star.is_idle)
    before = star.now
    one.send(b"y")
    assert star.run_until(lambda: False, 300) is False
    assert star.now == before + 300


def test_completions_say_in_which_cycle_they_came(star):
    one, two = connected(star)
    two.receive()
    posted = star.now
    one.send(b"x")
    received, sent = two.completion(), one.completion()
    assert posted < received.cycle < sent.cycle <= star.now


def test_a_lost_packet_is_sent_again(star):
    one, two = connected(star)
    two.receive(length=len(MESSAGE))
    star.inject("H1", "lost_packet")
    one.send(MESSAGE)
    assert two.completion().byte_len == len(MESSAGE)
    assert two.mr.read(len(MESSAGE)) == MESSAGE
    assert star.counters("H1")["xmit_pkts"] > len(MESSAGE) / 1024


def test_under_errors_that_never_end_messages_arrive_as_they_were(star):
    one, two = connected(star, timeout=4)
    star.errors("H1", "bit_flip", 60_000)
    star.errors("H2", "lost_packet", 90_000)
    for number in range(200):
        data = bytes([number]) + MESSAGE
        one.send(data, IBV_WR_RDMA_WRITE, to=two)
        assert one.completion().status == IBV_WC_SUCCESS
        assert two.mr.read(len(data)) == data
    assert star.counters("SW1[1]")["rcv_errors"] > 2
    star.errors("H1", "bit_flip", 0)


def test_errors_are_the_same_with_the_same_seed():
    seen = []
    for _ in range(2):
        with Fabric("star", bring_up="bus", seed=3) as fabric:
            one, two = connected(fabric, timeout=4)
            fabric.errors("H1", "lost_packet", 2_000)
            for _message in range(10):
                one.send(MESSAGE, IBV_WR_RDMA_WRITE, to=two)
                one.completion()
            seen.append((fabric.now, fabric.counters("H1")))
    assert seen[0] == seen[1]


def test_a_link_that_comes_back_in_time_loses_nothing(star):
    one, two = connected(star, timeout=12)
    star.cut("SW1[2]")
    two.receive()
    one.send(b"held up")
    star.run(20_000)
    assert one.cq.poll() == (0, [])
    star.restore("H2")
    assert one.completion().status == IBV_WC_SUCCESS


def test_a_host_has_all_its_ports(tmp_path):
    file = tmp_path / "two.net"
    file.write_text(
        'Switch 4 "S"\n[1] "A"[1]\n[2] "A"[2]\n[3] "B"[1]\n[4] "B"[2]\n'
        + "".join(f'Hca 2 "{host}"\n[1] "S"[{port}]\n[2] "S"[{port + 1}]\n' for host, port in (("A", 1), ("B", 3)))
    )
    with Fabric(file) as fabric:
        one, two = make_side(fabric, "A"), make_side(fabric, "B")
        lids = {side.context.query_port(number).lid for side in (one, two) for number in (1, 2)}
        assert len(lids) == 4
        connect(one.qp, two.qp, port_num=2)
        two.receive()
        before = fabric.counters("B[2]")["rcv_pkts"]
        one.send(b"by the second port")
        assert two.completion().byte_len == 18
        assert fabric.counters("B[2]")["rcv_pkts"] > before


def test_traffic_goes_another_way_when_the_subnet_manager_has_found_it():
    with Fabric("ring_4", link_down_timeout=1_000) as ring:
        one, two = connected(ring, hosts=("H1", "H2"), timeout=8)
        ring.cut("R1[2]")
        two.receive()
        one.send(b"around")
        assert one.completion().status == IBV_WC_SUCCESS
        assert two.mr.read(6) == b"around"
        assert ring.counters("R3[1]")["xmit_data"] > 0


def test_time_outs_come_at_once_where_that_is_asked_for():
    with Fabric("star", bring_up="bus", skip_timeouts=True, link_down_timeout=1_000) as fabric:
        one, _two = connected(fabric, timeout=14)
        fabric.cut("SW1[2]")
        one.send(b"x")
        assert one.completion().status == IBV_WC_RETRY_EXC_ERR
        assert fabric.now < 200_000
        assert fabric.skipped > 8 * (4096 << 14) // 4 - 200_000


def test_counters_count_what_programs_send(star):
    one, two = connected(star)
    two.receive()
    one.send(MESSAGE[:100])
    two.completion()
    star.run_until(lambda: star.is_idle)
    # A message and its ACK; PortXmitData counts words of 4 bytes.
    counted = star.counters("H1[1]")
    assert (counted["xmit_pkts"], counted["rcv_pkts"]) == (1, 1)
    assert counted["xmit_data"] == (8 + 12 + 100 + 4) // 4
    assert star.counters("SW1[2]")["xmit_pkts"] == 1


def test_what_passes_a_link_is_captured(tmp_path):
    file = tmp_path / "verbs.pcapng"
    with Fabric("star", bring_up="bus", capture=file, capture_at=["H1"]) as fabric:
        one, two = connected(fabric)
        two.receive()
        one.send(MESSAGE[:100])
        two.completion()
        one.completion()
    assert MESSAGE[:100] in file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("nowhere",), "topology 'nowhere': no such file, and Ironband comes with: .*star"),
        (("star", {"engine": "fpga"}), "engine 'fpga': expected one of verilator, icarus, amaranth, model"),
        (("star", {"bring_up": "hand"}), "bring_up 'hand': expected one of sm, bus"),
        (("star", {"vls": 3}), "vls 3: expected one of 1, 2, 4, 8, 15"),
        (("star", {"mtu": 1000}), "fabric star: .*1000"),
        (("star", {"rtl": ["SW9"]}), "rtl SW9: no such node; there are SW1, H1, H2"),
        (("star", {"rtl": ["SW1"]}), "fabric star: model simulates whole fabrics only: expected verilator or icarus"),
        (("star", {"capture_at": ["H1"]}), "capture_at H1: expected capture, the file, too"),
        (("star", {"capture": "verbs.pcapng", "capture_at": ["H9"]}), "fabric star: H9: no such node"),
        (("star", {"link_down_timeout": 0}), r"link_down_timeout 0: allowed 1\.\.16777215"),
    ],
)
def test_a_fabric_that_there_is_not_is_refused(arguments, match):
    topology, *more = arguments
    with pytest.raises(PyverbsUserError, match=match) as raised:
        Fabric(topology, **(more[0] if more else {}))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda fabric: Context(fabric, "H7"), "host H7: there is none; there are H1, H2"),
        (lambda fabric: fabric.cut("SW1[7]"), r"SW1\[7\]: has no link"),
        (lambda fabric: fabric.cut("SW1[9]"), r"SW1\[9\]: expected port 1\.\.8"),
        (lambda fabric: fabric.restore("H1"), "H1: its link is not cut"),
        (lambda fabric: (fabric.cut("H1"), fabric.cut("SW1[1]")), r"SW1\[1\]: its link is cut already"),
        (lambda fabric: fabric.inject("H1", "noise"), "errors of kind 'noise': expected bit_flip, lost_packet"),
        (lambda fabric: fabric.inject("H1", "bit_flip", bit=32), r"bit 32: allowed 0\.\.31"),
        (lambda fabric: fabric.inject("H1", "truncate", row=4095), r"row 4095: allowed 0\.\.4094"),
        (lambda fabric: fabric.errors("H1", "ebp", -1), "every -1: allowed 0 and above"),
        (lambda fabric: fabric.counters("SW1"), r"SW1: is a switch, expected SW1\[PORT\]"),
        (lambda fabric: fabric.step(0), "step of 0 cycles: allowed 1 and above"),
        (lambda fabric: fabric.run(-1), "run of -1 cycles: allowed 0 and above"),
    ],
)
def test_what_a_fabric_cannot_do_is_refused(star, use, match):
    with pytest.raises(PyverbsUserError, match=match):
        use(star)


def test_a_fabric_that_is_closed_takes_its_contexts_along(star):
    side = make_side(star, "H1")
    star.close()
    star.close()
    assert not side.context.is_open
    with pytest.raises(PyverbsError, match="the run is over"):
        star.step(1)
    with pytest.raises(PyverbsUserError, match="Context: has been closed"):
        CQ(side.context, 1)


def test_a_program_that_closes_nothing_leaves_nothing(tmp_path):
    program = (
        "from ironband.verbs import CQ, Context, Fabric; CQ(Context(Fabric('star', bring_up='bus'), 'H1'), 1).poll()"
    )
    environment = {"TMPDIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, env=environment
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_program_ends_at_once_and_leaves_nothing(tmp_path):
    program = (
        "import os, signal\n"
        "from ironband.verbs import Context, CQ, Fabric\n"
        "with Fabric('star', bring_up='bus') as fabric:\n"
        "    cq = CQ(Context(fabric, 'H1'), 1)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
        "    while True: fabric.run(1_000_000)\n"
    )
    environment = {"TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60)
    assert "KeyboardInterrupt" in run.stderr
    assert list(tmp_path.iterdir()) == []


# RTL.


def exchanged(engine: str, **more):
    """What is seen of the same messages on an engine: completions, their cycles, counters."""
    with Fabric("star", engine=engine, bring_up="bus", skip_timeouts=False, **more) as fabric:
        one, two = connected(fabric)
        two.receive(length=len(MESSAGE))
        fabric.inject("H1", "lost_packet")
        one.send(MESSAGE)
        seen = [(wc.wr_id, wc.status, wc.cycle) for wc in (two.completion(), one.completion())]
        one.send(MESSAGE, IBV_WR_RDMA_WRITE, to=two, at=1 << 15)
        seen += [(wc.wr_id, wc.status, wc.cycle) for wc in (one.completion(),)]
        assert two.mr.read(len(MESSAGE), 1 << 15) == MESSAGE
        return json.dumps([seen, fabric.now, fabric.counters("SW1[2]")])


@pytest.mark.slow
def test_programs_see_the_same_on_rtl_and_on_the_golden_model():
    on_model = exchanged("model")
    assert exchanged("verilator", compared=True) == on_model
    assert exchanged("verilator", rtl=["H1", "H2"]) == on_model


def one_message_and(cycles: int) -> None:
    with Fabric("star", engine="verilator", bring_up="bus", compared=True) as fabric:
        one, two = connected(fabric)
        two.receive()
        one.send(b"x")
        fabric.run(cycles)


@pytest.mark.slow
@pytest.mark.parametrize("cycles", [300, 10_000], ids=["told in the end", "told at once"])
def test_a_difference_between_rtl_and_golden_model_is_an_error(monkeypatch, cycles):
    monkeypatch.setattr(Replay, "posts_until", lambda replay, cycle: iter(()))
    with pytest.raises(PyverbsError, match=r"(?s)^first difference: cycle .* H1.*the same program once more"):
        one_message_and(cycles)


@pytest.mark.slow
def test_a_cut_cable_is_told_at_once_on_rtl():
    with Fabric("star", engine="verilator", link_down_timeout=1_000) as fabric:
        one, two = connected(fabric, timeout=14)
        two.receive()
        one.send(b"x")
        assert one.completion().status == IBV_WC_SUCCESS
        fabric.cut("SW1[2]")
        one.send(b"y")
        assert one.completion().status == IBV_WC_RETRY_EXC_ERR
        assert two.qp.qp_state == IBV_QPS_RTS
        assert fabric.now < 400_000


def test_a_queue_pair_goes_on_where_it_was_after_its_time_was_up(star):
    one, two = connected(star, timeout=1, retry_cnt=0)
    star.cut("H1")
    one.send(b"x")
    assert one.completion().status == IBV_WC_RETRY_EXC_ERR
    star.restore("H1")
    one.qp.modify(attributes(two, qp_state=0), 1)
    two.qp.modify(attributes(one, qp_state=0), 1)
    for side, peer in ((one, two), (two, one)):
        side.qp.to_rts(attributes(peer, ah_attr=AHAttr(dlid=peer.context.query_port(1).lid)))
    two.receive()
    one.send(b"again")
    assert two.completion().byte_len == 5
