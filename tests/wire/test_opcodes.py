"""Each BTH opcode brings its own headers and its own rule for the payload."""

import pytest

from wire.headers import AETH, ATOMIC_ACK_ETH, ATOMIC_ETH, DETH, IETH, IMM_DT, RDETH, RETH, XRCETH
from wire.opcodes import Opcode, Operation, PayloadRule, Service, extended_headers, is_request, payload_rule

RELIABLE = set(range(0x15)) | {0x16, 0x17}


@pytest.mark.parametrize(
    ("service", "base", "operations"),
    [
        (Service.RC, 0x00, RELIABLE),
        (Service.UC, 0x20, set(range(0x0C))),
        (Service.RD, 0x40, set(range(0x16))),
        (Service.UD, 0x60, {0x04, 0x05}),
        (Service.CNP, 0x80, {0x00}),
        (Service.XRC, 0xA0, RELIABLE),
    ],
)
def test_each_service_has_these_operations(service, base, operations):
    assert {opcode - base for opcode in Opcode if opcode.service is service} == operations


def test_an_opcode_is_named_by_its_service_and_operation():
    for opcode in Opcode:
        if opcode is Opcode.CNP:
            assert opcode.operation is None
        else:
            assert opcode.operation is not None
            assert opcode.name == f"{opcode.service.name}_{opcode.operation.name}"
            assert opcode == opcode.service << 5 | opcode.operation


@pytest.mark.parametrize(
    ("opcode", "chain"),
    [
        (Opcode.RC_SEND_ONLY, ()),
        (Opcode.RC_SEND_LAST_IMM, (IMM_DT,)),
        (Opcode.RC_SEND_ONLY_INV, (IETH,)),
        (Opcode.RC_RDMA_WRITE_FIRST, (RETH,)),
        (Opcode.RC_RDMA_WRITE_LAST_IMM, (IMM_DT,)),
        (Opcode.RC_RDMA_WRITE_ONLY_IMM, (RETH, IMM_DT)),
        (Opcode.RC_RDMA_READ_REQUEST, (RETH,)),
        (Opcode.RC_RDMA_READ_RESPONSE_MIDDLE, ()),
        (Opcode.RC_RDMA_READ_RESPONSE_ONLY, (AETH,)),
        (Opcode.RC_ACKNOWLEDGE, (AETH,)),
        (Opcode.RC_ATOMIC_ACKNOWLEDGE, (AETH, ATOMIC_ACK_ETH)),
        (Opcode.RC_CMP_SWAP, (ATOMIC_ETH,)),
        (Opcode.UC_RDMA_WRITE_ONLY, (RETH,)),
        (Opcode.UD_SEND_ONLY, (DETH,)),
        (Opcode.UD_SEND_ONLY_IMM, (DETH, IMM_DT)),
        (Opcode.RD_SEND_FIRST, (RDETH, DETH)),
        (Opcode.RD_RDMA_WRITE_ONLY_IMM, (RDETH, DETH, RETH, IMM_DT)),
        (Opcode.RD_RDMA_READ_RESPONSE_FIRST, (RDETH, AETH)),
        (Opcode.RD_ATOMIC_ACKNOWLEDGE, (RDETH, AETH, ATOMIC_ACK_ETH)),
        (Opcode.RD_RESYNC, (RDETH, DETH)),
        (Opcode.XRC_SEND_ONLY, (XRCETH,)),
        (Opcode.XRC_RDMA_WRITE_ONLY_IMM, (XRCETH, RETH, IMM_DT)),
        (Opcode.XRC_ACKNOWLEDGE, (AETH,)),
        (Opcode.CNP, ()),
    ],
    ids=lambda value: value.name if isinstance(value, Opcode) else "",
)
def test_these_headers_follow_the_bth(opcode, chain):
    assert extended_headers(opcode) == chain


def test_the_same_operation_has_the_same_payload_rule_in_every_service():
    rules = {(opcode.operation, payload_rule(opcode)) for opcode in Opcode if opcode is not Opcode.CNP}
    assert len(rules) == len(Operation)


@pytest.mark.parametrize(
    ("opcode", "rule", "allowed"),
    [
        (Opcode.RC_SEND_MIDDLE, PayloadRule.FULL, [256]),
        (Opcode.RC_SEND_LAST, PayloadRule.NON_EMPTY, [1, 255, 256]),
        (Opcode.UD_SEND_ONLY, PayloadRule.ANY, [0, 1, 255, 256]),
        (Opcode.RC_RDMA_READ_REQUEST, PayloadRule.NONE, [0]),
        (Opcode.RC_ACKNOWLEDGE, PayloadRule.NONE, [0]),
    ],
)
def test_the_payload_keeps_within_the_path_mtu(opcode, rule, allowed):
    assert payload_rule(opcode) is rule
    assert [size for size in (0, 1, 255, 256, 257) if rule.allows(size, 256)] == allowed


def test_responses_are_not_requests():
    responses = {opcode.name for opcode in Opcode if not is_request(opcode)}
    assert all("RESPONSE" in name or "ACKNOWLEDGE" in name for name in responses)
    assert len(responses) == 3 * 6


@pytest.mark.parametrize("opcode", [0x15, 0x18, 0x2C, 0x60, 0x66, 0x81, 0xB5, 0xC0, 0xE0, 0xFF, 0x100, -1])
@pytest.mark.parametrize("ask", [extended_headers, payload_rule, is_request])
def test_reserved_and_vendor_opcodes_are_refused(opcode, ask):
    with pytest.raises(ValueError, match=rf"BTH\.opcode {opcode:#04x} is reserved or vendor defined"):
        ask(opcode)
