"""What a trap's packet says (docs/management.md, section 5; IBTA vol 1, 13.4.8.2 and 14.2.5.1)."""

from functools import reduce
from typing import Any, Final

from amaranth.hdl import Const, Mux, Value
from amaranth.lib import data

from rtl.management.mad_packet import BTH_START, DETH_START, MAD_START, MAD_WORDS
from rtl.management.place import WORD_BITS, constant_words, fields_in_words, masks
from rtl.rotation import select
from wire.codes import LNH, QP_GSI, QP_SMI, VL15
from wire.congestion_control import CC_MAD, CcAttribute
from wire.headers import BTH, DETH, LRH
from wire.layout import Field
from wire.mad import MadMethod
from wire.notice import NOTICE, NOTICE_DETAILS, NOTICE_TYPES, TrapNumber
from wire.opcodes import Opcode
from wire.port_info import ADAPTER_CAPABILITIES, CapabilityMask
from wire.sma import SmaAttribute
from wire.smp import SMP_LID_ROUTED

__all__ = [
    "CC_TRAP",
    "TRAPS",
    "VIOLATION",
    "VIOLATION_M_KEY_WORD",
    "cc_violation_words",
    "head_words",
    "notice_words",
    "told_traps",
    "told_words",
    "trap_numbers",
    "violation_words",
]

TRAPS: Final = 4
"""Each kind of node has so many: one of its port or ports, the M_Key's, and those of other keys."""

VIOLATION: Final = 1
"""The place in turn of the one about the M_Key."""

CC_TRAP: Final = 3
"""The place in turn, in a switch, of the one about the CC_Key."""

_DATA_VALID: Final = 0x000F
"""LIDs, P_Key and SL are told, QPs and GIDs are not."""

_DETAILS = NOTICE["data_details"].byte
_VIOLATION = NOTICE_DETAILS[TrapNumber.BAD_M_KEY]
_CC_VIOLATION = NOTICE_DETAILS[TrapNumber.BAD_CC_KEY]


def _added(words: dict[int, Value], more: dict[int, Value]) -> dict[int, Value]:
    zero = Const(0, WORD_BITS)
    return {index: words.get(index, zero) | more.get(index, zero) for index in sorted({*words, *more})}


def trap_numbers(is_switch: bool) -> tuple[TrapNumber, ...]:
    """The traps of a node, in turn."""
    if is_switch:
        return (
            TrapNumber.LINK_STATE_CHANGE,
            TrapNumber.BAD_M_KEY,
            TrapNumber.BAD_P_KEY_AT_SWITCH,
            TrapNumber.BAD_CC_KEY,
        )
    return TrapNumber.LOCAL_CHANGES, TrapNumber.BAD_M_KEY, TrapNumber.BAD_P_KEY, TrapNumber.BAD_Q_KEY


def told_traps(is_switch: bool) -> slice:
    """The places in turn of those that tell of a packet, with the words of `told_words`."""
    return slice(2, 3) if is_switch else slice(2, 4)


def head_words(is_switch: bool, trap: Value, to: Any) -> dict[int, Value]:
    """Words of a trap's packet before the data, without its LIDs and the lower half of its TransactionID; those
    not named are 0. `trap` is its place in `trap_numbers`, one-hot; `to` is its `TrapDestination`."""
    numbers = trap_numbers(is_switch)
    number = select(trap[: len(numbers)], [Const(number, WORD_BITS) for number in numbers])
    high, _ = masks(SMP_LID_ROUTED["transaction_id"], MAD_START)
    fields = [
        fields_in_words({LRH["sl"]: to.sl}),
        fields_in_words({BTH["p_key"]: to.p_key, BTH["dest_qp"]: to.qp}, BTH_START),
        fields_in_words({DETH["q_key"]: to.q_key}, DETH_START),
        {high: number},
    ]
    smp = SMP_LID_ROUTED.pack(method=MadMethod.TRAP, attribute_id=SmaAttribute.NOTICE)
    constant = _constant_words(VL15, QP_SMI, smp)
    if is_switch:
        gmp = CC_MAD.pack(method=MadMethod.TRAP, attribute_id=CcAttribute.NOTICE)
        of_cc = _constant_words(0, QP_GSI, gmp)
        constant = {
            index: Mux(trap[CC_TRAP], of_cc.get(index, 0), constant.get(index, 0))
            for index in sorted({*constant, *of_cc})
        }
    return reduce(_added, fields, constant)


