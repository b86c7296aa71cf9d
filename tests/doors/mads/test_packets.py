"""MADs as packets: VL, LIDs, P_Key and GRH, there and back."""

import pytest

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Send
from doors.mads.packets import described, flight_key, is_for_adapter, mad_in, packet_of
from doors.mads.user_mad import Address, Registration
from tests.doors.mads.test_mad_layer import mad
from wire.codes import LID_PERMISSIVE, QP_GSI, QP_SMI, VL15, PortState
from wire.headers import BTH, DETH
from wire.mad import MadMethod, MgmtClass
from wire.packet import build_ud_send, parse
from wire.port_info import PORT_INFO
from wire.port_tables import GUID_INFO, P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE
from wire.sma import SmaAttribute

VLS = 2
PREFIX = 0xFE80_0000_0000_0000


def port(lid: int = 8, lmc: int = 1, state: PortState = PortState.ACTIVE) -> HostPort:
    made = HostPort(MadLayer(), "H1", 0, 1)
    made.known = {
        SmaAttribute.PORT_INFO: PORT_INFO.pack(lid=lid, lmc=lmc, port_state=state, gid_prefix=PREFIX),
        SmaAttribute.P_KEY_TABLE: P_KEY_TABLE.pack([0xFFFF, 0x8002, *[0] * 30]),
        SmaAttribute.SL_TO_VL_MAPPING_TABLE: SL_TO_VL_MAPPING_TABLE.pack([0, 1, 15, *[0] * 13]),
        SmaAttribute.GUID_INFO: GUID_INFO.pack([lid, *[0] * 7]),
    }
    return made


def test_a_directed_route_goes_on_vl15_with_permissive_lids():
    slot, data = packet_of(port(lid=0), Address(LID_PERMISSIVE, QP_SMI), mad(1, mgmt_class=0x81), VLS)
    packet = parse(data)
    assert (slot, packet.lrh.vl, packet.lrh.slid, packet.lrh.dlid) == (VLS, VL15, LID_PERMISSIVE, LID_PERMISSIVE)
    assert packet.icrc_good


def test_other_classes_go_on_the_vl_of_their_sl_from_the_lid_with_path_bits():
    address = Address(lid=20, qpn=QP_GSI, sl=1, path_bits=3, p_key_index=1)
    slot, data = packet_of(port(), address, mad(1), VLS)
    packet = parse(data)
    assert (slot, packet.lrh.vl, packet.lrh.sl) == (1, 1, 1)
    assert (packet.lrh.slid, packet.lrh.dlid, packet.header(BTH).p_key) == (9, 20, 0x8002)
    assert packet.header(DETH).q_key == 0x80010000


@pytest.mark.parametrize(("made", "sl"), [(port(), 2), (port(state=PortState.INITIALIZE), 0)])
def test_without_a_vl_or_an_active_port_nothing_is_sent(made, sl):
    assert packet_of(made, Address(20, QP_GSI, sl=sl), mad(1), VLS) is None


def test_what_arrives_says_where_it_came_from():
    there = port(lid=20)
    gid = (PREFIX << 64 | 20).to_bytes(16, "big")
    address = Address(lid=21, qpn=QP_GSI, sl=1, p_key_index=1, grh=(7, 3, gid, 0x12345))
    sent = mad(1, tid=77)
    _slot, data = packet_of(port(), address, sent, VLS)
    origin, arrived = mad_in(there, data)
    assert arrived == sent
    assert (origin.lid, origin.qpn, origin.sl, origin.path_bits, origin.p_key_index) == (8, QP_GSI, 1, 1, 1)
    assert origin.grh == (7, 3, (PREFIX << 64 | 8).to_bytes(16, "big"), 0x12345)


def test_packets_of_other_queue_pairs_are_not_for_programs():
    data = build_ud_send(slid=1, dlid=8, dest_qp=5, src_qp=5, q_key=0, payload=bytes(256)).data
    assert mad_in(port(), data) is None


def test_a_mad_is_known_again_after_hops_have_changed_it():
    sent = mad(1, mgmt_class=0x81)
    moved = sent[:4] + bytes([0, 0, 3, 2]) + sent[8:192] + bytes(range(64))
    assert flight_key(moved) == flight_key(sent)
    assert flight_key(mad(1, tid=6)) != flight_key(mad(1, tid=5))


def test_an_adapter_answers_its_own_host_for_its_agents_alone():
    assert is_for_adapter(mad(MadMethod.GET))
    for smi_class in (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE):
        assert is_for_adapter(mad(MadMethod.GET, mgmt_class=smi_class))
        assert not is_for_adapter(mad(MadMethod.GET_RESP, mgmt_class=smi_class))
    assert not is_for_adapter(mad(0x81))
    assert not is_for_adapter(mad(MadMethod.GET, mgmt_class=MgmtClass.SUBN_ADM))


@pytest.mark.parametrize(
    ("mgmt_class", "says"),
    [(MgmtClass.PERF, "Get(PortCounters) to LID 9"), (0x22, "Get(0x0012) of class 0x22 to LID 9")],
)
def test_what_has_no_name_here_is_described_by_its_class(mgmt_class, says):
    sent = bytearray(mad(1, mgmt_class=mgmt_class))
    sent[16:18] = (0x12).to_bytes(2, "big")
    made = port()
    agent = made.mads.register(made, Registration(QP_GSI))
    assert described(Send(agent, Address(9, QP_GSI), bytes(sent), 0, 0, None, True)) == says
