"""Small stimuli, each for one mechanism that random traffic reaches late or never.

All are of a star (`star.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from star import ACTIVE_AT, ARMED_AT, PAIR, SMALL, START, SWITCH, TRIO, Star
from stimuli_of_congestion import CONGESTION_STIMULI
from stimuli_of_links import LINK_STIMULI

from cosim.stimulus.row_errors import link_error
from cosim.stimulus.run_spec import RunSpec
from wire.codes import MTU, VL15, LinkWidth, PortPhysicalState, PortState
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet, smp_packet
from wire.notice import TrapNumber
from wire.packet import Packet
from wire.parameters import reset_cycles
from wire.pma import ALL_PORTS, PMA_DATA_BYTES, PORT_COUNTERS, PORT_COUNTERS_EXTENDED, PmaAttribute, perf_request
from wire.port_info import PORT_INFO
from wire.registers import (
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    VL_XMIT_WAIT,
    Counter,
    Detail,
    NodeRegister,
    PacketCounter,
    PartitionCheck,
    PortRegister,
    lft_address,
    mft_address,
    node_address,
    p_key_address,
    port_address,
    sl_to_vl_address,
    vl_arbitration_address,
)
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Injection, KeyViolation, Trigger, WrongKey
from wire.switch_info import SWITCH_INFO
from wire.symbols import Control as Symbol

__all__ = ["STIMULI"]

_SWITCH_LID, _HOST_LID, _M_KEY = 1, 2, 0x77

_END_AT_ROW_20 = Injection(Trigger.DATA, 20, 20, keep=(1 << 36) - 1 ^ 0x1_0000_00FF, flip=1 << 32 | Symbol.EGP)
"""EGP on lane 3."""


def _pair(**options: int) -> Star:
    return Star(PAIR, SMALL, **options)


def credits_run_out() -> RunSpec:
    """A host that takes nothing: packets wait for credits in the switch, and go on when it takes them again."""
    star = _pair()
    star.set_register(START - 4, 2, PortRegister.TICK, 3)
    star.set_register(START - 3, 2, PortRegister.FC_WATCHDOG, 12)
    star.stall(START, 2)
    for size in (60, 100, 30, 0, 20, 10):
        star.post(START + 5, 1, 2, size)
    star.post(START + 5, 1, 2, 40, vl=VL15)
    star.resume(START + 150, 2)
    star.post(START + 170, 1, 2, 0, vl=VL15)
    of_vls = (PortRegister.FLOW_CTL_UPDATE_ERRORS, VL_XMIT_WAIT, VL_XMIT_WAIT + VL15)
    for register in (Counter.XMIT_DATA, Counter.XMIT_WAIT, *of_vls):
        star.read(START + 310, SWITCH, port_address(2, register))
    return star.spec(START + 320)


def bad_packets() -> RunSpec:
    """Packets that turn out to be bad while they are being sent: early ends, wrong VCRCs, bad ICRCs."""
    star = _pair()
    late = START
    for injection in (
        link_error("bit_flip", row=30, bit=3),
        _END_AT_ROW_20,
        link_error("truncate", row=25),
    ):
        star.post(late, 1, 2, 160)
        star.post(late, 1, 2, 20)
        # An adapter sends a packet when it has the whole of it.
        star.inject(late + 30, 1, injection)
        late += 90
    star.post(late, 1, 2, 30, icrc_error=1)
    return star.spec(late + 100)


def bad_packets_wait() -> RunSpec:
    """Bad packets that have to wait, so that they are known to be bad before they are sent."""
    star = _pair()
    star.stall(START, 2)
    star.post(START, 1, 2, 256)
    cycle = START + 110
    for _ in range(3):
        star.post(cycle, 1, 2, 180)
        star.inject(cycle + 55, 1, link_error("bit_flip", row=50, bit=3))
        cycle += 60
    cycle += 20
    star.resume(cycle, 2)
    for _ in range(3):
        star.post(cycle, 1, 2, 240)
    return star.spec(cycle + 350)


def flow_control_heals() -> RunSpec:
    """A lost packet costs credits until a flow control packet says what was sent; the first of those is lost too."""
    star = _pair()
    for port in star.ports:
        star.set_register(START, port, PortRegister.FCP_PERIOD, 60)
    star.inject(START, 1, link_error("lost_packet"))
    star.post(START, 1, 2, 20)
    star.inject(START + 40, 1, link_error("lost_flow_control"))
    return star.spec(START + 140)


def states() -> RunSpec:
    """Ports activated too early, and a port taken Down, which takes its neighbour with it."""
    star = _pair(activate=False)
    star.set_state(ARMED_AT + 4, PortState.ACTIVE)
    star.set_state(ACTIVE_AT, PortState.ACTIVE)
    star.write(START + 20, SWITCH, port_address(2, PortRegister.STATE), PortState.DOWN)
    return star.spec(START + 50)


def sleep() -> RunSpec:
    """A switch port that sleeps, and its link with it; then the host at its other end."""
    star = _pair()
    for cycle, node, port in ((START, SWITCH, 2), (START + 30, 2, 1)):
        for then, state in ((0, PortPhysicalState.SLEEP), (15, PortPhysicalState.POLLING)):
            star.write(cycle + then, node, port_address(port, PortRegister.PHYSICAL_STATE), state)
    star.post(START, 1, 2, 60)
    return star.spec(START + 120)


def damaged_on_its_link() -> RunSpec:
    """A packet for a LID that no port has, so that nobody but the port that receives it sees that it was damaged."""
    star = _pair()
    star.post(START, 1, 3, 20)
    star.inject(START, 1, link_error("bit_flip", row=10))
    return star.spec(START + 70)


def slow_to_fast() -> RunSpec:
    """From a 1X link to a 4X one."""
    star = _pair()
    star.set_register(0, 1, PortRegister.WIDTH, LinkWidth.X1)
    star.post(START, 1, 2, 10)
    return star.spec(START + 90)


def dead_port() -> RunSpec:
    """Packets for a 1X port that is not Active, and behind them one for another."""
    star = Star(replace(TRIO, vls=1), replace(SMALL, receive_blocks=24))
    star.set_register(0, 2, PortRegister.WIDTH, LinkWidth.X1)
    star.set_register(START, 2, PortRegister.STATE, PortState.DOWN)
    for dlid, size in ((2, 200), (2, 160), (3, 20), (2, 0)):
        star.post(START + 10, 1, dlid, size)
    return star.spec(START + 330)


def counters_end() -> RunSpec:
    """Counters that are near their end when packets move them."""
    star = _pair()
    ends = {Counter.RCV_PKTS: 0xFFFF_FFFE, Counter.RCV_DATA: 0xFFFF_FFF0, Counter.RCV_ERRORS: 0xFFFF}
    ends[Counter.RCV_SWITCH_RELAY_ERRORS] = 0xFFFF
    for counter, value in ends.items():
        star.write(START, SWITCH, port_address(1, counter), value)
    star.inject(START + 10, 1, link_error("bit_flip", row=12))
    for dlid in (2, 2, 9, 2, 2):
        star.post(START + 15, 1, dlid, 24)
    # Written again and again while another counter of its word may wait for its turn.
    for cycle in range(START + 20, START + 110, 2):
        star.write(cycle, SWITCH, port_address(1, Detail.MALFORMED_PACKET_ERRORS), 0)
    for counter in (*ends, Detail.LOCAL_PHYSICAL_ERRORS, Detail.DLID_MAPPING_ERRORS):
        star.read(START + 125, SWITCH, port_address(1, counter))
    return star.spec(START + 135)


def deep_buffers() -> RunSpec:
    """A receiver with more room than flow control can announce: 2048 blocks are the most."""
    star = Star(PAIR, replace(SMALL, receive_blocks=2100))
    star.stall(START, 2)
    for _ in range(4):
        star.post(START, 1, 2, 0)
    return star.spec(START + 120)


def relay() -> RunSpec:
    """Another VL at the output, a LID above LinearFDBTop, and a packet larger than the next link takes."""
    star = Star(
        replace(PAIR, vls=2, mtu=512, buffer_blocks=24),
        replace(SMALL, vls=2, mtu=512, receive_blocks=24),
        lids=3,
        top=2,
    )
    for sl in range(2):
        star.write(0, SWITCH, sl_to_vl_address(1, 2, sl), 1 - sl)
    star.write(0, SWITCH, port_address(1, PortRegister.NEIGHBOR_MTU), MTU.MTU_256)
    star.post(START, 1, 2, 50, vl=0)
    star.post(START + 40, 1, 2, 50, vl=1)
    star.post(START + 80, 1, 3, 50, vl=1)
    star.post(START, 2, 1, 360, vl=1)
    return star.spec(START + 220)


def crowd() -> RunSpec:
    """Three hosts send to each other on both VLs, all the time."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=24))
    random = Random(1)
    for number in range(12):
        for source, targets in ((1, (3, 2, 3)), (2, (3, 1, 3)), (3, (1, 2))):
            size = random.choice((0, 20, 44, 80))
            star.post(START, source, targets[number % len(targets)], size, vl=number // 3 % 2)
    return star.spec(START + 250)


def weights() -> RunSpec:
    """Two hosts send to the third on both VLs, which have weights, and two to the second, where VL1 goes first."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=24))
    lists = {3: ((VL_ARBITRATION_LOW, 2, 0, 6), (VL_ARBITRATION_LOW, 5, 1, 2))}
    lists[2] = ((VL_ARBITRATION_LOW, 0, 0, 9), (VL_ARBITRATION_HIGH, 7, 1, 9))
    for port, entries in lists.items():
        for list_offset, number, vl, weight in entries:
            star.write(0, SWITCH, vl_arbitration_address(port, list_offset, number), vl << 8 | weight)
    for number in range(16):
        for source, target in ((1, 3), (2, 3), (3, 2), (1, 2)):
            star.post(START, source, target, 44, vl=number % 2)
    return star.spec(START + 400)


def limits() -> RunSpec:
    """Hosts that take nothing: for one a head expires, and the VL stalls; for the other packets outlive their time."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=6))
    for register, value in ((PortRegister.HOQ_LIFE, 0), (PortRegister.VL_STALL_COUNT, 1)):
        star.write(0, SWITCH, port_address(2, register), value)
    star.write(0, SWITCH, node_address(NodeRegister.LIFE_TIME), 1)
    for host, sizes in ((2, (200, 180, 0, 20, 40)), (3, (200, 180, 0))):
        star.stall(START, host)
        for size in sizes:
            star.post(START + 5, 1, host, size)
    star.resume(START + 2_300, 3)
    for detail in (Detail.HOQ_LIFE_DISCARDS, Detail.LIFE_TIME_DISCARDS):
        for port in (2, 3):
            star.read(START + 2_460 + 4 * port, SWITCH, port_address(port, detail))
    return star.spec(START + 2_500)


def groups() -> RunSpec:
    """Packets to a group, of which a host takes none for a while, among others; what the table has not; a loop."""
    star = Star(replace(TRIO, readers=2), replace(SMALL, vls=2, receive_blocks=12))
    everybody, with_agent, unknown, alone = range(0xC001, 0xC005)
    for group, ports in ((everybody, 0b1110), (with_agent, 0b0101), (unknown, 0b1110), (alone, 0b0010)):
        star.write(0, SWITCH, mft_address(group, 0), ports)
    for register, value in (
        (NodeRegister.MULTICAST_FDB_TOP, with_agent),
        (NodeRegister.DEFAULT_MULTICAST_PRIMARY, 3),
        (NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY, 2),
    ):
        star.write(0, SWITCH, node_address(register), value)
    star.write(0, SWITCH, sl_to_vl_address(1, 3, 1), 0)
    star.write(0, SWITCH, sl_to_vl_address(1, 2, 1), 15)
    star.stall(START, 2)
    for size in (200, 20, 60, 0, 100):
        star.post(START, 1, everybody, size)
        star.post(START + 20, 1, 3, 40)
        star.post(START + 40, 1, everybody, 40, vl=1)
    star.post(START, 2, with_agent, 0)
    star.post(START + 50, 3, unknown, 0)
    star.post(START + 50, 2, unknown, 0)
    star.write(START + 250, SWITCH, node_address(NodeRegister.MULTICAST_FDB_TOP), 0)
    star.post(START + 260, 2, everybody, 20)
    star.post(START + 300, 1, alone, 0)
    star.resume(START + 330, 2)
    for counter in PacketCounter:
        star.read(START + 540, SWITCH, port_address(2, counter))
    return star.spec(START + 560)


def partitions() -> RunSpec:
    """Members of both kinds and of none, with a GRH and without, where they come in and where they would go out."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=24))
    both = PartitionCheck.INBOUND | PartitionCheck.OUTBOUND
    for port, checks in ((1, PartitionCheck.INBOUND), (2, both), (3, PartitionCheck.OUTBOUND)):
        star.write(0, SWITCH, port_address(port, PortRegister.PARTITION), checks)
    for port, entry, key in ((1, 31, 0x8001), (1, 12, 0x0002), (2, 20, 0x0001), (3, 11, 0x8002), (2, 10, 0x8000)):
        star.write(0, SWITCH, p_key_address(port, entry), key)
    for number, key in enumerate((0x8001, 0x0001, 0x0002, 0x8002, 0xFFFF, 0x7FFF, 0x8000, 0x0000)):
        for source, target in ((1, 2), (1, 3), (2, 3), (3, 2)):
            star.post(START + 40 * number, source, target, 4 * (number % 3), p_key=key, grh=number % 2 == 1)
    for counter in (Counter.RCV_CONSTRAINT_ERRORS, Counter.XMIT_CONSTRAINT_ERRORS):
        for port in star.ports:
            star.read(START + 560 + 4 * port, SWITCH, port_address(port, counter))
    return star.spec(START + 600)


def partitions_of_groups() -> RunSpec:
    """Packets to groups on both VLs, for ports that have different P_Keys, among others whose P_Keys are looked for as
    they arrive; the Subnet Manager at host 1 is told."""
    star = Star(replace(TRIO, readers=2), replace(SMALL, vls=2, receive_blocks=24))
    both, two, three = range(0xC001, 0xC004)
    for group, ports in ((both, 0b1100), (two, 0b0100), (three, 0b1001)):
        star.write(0, SWITCH, mft_address(group, 0), ports)
    out, raw_out = PartitionCheck.OUTBOUND, PartitionCheck.RAW_OUTBOUND
    for port, checks in ((1, PartitionCheck.INBOUND), (2, out), (3, out | raw_out)):
        star.write(0, SWITCH, port_address(port, PortRegister.PARTITION), checks)
    for port, entry, key in ((1, 1, 0x8001), (1, 2, 0x8002), (2, 3, 0x0001), (3, 4, 0x8002)):
        star.write(0, SWITCH, p_key_address(port, entry), key)
    info = PORT_INFO.pack(lid=9, master_sm_lid=1)
    star.send(START + 3, 1, _directed(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, key=0))
    for number, key in enumerate((0x8001, 0x0001, 0x8002, 0x0002, 0xFFFF, 0x7FFF)):
        begin = START + 300 + 60 * number
        for vl, group in ((0, both), (1, (two, three)[number % 2])):
            star.post(begin, 1, group, 4 * number, vl=vl, p_key=key, grh=number % 3 == 0)
        for _ in range(4):
            star.post(begin + 1, 1, 2, 0)
        star.post(begin + 2, 1, both, 12, raw=True)
    for counter in (Counter.XMIT_CONSTRAINT_ERRORS, Counter.XMIT_DISCARDS, Detail.P_KEY_VIOLATIONS):
        for port in star.ports:
            star.read(START + 900 + 4 * port, SWITCH, port_address(port, counter))
    return star.spec(START + 1300)


def p_keys_in_turns() -> RunSpec:
    """The entry by which packets come in is written around the cycle in which its table is looked into, with each
    packet a cycle later; to another P_Key and back, and then as it is. Another port's entry has its turn before."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=24))
    star.write(0, SWITCH, port_address(1, PortRegister.PARTITION), PartitionCheck.INBOUND)
    star.write(0, SWITCH, p_key_address(1, 31), 0x8001)
    offsets = 23
    for number in range(3 * offsets):
        begin = START + 30 * number
        star.post(begin + 8, 1, 2, 0, p_key=0x8001)
        given, changes = begin + number % offsets, number < 2 * offsets
        star.write(given, SWITCH, p_key_address(2, 31), number)
        star.write(given + 1, SWITCH, p_key_address(1, 31), 0x8021 if changes and number % 2 == 0 else 0x8001)
    return star.spec(START + 90 * offsets + 60)


def two_readers() -> RunSpec:
    """Two packets of one input, to a 1X and a 4X output, that end at the same time."""
    star = Star(replace(TRIO, vls=1, readers=2), replace(SMALL, receive_blocks=24))
    star.set_register(0, 2, PortRegister.WIDTH, LinkWidth.X1)
    for size in (64, *(0, 4, 8), 64, *(36, 4, 12)):
        star.post(START, 1, 2 if size == 64 else 3, size)
    return star.spec(START + 200)


def two_outputs() -> RunSpec:
    """An input with packets for two outputs, whose links come back at the same time."""
    star = Star(TRIO, replace(SMALL, vls=2, receive_blocks=24))
    for host in (2, 3):
        star.link(START + host, host, up=False)
        star.link(START + 90 + host, host, up=True)
        for _ in range(3):
            star.post(START, 1, host, 0)
    return star.spec(START + 160)


def two_queues() -> RunSpec:
    """A FIFO input with packets on both VLs for the same output and VL, whose link comes back."""
    switch = replace(PAIR, vls=2, buffer_blocks=24, queueing="fifo")
    star = Star(switch, replace(SMALL, vls=2))
    star.write(0, SWITCH, sl_to_vl_address(1, 2, 1), 0)
    star.link(START, 2, up=False)
    for vl in (0, 1):
        for size in (0, 20, 40):
            star.post(START, 1, 2, size, vl=vl)
    star.link(START + 120, 2, up=True)
    return star.spec(START + 230)


def management() -> RunSpec:
    """SMPs to the agent of the switch, one of them bad, and what is for port 0 or on VL15 and no SMP."""
    star = _pair(top=4)
    star.write(START, SWITCH, lft_address(4), 0)
    star.post(START + 10, 1, 4, 40)
    star.post(START + 10, 2, 1, 256, vl=VL15)
    star.send(START + 10, 1, _directed(MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE))
    for _ in range(2):
        star.ask(START + 10, 1, [1])
    star.read(START + 400, SWITCH, node_address(NodeRegister.NUM_PORTS))
    # The second SMP is damaged in flight while the agent works on the first, a Set, which takes longer.
    star.inject(START + 400, 1, link_error("bit_flip", row=40))
    return star.spec(START + 930)


def second_port() -> RunSpec:
    """Host 1 is at the second port of an adapter: it asks its own agent about both, and the switch by its port."""
    spec = _one_after_another(
        _managed_pair(),
        START + 1500,
        *(_directed(MadMethod.GET, SmaAttribute.PORT_INFO, modifier, path=()) for modifier in (1, 2)),
        _directed(MadMethod.GET, SmaAttribute.NODE_INFO, path=(2,)),
    )
    identity = replace(spec.parameters.identity("H1"), ports=2, port=2)
    return replace(spec, parameters=replace(spec.parameters, identities={"H1": identity}))


def refused_requests() -> RunSpec:
    """Requests just beyond what is allowed: a block of the LFT, a Set of what is only read, and too much data."""
    data = bytes([0, 1]).ljust(PMA_DATA_BYTES, b"\xff")
    fixed = perf_request(MadMethod.SET, PmaAttribute.PORT_SAMPLES_RESULT, data, transaction_id=4)
    shown = perf_request(MadMethod.GET, PmaAttribute.PORT_RCV_ERROR_DETAILS, data, transaction_id=5)
    return _one_after_another(
        _managed_pair(),
        START + 1900,
        _directed(MadMethod.GET, SmaAttribute.LINEAR_FORWARDING_TABLE, 1),
        gmp_packet(fixed, _HOST_LID, _SWITCH_LID),
        gmp_packet(shown, _HOST_LID, _SWITCH_LID),
    )


def bad_smp() -> RunSpec:
    """An SMP of which only the VCRC is wrong, and nothing waits before it."""
    star = _pair()
    star.ask(START, 1, [1])
    star.inject(START, 1, Injection(Trigger.DATA, at_end=True, flip=1 << 8))
    return star.spec(START + 700)


def m_key_rules() -> RunSpec:
    """SMPs to a switch that has an M_Key, of which its trap goes to host 1."""
    star = _managed_pair()
    own = PORT_INFO.pack(m_key=_M_KEY, m_key_protect_bits=2, lid=_SWITCH_LID, master_sm_lid=_HOST_LID)
    top = SWITCH_INFO.pack(linear_fdb_top=_HOST_LID)
    other_event = TrapNumber.BAD_M_KEY << 32 | 9
    no_trap = smp_request(MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE, transaction_id=other_event, m_key=_M_KEY)
    return _one_after_another(
        star,
        START + 3500,
        _directed(MadMethod.SET, SmaAttribute.PORT_INFO, 0, own, key=0),
        _directed(MadMethod.SET, SmaAttribute.SWITCH_INFO, 0, top),
        _directed(MadMethod.GET, SmaAttribute.NODE_INFO, key=1),
        smp_packet(no_trap, _HOST_LID, _SWITCH_LID),
        _directed(MadMethod.GET, SmaAttribute.PORT_INFO),
    )


def agent_rules() -> RunSpec:
    """Requests to the switch, each of which one rule of its agent decides."""
    far = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=2, path=[2], dr_slid=_HOST_LID)
    counters = PORT_COUNTERS.pack(port_select=1, counter_select=1 << 15).ljust(PMA_DATA_BYTES, b"\xff")
    clear = perf_request(MadMethod.SET, PmaAttribute.PORT_COUNTERS, counters, transaction_id=4)
    down = PORT_INFO.pack(port_state=PortState.DOWN, neighbor_mtu=MTU.MTU_256)
    return _one_after_another(
        _managed_pair(),
        START + 1800,
        smp_packet(far, _HOST_LID, _SWITCH_LID),
        gmp_packet(clear, _HOST_LID, _SWITCH_LID),
        _directed(MadMethod.SET, SmaAttribute.PORT_INFO, 2, down),
    )


