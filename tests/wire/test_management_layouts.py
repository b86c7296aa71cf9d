"""Layouts of MADs and attributes keep to their bits: what is packed is unpacked, and reserved bits stay zero."""

import pickle
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.cm import CM_ATTRIBUTES, CM_MAD, CmMessage
from wire.congestion_control import (
    CA_CONGESTION_ENTRY,
    CA_CONGESTION_LOG,
    CA_CONGESTION_LOG_EVENT,
    CA_CONGESTION_SETTING,
    CC_CLASS_PORT_INFO,
    CC_MAD,
    CC_NOTICE,
    CCT_ENTRY,
    CONGESTION_CONTROL_TABLE,
    CONGESTION_INFO,
    CONGESTION_KEY_INFO,
    CONGESTION_LOG,
    CONGESTION_LOG_EVENT,
    CONGESTION_TIME_STAMP,
    SWITCH_CONGESTION_SETTING,
    SWITCH_PORT_CONGESTION_ELEMENT,
    SWITCH_PORT_CONGESTION_SETTING,
)
from wire.forwarding_tables import BLOCK_MODIFIER, MFT_MODIFIER, RANDOM_ENTRY
from wire.ip_cm import IP_CM_HEADER
from wire.layout import Layout
from wire.mad import CLASS_PORT_INFO, MAD_HEADER
from wire.mad_text import CLASS_ATTRIBUTES, CLASS_LAYOUTS
from wire.mc_member_record import MC_MEMBER_RECORD, MGID
from wire.node_info import NODE_DESCRIPTION, NODE_INFO
from wire.notice import NOTICE, NOTICE_DETAILS, NOTICE_WITH_ISSUER, TrapNumber
from wire.path_record import PATH_RECORD
from wire.pma import (
    PERF_MAD,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PORT_RCV_ERROR_DETAILS,
    PORT_SAMPLES_CONTROL,
    PORT_SAMPLES_RESULT,
    PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
    PORT_VL_XMIT_WAIT_COUNTERS,
    PORT_XMIT_DISCARD_DETAILS,
)
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import P_KEY_TABLE_MODIFIER, SL_TO_VL_MODIFIER, VL_ARBITRATION_ENTRY, VL_ARBITRATION_MODIFIER
from wire.sa import (
    INFORM_INFO,
    INFORM_INFO_RECORD,
    LINK_RECORD,
    NODE_RECORD,
    P_KEY_TABLE_RECORD,
    PORT_INFO_RECORD,
    SA_MAD,
    SERVICE_RECORD,
    SM_INFO_RECORD,
)
from wire.sma import (
    INDEX_MODIFIER,
    LED_INFO,
    LINK_SPEED_WIDTH_PAIRS_TABLE,
    PORT_MODIFIER,
    SM_INFO,
    SM_INFO_MODIFIER,
    VENDOR_DIAG,
)
from wire.smp import SMP_DIRECTED_ROUTE, SMP_LID_ROUTED
from wire.switch_info import SWITCH_INFO
from wire.table import Table

