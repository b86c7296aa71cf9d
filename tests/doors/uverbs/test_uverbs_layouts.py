"""The structures of the verbs devices are those of the kernel's public headers, to the byte."""

import os
import re
import subprocess

import pytest

from doors.uverbs import layouts
from doors.uverbs.c_struct import CStruct
from doors.uverbs.rxe_rings import ReceiveRing, Ring, RingFile, SendRing

STRUCTS = {name: one for name, one in vars(layouts).items() if isinstance(one, CStruct)}

SAME = {
    "DESTROY": ("ib_uverbs_dealloc_pd", {"handle": "pd_handle"}),
    "DESTROY_WITH_EVENTS": ("ib_uverbs_destroy_qp", {"handle": "qp_handle"}),
    "DESTROY_EVENTS_RESP": ("ib_uverbs_destroy_qp_resp", {}),
    "ATTACH_MCAST": ("ib_uverbs_attach_mcast", {}),
}
"""By C names: what stands for several structures, of which the others are compared by OTHERS."""

OTHERS = {
    "DESTROY": [
        ("ib_uverbs_dereg_mr", "mr_handle"),
        ("ib_uverbs_dealloc_mw", "mw_handle"),
        ("ib_uverbs_destroy_ah", "ah_handle"),
    ],
    "DESTROY_WITH_EVENTS": [("ib_uverbs_destroy_srq", "srq_handle")],
}

TAILS = {
    "EX_TAIL": ("ib_uverbs_ex_create_cq_resp", "comp_mask", {}),
    "RXE_CREATE_SRQ_TAIL": ("rxe_create_srq_resp", "srq_num", {}),
    "EX_QUERY_DEVICE_TAIL": (
        "ib_uverbs_ex_query_device_resp",
        "comp_mask",
        {
            "general_caps": "odp_caps.general_caps",
            "rc_odp_caps": "odp_caps.per_transport_caps.rc_odp_caps",
            "uc_odp_caps": "odp_caps.per_transport_caps.uc_odp_caps",
            "ud_odp_caps": "odp_caps.per_transport_caps.ud_odp_caps",
            "rss_supported_qpts": "rss_caps.supported_qpts",
            "max_rwq_indirection_tables": "rss_caps.max_rwq_indirection_tables",
            "max_rwq_indirection_table_size": "rss_caps.max_rwq_indirection_table_size",
            "max_rndv_hdr_size": "tm_caps.max_rndv_hdr_size",
            "max_num_tags": "tm_caps.max_num_tags",
            "tm_flags": "tm_caps.flags",
            "tm_max_ops": "tm_caps.max_ops",
            "tm_max_sge": "tm_caps.max_sge",
            "max_cq_moderation_count": "cq_moderation_caps.max_cq_moderation_count",
            "max_cq_moderation_period": "cq_moderation_caps.max_cq_moderation_period",
        },
    ),
}
"""What follows another structure: from which member on."""

NESTED = {
    "AH_ATTR": {name: f"grh.{name}" for name in ("dgid", "flow_label", "sgid_index", "hop_limit", "traffic_class")},
}


RINGS = {
    name: f"offsetof(struct {struct}, {member})"
    for name, struct, member in (
        ("producer", "rxe_queue_buf", "producer_index"),
        ("consumer", "rxe_queue_buf", "consumer_index"),
        ("data", "rxe_queue_buf", "data"),
        ("send", "rxe_send_wqe", "dma.sge"),
        ("receive", "rxe_recv_wqe", "dma.sge"),
    )
}

VERBS = {
    verb: f"IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_{verb.name[3:]}"
    if verb.name.startswith("EX_")
    else f"IB_USER_VERBS_CMD_{verb.name}"
    for verb in layouts.Verb
}

HEADERS = ("stddef.h", "stdio.h", "rdma/ib_user_verbs.h", "rdma/rdma_user_rxe.h")


