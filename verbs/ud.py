"""UD: datagrams (IBTA vol 1, 9.8.3)."""

from __future__ import annotations

from typing import Final

from verbs.arrived import Arrived
from verbs.completions import CompletionFlag, CompletionOpcode, CompletionStatus, WorkCompletion
from verbs.fields import deth_bytes
from verbs.frame import Envelope, Outgoing
from verbs.memory import MemoryFaultError
from verbs.pair_state import PairState
from verbs.regions import ProtectionError
from verbs.segments import segment
from verbs.states import QpState
from verbs.work import SendRequest, length_of, scatter
from wire.headers import GRH
from wire.opcodes import Service

__all__ = ["UdResponder", "ud_packet"]

_OWN_Q_KEY: Final = 1 << 31
"""A Q_Key with this bit in a work request stands for the queue pair's own (IBTA vol 1, 10.2.5)."""


def ud_packet(pair: PairState, request: SendRequest, index: int, psn: int) -> tuple[Outgoing, bool]:
    """The packet of a request, which is its last.

    Raises:
        ProtectionError: a key does not allow that the data is read, or the address handle is of another domain or port.
        MemoryFaultError: it is not there any more.
    """
    handle = request.handle
    if handle is None or handle.pd is not pair.pd or handle.vector.port != pair.attributes.port:
        raise ProtectionError(f"work request {request.wr_id}: its address handle is of another domain or port")
    q_key = pair.attributes.q_key if request.remote_q_key & _OWN_Q_KEY else request.remote_q_key
    operation, extended, payload = segment(request, 0, 1, pair.port.mtu, pair.keys, pair.pd)
    envelope = Envelope(pair.port, handle.vector, pair.attributes.p_key_index, request.remote_qp)
    deth = deth_bytes(q_key, pair.number)
    opcode = Service.UD << 5 | operation
    return envelope.packet(opcode, psn, deth + extended, payload, solicited=request.solicited), True


class UdResponder:
    """Takes datagrams for which a receive request is posted; others are lost."""

    def __init__(self, pair: PairState) -> None:
        self._pair = pair

    @property
    def expected(self) -> int:
        """PSNs are not looked at."""
        return 0

    def start(self) -> None:
        """PSNs are not looked at."""

    def clear(self) -> None:
        """Nothing is kept from one datagram to the next."""

    def flush(self) -> None:
        """Nothing is kept from one datagram to the next."""

    def next_packet(self, held: bool) -> Outgoing | None:
        """Nothing is answered."""
        return None

    def receive(self, packet: Arrived) -> None:
        """Takes a datagram.

        The first 40 bytes of the memory are for the GRH, and stay as they were if there is none. One that does not fit
        is lost, and its receive request completed with an error; the queue pair goes on, since anybody who knows its
        Q_Key may send such.
        """
        pair = self._pair
        q_key, src_qp = packet.deth()
        if q_key != pair.attributes.q_key:
            pair.port.count_q_key_violation(packet)
            return
        request = pair.receives.take()
        if request is None:
            return
        total, grh = GRH.size_bytes + len(packet.payload), packet.grh
        status, flags = CompletionStatus.SUCCESS, CompletionFlag.NONE
        if total > length_of(request.pieces):
            status = CompletionStatus.LOC_LEN_ERR
        else:
            try:
                if grh is not None:
                    flags |= CompletionFlag.GRH
                    scatter(pair.keys, pair.pd, request.pieces, 0, grh.pack())
                scatter(pair.keys, pair.pd, request.pieces, GRH.size_bytes, packet.payload)
            except (ProtectionError, MemoryFaultError):
                status = CompletionStatus.LOC_PROT_ERR
        if status:
            pair.complete_receive(request, status)
            if status is not CompletionStatus.LOC_LEN_ERR:
                pair.fail(QpState.ERR)
            return
        imm = 0
        if packet.has_imm:
            flags |= CompletionFlag.WITH_IMM
            imm = packet.imm
        completion = WorkCompletion(
            request.wr_id,
            CompletionStatus.SUCCESS,
            CompletionOpcode.RECV,
            pair.number,
            total,
            imm,
            flags,
            src_qp=src_qp,
            p_key_index=pair.attributes.p_key_index,
            slid=packet.slid,
            sl=packet.sl,
            dlid_path_bits=pair.port.path_bits(packet.dlid) if pair.port.has_lid(packet.dlid) else 0,
        )
        pair.recv_cq.add(completion, solicited=packet.solicited)