RESERVED = {
    # Bytes on the wire, and each run of reserved bits as (byte, bit, bits); from the standard's figures.
    MAD_HEADER: (24, [(18, 0, 16)]),
    SMP_LID_ROUTED: (256, [(18, 0, 16), (32, 0, 256), (128, 0, 1024)]),
    SMP_DIRECTED_ROUTE: (256, [(18, 0, 16), (36, 0, 224)]),
    PERF_MAD: (256, [(18, 0, 16), (24, 0, 320)]),
    NODE_DESCRIPTION: (64, []),
    NODE_INFO: (40, []),
    SWITCH_INFO: (20, [(16, 5, 11)]),
    PORT_INFO: (64, [(34, 2, 3), (52, 0, 3), (56, 0, 8), (63, 0, 3)]),
    SM_INFO: (24, [(21, 0, 24)]),
    VENDOR_DIAG: (64, [(2, 0, 16)]),
    LED_INFO: (4, [(0, 1, 31)]),
    LINK_SPEED_WIDTH_PAIRS_TABLE: (36, []),
    NOTICE: (64, []),
    NOTICE_DETAILS[TrapNumber.BAD_CC_KEY]: (54, [(3, 0, 8), (6, 0, 16), (12, 0, 8), (40, 0, 112)]),
    NOTICE_DETAILS[TrapNumber.GID_IN_SERVICE]: (54, [(0, 0, 48), (22, 0, 256)]),
    NOTICE_DETAILS[TrapNumber.LINK_STATE_CHANGE]: (54, [(2, 0, 416)]),
    NOTICE_DETAILS[TrapNumber.LOCAL_LINK_INTEGRITY]: (54, [(0, 0, 16), (5, 0, 392)]),
    NOTICE_DETAILS[TrapNumber.LOCAL_CHANGES]: (54, [(0, 0, 16), (4, 0, 15), (10, 0, 12), (14, 0, 320)]),
    NOTICE_DETAILS[TrapNumber.SYSTEM_IMAGE_GUID_CHANGE]: (54, [(0, 0, 16), (4, 0, 16), (14, 0, 320)]),
    NOTICE_DETAILS[TrapNumber.BAD_M_KEY]: (54, [(0, 0, 16), (7, 0, 8), (22, 0, 8)]),
    NOTICE_DETAILS[TrapNumber.BAD_P_KEY]: (54, [(0, 0, 16), (10, 4, 4), (14, 0, 8), (50, 0, 32)]),
    NOTICE_DETAILS[TrapNumber.BAD_Q_KEY]: (54, [(0, 0, 16), (10, 4, 4), (14, 0, 8), (50, 0, 32)]),
    NOTICE_DETAILS[TrapNumber.BAD_P_KEY_AT_SWITCH]: (54, [(8, 4, 4), (12, 0, 8), (51, 0, 24)]),
    CLASS_PORT_INFO: (72, [(32, 0, 8)]),
    PORT_SAMPLES_CONTROL: (192, [(3, 0, 5), (4, 0, 2), (8, 0, 1), (11, 0, 6), (68, 0, 32), (80, 0, 896)]),
    PORT_COUNTERS: (44, [(0, 0, 8), (20, 0, 16)]),
    PORT_COUNTERS_EXTENDED: (72, [(0, 0, 8), (4, 0, 32)]),
    PORT_SAMPLES_RESULT: (64, [(2, 0, 14)]),
    PORT_RCV_ERROR_DETAILS: (16, [(0, 0, 8)]),
    PORT_XMIT_DISCARD_DETAILS: (12, [(0, 0, 8)]),
    PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: (8, [(0, 0, 8)]),
    PORT_VL_XMIT_WAIT_COUNTERS: (36, [(0, 0, 8)]),
    RANDOM_ENTRY: (4, [(2, 4, 4)]),
    VL_ARBITRATION_ENTRY: (2, [(0, 0, 4)]),
    BLOCK_MODIFIER: (4, []),
    MFT_MODIFIER: (4, []),
    PORT_INFO_MODIFIER: (4, []),
    P_KEY_TABLE_MODIFIER: (4, []),
    SL_TO_VL_MODIFIER: (4, [(0, 0, 16)]),
    VL_ARBITRATION_MODIFIER: (4, []),
    SM_INFO_MODIFIER: (4, []),
    PORT_MODIFIER: (4, []),
    INDEX_MODIFIER: (4, []),
    CM_MAD: (256, [(18, 0, 16)]),
    IP_CM_HEADER: (36, [(1, 4, 4)]),
    PATH_RECORD: (64, [(44, 1, 3), (58, 0, 48)]),
    MC_MEMBER_RECORD: (52, [(49, 1, 23)]),
    MGID: (16, []),
    SA_MAD: (256, [(18, 0, 16), (46, 0, 16)]),
    NODE_RECORD: (108, [(2, 0, 16)]),
    PORT_INFO_RECORD: (68, [(3, 0, 8), (38, 2, 3), (56, 0, 3), (60, 0, 8), (67, 0, 3)]),
    P_KEY_TABLE_RECORD: (72, [(5, 0, 24)]),
    SM_INFO_RECORD: (28, [(2, 0, 16), (25, 0, 24)]),
    LINK_RECORD: (8, [(6, 0, 16)]),
    SERVICE_RECORD: (176, [(26, 0, 16)]),
    INFORM_INFO: (36, [(20, 0, 16), (31, 0, 3), (32, 0, 8)]),
    INFORM_INFO_RECORD: (60, [(18, 0, 48), (44, 0, 16), (55, 0, 3), (56, 0, 8)]),
    NOTICE_WITH_ISSUER: (80, []),
    CC_MAD: (256, [(18, 0, 16)]),
    CC_CLASS_PORT_INFO: (104, [(0, 0, 256), (64, 0, 8)]),
    CC_NOTICE: (112, [(0, 0, 256)]),
    CONGESTION_INFO: (35, [(0, 0, 256)]),
    CONGESTION_KEY_INFO: (46, [(0, 0, 256), (40, 1, 15)]),
    CONGESTION_LOG: (220, []),
    CONGESTION_LOG_EVENT: (12, [(4, 4, 28)]),
    CA_CONGESTION_LOG: (220, [(6, 0, 16)]),
    CA_CONGESTION_LOG_EVENT: (16, [(7, 0, 8)]),
    SWITCH_CONGESTION_SETTING: (108, [(0, 0, 256), (100, 4, 4), (102, 4, 12)]),
    SWITCH_PORT_CONGESTION_SETTING: (160, [(0, 0, 256)]),
    SWITCH_PORT_CONGESTION_ELEMENT: (4, [(0, 2, 2)]),
    CA_CONGESTION_SETTING: (164, [(0, 0, 256)]),
    CA_CONGESTION_ENTRY: (8, [(5, 0, 24)]),
    CONGESTION_CONTROL_TABLE: (164, [(0, 0, 256), (34, 0, 16)]),
    CCT_ENTRY: (2, []),
    CONGESTION_TIME_STAMP: (36, [(0, 0, 256)]),
    **{
        CM_ATTRIBUTES[message].format: (232, reserved)
        for message, reserved in (
            (
                CmMessage.REQ,
                [(4, 0, 32), (24, 0, 32), (90, 4, 6), (94, 5, 3), (95, 5, 3), (134, 4, 6), (138, 5, 3), (139, 5, 3)],
            ),
            (CmMessage.MRA, [(8, 2, 6), (9, 5, 3)]),
            (CmMessage.REJ, [(8, 2, 6), (9, 7, 1)]),
            (CmMessage.REP, [(15, 0, 8), (19, 0, 8), (23, 0, 8), (27, 4, 4)]),
            (CmMessage.RTU, []),
            (CmMessage.DREQ, [(11, 0, 8)]),
            (CmMessage.DREP, []),
            (CmMessage.SIDR_REQ, [(6, 0, 16)]),
            (CmMessage.SIDR_REP, [(6, 0, 16), (11, 0, 8)]),
            (CmMessage.LAP, [(8, 0, 32), (15, 5, 3), (16, 0, 32), (58, 4, 4), (61, 0, 2), (62, 5, 3), (63, 5, 3)]),
            (CmMessage.APR, [(10, 0, 16)]),
        )
    },
}
LAYOUTS = list(RESERVED)
TABLES = {
    # count, bits of an entry
    "GUIDInfo": (8, 64),
    "P_KeyTable": (32, 16),
    "SLtoVLMappingTable": (16, 4),
    "VLArbitrationTable": (32, 16),
    "LinearForwardingTable": (64, 8),
    "RandomForwardingTable": (16, 32),
    "MulticastForwardingTable": (32, 16),
}
ATTRIBUTES = [attribute for attributes in CLASS_ATTRIBUTES.values() for attribute in attributes.values()]

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