def all_ports() -> RunSpec:
    """The counters of all ports of the switch, of which each has counted something."""
    star = _managed_pair()
    star.post(START + 4, 2, _HOST_LID, 40)
    counters = PORT_COUNTERS.pack(port_select=ALL_PORTS)
    asked = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, counters, transaction_id=6)
    star.send(START + 200, 1, gmp_packet(asked, _HOST_LID, _SWITCH_LID))
    return star.spec(START + 900)


def counted_apart() -> RunSpec:
    """What nobody lets through counts by why: a wrong ICRC at the agent, an SMP's LID without a route."""
    star = _managed_pair()
    asked = perf_request(MadMethod.GET, PmaAttribute.CLASS_PORT_INFO, transaction_id=5)
    star.send(START + 10, 1, gmp_packet(asked, _HOST_LID, _SWITCH_LID), icrc_error=1)
    star.post(START + 100, 1, 9, 256, vl=VL15)
    counters = (Counter.RCV_ERRORS, Counter.RCV_SWITCH_RELAY_ERRORS, Counter.VL15_DROPPED)
    for counter in counters:
        star.read(START + 300, SWITCH, port_address(1, counter))
    return star.spec(START + 320)


def to_groups() -> RunSpec:
    """A request to a group that the agent of the switch is in, and one to a group of host 1; then a right one, whose
    answer tells of the first."""
    star = _managed_pair()
    of_switch, of_host = 0xC001, 0xC002
    for group, ports in ((of_switch, 0b001), (of_host, 0b010)):
        star.write(START + 3, SWITCH, mft_address(group, 0), ports)
    counters = PORT_COUNTERS_EXTENDED.pack(port_select=1)
    asked = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS_EXTENDED, counters, transaction_id=6)
    star.send(START + 10, 1, gmp_packet(asked, _HOST_LID, of_switch))
    star.send(START + 10, 2, gmp_packet(asked, _SWITCH_LID, of_host))
    star.send(START + 200, 1, gmp_packet(asked, _HOST_LID, _SWITCH_LID))
    return star.spec(START + 900)