def _constant_words(vl: int, src_qp: int, mad: bytes) -> dict[int, Value]:
    headers = LRH.pack(vl=vl, lnh=LNH.IBA_LOCAL, pkt_len=MAD_WORDS) + BTH.pack(opcode=Opcode.UD_SEND_ONLY)
    return constant_words(headers + DETH.pack(src_qp=src_qp) + mad)


def notice_words(is_switch: bool, producer: Value, lid: Value, is_sm: Value) -> list[dict[int, Value]]:
    """Words of the Notice of each of a node's traps, without those of `violation_words` and `told_words`."""
    notices = []
    for number in trap_numbers(is_switch):
        told = NOTICE.pack(notice_type=NOTICE_TYPES[number], trap_number=number)
        details = NOTICE_DETAILS[number]
        seen: dict[int, Value] = {}
        if number in (TrapNumber.LINK_STATE_CHANGE, TrapNumber.LOCAL_CHANGES):
            seen = fields_in_words({details["lid"]: lid}, _DETAILS)
        if number is TrapNumber.LOCAL_CHANGES:
            capabilities = Mux(is_sm, ADAPTER_CAPABILITIES | CapabilityMask.IS_SM, ADAPTER_CAPABILITIES)
            seen = _added(seen, fields_in_words({details["capability_mask"]: capabilities}, _DETAILS))
        seen = _added(seen, fields_in_words({NOTICE["producer_type"]: producer}))
        seen = _added(seen, fields_in_words({NOTICE["issuer_lid"]: lid}))
        notices.append(_added(constant_words(told), seen))
    return notices


def told_words(is_switch: bool, told: data.View, lid: Value) -> dict[int, Value]:
    """Words of the Notice of a trap that tells of a packet with a wrong key, besides."""
    details = NOTICE_DETAILS[TrapNumber.BAD_P_KEY_AT_SWITCH if is_switch else TrapNumber.BAD_P_KEY]
    fields: dict[Field, Value] = {details["lid1"]: told.slid, details["lid2"]: told.dlid, details["sl"]: told.sl}
    if is_switch:
        fields |= {details["data_valid"]: Const(_DATA_VALID), details["p_key"]: told.p_key}
        fields |= {details["sw_lid"]: lid, details["port"]: told.port}
    else:
        fields |= {details["key"]: told.key, details["qp1"]: told.source_qp, details["qp2"]: told.dest_qp}
    return fields_in_words(fields, _DETAILS)


def violation_words(lid: Value, method: Value, attribute: Value, modifier: Value, dr_slid: Value) -> dict[int, Value]:
    """Words of trap 256's Notice that describe the violating SMP, except its M_Key."""
    told: dict[Field, Value] = {
        _VIOLATION["lid"]: lid,
        _VIOLATION["dr_slid"]: dr_slid,
        _VIOLATION["method"]: method,
        _VIOLATION["attribute_id"]: attribute,
        _VIOLATION["attribute_modifier"]: modifier,
    }
    return fields_in_words(told, _DETAILS)


def cc_violation_words(lid: Value, method: Value, attribute: Value, modifier: Value, key: Value) -> dict[int, Value]:
    """Words of trap 0's Notice that describe the violating request."""
    told: dict[Field, Value] = {
        _CC_VIOLATION["slid"]: lid,
        _CC_VIOLATION["method"]: method,
        _CC_VIOLATION["attribute_id"]: attribute,
        _CC_VIOLATION["attribute_modifier"]: modifier,
        _CC_VIOLATION["qp"]: Const(QP_GSI),
        _CC_VIOLATION["cc_key"]: key,
    }
    return fields_in_words(told, _DETAILS)


VIOLATION_M_KEY_WORD: Final = min(masks(_VIOLATION["m_key"], _DETAILS))
"""Word of the Notice with the higher half of the violating SMP's M_Key."""