@cache
def values_of(layout: Layout) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({field.name: st.integers(0, field.max) for field in layout.fields})


def reserved_mask(layout: Layout) -> int:
    size, runs = RESERVED[layout]
    mask = 0
    for byte, bit, width in runs:
        mask |= ((1 << width) - 1) << (size * 8 - byte * 8 - bit - width)
    return mask


@each_layout
def test_every_bit_belongs_to_one_field_or_is_reserved(layout):
    assert layout.size_bytes == RESERVED[layout][0]
    used = sum(field.max << (layout.size_bytes * 8 - field.end_bits) for field in layout.fields)
    assert used ^ reserved_mask(layout) == (1 << layout.size_bytes * 8) - 1
    assert sum(field.width for field in layout.fields) == used.bit_count()


few = settings(max_examples=25)
"""There are more than a hundred layouts."""


@each_layout
@few
@given(data=st.data())
def test_packed_fields_come_back(layout, data):
    values = data.draw(values_of(layout))
    packed = layout.pack(values)
    assert dict(layout.unpack(packed)) == values
    assert all(field.read(packed) == values[field.name] for field in layout.fields)
    assert dict(layout.from_int(layout.to_int(values))) == values
    assert layout.to_int(values) & reserved_mask(layout) == 0


@each_layout
@few
@given(data=st.data())
def test_unpacked_bytes_come_back_with_reserved_bits_zero(layout, data):
    wire = data.draw(st.binary(min_size=layout.size_bytes, max_size=layout.size_bytes))
    kept = int.from_bytes(wire, "big") & ~reserved_mask(layout)
    assert layout.unpack(wire).pack() == kept.to_bytes(layout.size_bytes, "big")