def wrong_keys() -> RunSpec:
    """Host 1 finds a wrong Q_Key, and in the next cycle a wrong P_Key; its own Subnet Manager is told."""
    star = _managed_pair()
    info = PORT_INFO.pack(lid=_HOST_LID, master_sm_lid=_HOST_LID, neighbor_mtu=MTU.MTU_256)
    star.send(START + 10, 1, _directed(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, key=0, path=()))
    for late, found in enumerate((KeyViolation.Q_KEY, KeyViolation.P_KEY)):
        wrong = WrongKey(found, key=0x8765 + late, slid=7, dlid=_HOST_LID, sl=3, source_qp=0xABCDE, dest_qp=0x54321)
        star.wrong_key(START + 700 + late, 1, wrong)
    return star.spec(START + 1200)


def wrong_p_keys() -> RunSpec:
    """A packet that may not leave by port 1; the Subnet Manager at host 1 is told."""
    star = _managed_pair()
    info = PORT_INFO.pack(lid=_SWITCH_LID, master_sm_lid=_HOST_LID)
    star.write(START + 3, SWITCH, port_address(1, PortRegister.PARTITION), PartitionCheck.OUTBOUND)
    star.send(START + 10, 1, _directed(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, key=0))
    star.post(START + 700, 2, _HOST_LID, 40, p_key=0x1234)
    return star.spec(START + 1200)