def offsets(struct: CStruct) -> dict[str, int]:
    """Where the fields begin, found by what a value changes."""
    found = {}
    empty = struct.pack()
    for field in struct.fields:
        is_bytes = isinstance(getattr(struct.unpack(empty), field), bytes)
        packed = struct.pack(**{field: b"\1" if is_bytes else 1})
        found[field] = next(at for at, (one, other) in enumerate(zip(empty, packed, strict=True)) if one != other)
    return found


def expected(name: str) -> list[tuple[str, str]]:
    """Expressions in C, and the field that each is of, or "" for the size."""
    struct = STRUCTS[name]
    start, renamed = "0", NESTED.get(name, {})
    if name in TAILS:
        c_name, first, renamed = TAILS[name]
        start = f"offsetof(struct {c_name}, {first})"
    elif name in SAME:
        c_name, renamed = SAME[name]
    else:
        c_name = struct.name
    size = f"sizeof(struct {c_name}) - {start}"
    members = [(f"offsetof(struct {c_name}, {renamed.get(field, field)}) - {start}", field) for field in struct.fields]
    return [(size, ""), *members]


def others(name: str) -> list[tuple[str, str]]:
    """Size of other structures of the same form, and where their handle is."""
    return [
        (f"sizeof(struct {c_name})", f"offsetof(struct {c_name}, {field})") for c_name, field in OTHERS.get(name, [])
    ]


@pytest.fixture(scope="module")
def c_values(tmp_path_factory):
    """What a compiler says of all expressions."""
    wanted = [*RINGS.values(), *VERBS.values(), "IB_USER_VERBS_ABI_VERSION"]
    for name in STRUCTS:
        wanted += [expression for expression, _field in expected(name)]
        wanted += [expression for pair in others(name) for expression in pair]
    lines = "".join(f'printf("%zu\\n", (size_t)({one}));\n' for one in wanted)
    folder = tmp_path_factory.mktemp("layouts")
    source = "".join(f"#include <{header}>\n" for header in HEADERS) + f"int main(void) {{\n{lines}}}\n"
    (folder / "layouts.c").write_text(source)
    subprocess.run(["gcc", "-o", "layouts", "layouts.c"], cwd=folder, check=True)
    printed = subprocess.run(["./layouts"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return dict(zip(wanted, map(int, printed.split()), strict=True))


@pytest.mark.parametrize("name", STRUCTS)
def test_a_structure_is_as_in_the_kernels_header(name, c_values):
    struct = STRUCTS[name]
    values = {field: c_values[expression] for expression, field in expected(name)}
    assert struct.size == values.pop("")
    assert offsets(struct) == values
    for pair in others(name):
        assert [c_values[one] for one in pair] == [struct.size, values["handle"]]


def test_the_verbs_numbers_are_those_of_the_kernels_header(c_values):
    assert {verb: c_values[expression] for verb, expression in VERBS.items()} == {verb: verb for verb in VERBS}
    assert c_values["IB_USER_VERBS_ABI_VERSION"] == layouts.UVERBS_ABI_VERSION


def test_rings_and_requests_are_as_in_the_providers_header(c_values):
    assert SendRing.element(0, 0) == c_values[RINGS["send"]]
    assert ReceiveRing.element(0) == c_values[RINGS["receive"]]
    file = RingFile()
    ring = Ring(file, 1, 8)
    ring.write(0, b"datadata")
    ring.produced, ring.consumed = 1, 0
    memory = os.pread(file.descriptor, 4096, 0)
    ring.produced, ring.consumed = 0, 1
    after = os.pread(file.descriptor, 4096, 0)
    assert memory[c_values[RINGS["data"]] :].startswith(b"datadata")
    assert (memory[c_values[RINGS["producer"]]], after[c_values[RINGS["producer"]]]) == (1, 0)
    assert (memory[c_values[RINGS["consumer"]]], after[c_values[RINGS["consumer"]]]) == (0, 1)
    ring.close()
    file.close()


def test_a_field_that_there_is_not_is_named():
    with pytest.raises(ValueError, match=re.escape("ib_uverbs_alloc_pd_resp: no field handle")):
        layouts.ALLOC_PD_RESP.pack(handle=1)