@each_layout
@few
@given(data=st.data())
def test_every_value_can_be_told_to_a_person(layout, data):
    for name, value in data.draw(values_of(layout)).items():
        assert layout[name].text(value)


@each_layout
def test_layouts_survive_a_trip_to_another_process(layout):
    assert pickle.loads(pickle.dumps(layout)) == layout


def test_every_layout_and_table_of_a_class_is_checked_here():
    used = {*CLASS_LAYOUTS.values(), *NOTICE_DETAILS.values()}
    used |= {attribute.modifier for attribute in ATTRIBUTES if attribute.modifier.fields}
    formats = [attribute.format for attribute in ATTRIBUTES]
    used |= {form for form in formats if isinstance(form, Layout)}
    used |= {form.parts for form in formats if isinstance(form, Table) and form.parts}
    assert used <= set(LAYOUTS)
    tables = {form.name: (form.count, form.entry.width) for form in formats if isinstance(form, Table)}
    assert tables == TABLES


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.name)
def test_an_attribute_fits_its_mad(attribute):
    room = {1: 64, 4: 192, 7: 232, 0x21: 224}
    mgmt_class = next(code for code, attributes in CLASS_ATTRIBUTES.items() if attribute in attributes.values())
    assert attribute.format.size_bytes <= room[mgmt_class]
    assert attribute.modifier.size_bytes == 4


@pytest.mark.parametrize(
    ("layout", "field", "where"),
    [
        # byte, bytes, least significant bit in them; by hand from the standard's figures
        (SMP_DIRECTED_ROUTE, "d", (4, 1, 7)),
        (SMP_DIRECTED_ROUTE, "status", (4, 2, 0)),
        (SMP_DIRECTED_ROUTE, "hop_pointer", (6, 1, 0)),
        (SMP_DIRECTED_ROUTE, "hop_count", (7, 1, 0)),
        (SMP_DIRECTED_ROUTE, "dr_slid", (32, 2, 0)),
        (SMP_DIRECTED_ROUTE, "data", (64, 64, 0)),
        (SMP_DIRECTED_ROUTE, "initial_path", (128, 64, 0)),
        (SMP_DIRECTED_ROUTE, "return_path", (192, 64, 0)),
        (SMP_LID_ROUTED, "m_key", (24, 8, 0)),
        (PERF_MAD, "data", (64, 192, 0)),
        (PORT_INFO, "port_state", (32, 1, 0)),
        (PORT_INFO, "lmc", (34, 1, 0)),
        (PORT_INFO, "subnet_timeout", (51, 1, 0)),
        (SWITCH_INFO, "port_state_change", (11, 1, 2)),
        (NODE_INFO, "vendor_id", (37, 3, 0)),
        (SM_INFO, "sm_state", (20, 1, 0)),
        (PORT_COUNTERS, "excessive_buffer_overrun_errors", (19, 1, 0)),
        (NOTICE, "notice_count", (8, 2, 0)),
    ],
)
def test_fields_stand_where_the_standard_draws_them(layout, field, where):
    assert (layout[field].byte, layout[field].byte_span, layout[field].lsb_in_span) == where