def with_grh() -> RunSpec:
    """A request with a GRH."""
    star = _managed_pair()
    asked = perf_request(MadMethod.GET, PmaAttribute.CLASS_PORT_INFO, transaction_id=5)
    star.send(START + 10, 1, gmp_packet(asked, _HOST_LID, _SWITCH_LID, grh={"sgid": 5, "dgid": 6}))
    return star.spec(START + 700)


def reset() -> RunSpec:
    """The switch is reset, and its forwarding table read."""
    star = _pair()
    star.reset(START + 20, SWITCH)
    over = START + 21 + reset_cycles(star.switch)
    star.read(over, SWITCH, lft_address(2))
    return star.spec(over + 20)


def _managed_pair() -> Star:
    """A pair whose switch has LID 1, and host 1 the highest, 2."""
    star = _pair(top=2)
    star.write(START, SWITCH, lft_address(_SWITCH_LID), 0)
    star.write(START + 1, SWITCH, lft_address(_HOST_LID), 1)
    star.write(START + 2, 1, node_address(NodeRegister.LID), _HOST_LID)
    star.post(START + 4, 1, _HOST_LID, 40)
    return star


def _directed(
    method: MadMethod,
    attribute: SmaAttribute,
    modifier: int = 0,
    data: bytes = b"",
    key: int = _M_KEY,
    path: Sequence[int] = (1,),
) -> Packet:
    """A request by directed route, by default to what is at the other end of the link."""
    return smp_packet(smp_request(method, attribute, modifier, data, transaction_id=1, m_key=key, path=path))


def _one_after_another(star: Star, cycles: int, *requests: Packet) -> RunSpec:
    """Host 1 sends requests, in time for the agent to be done with one when the next one comes."""
    for number, packet in enumerate(requests):
        star.send(START + 10 + 600 * number, 1, packet)
    return star.spec(cycles)


STIMULI: Final[dict[str, Callable[[], RunSpec]]] = (
    {
        stimulus.__name__: stimulus
        for stimulus in (
            credits_run_out,
            bad_packets,
            bad_packets_wait,
            flow_control_heals,
            states,
            sleep,
            damaged_on_its_link,
            slow_to_fast,
            dead_port,
            counters_end,
            deep_buffers,
            relay,
            crowd,
            weights,
            limits,
            groups,
            partitions,
            p_keys_in_turns,
            partitions_of_groups,
            two_readers,
            two_outputs,
            two_queues,
            management,
            second_port,
            refused_requests,
            bad_smp,
            m_key_rules,
            agent_rules,
            all_ports,
            counted_apart,
            to_groups,
            wrong_keys,
            wrong_p_keys,
            with_grh,
            reset,
        )
    }
    | CONGESTION_STIMULI
    | LINK_STIMULI
)
"""By name; each call makes the same stimulus anew."""
