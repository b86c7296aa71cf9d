"""A program that writes anything at all to a verbs device harms no other."""

import contextlib
import os
import random
import struct
from collections import Counter

from doors.mads.umad_device import DeviceError
from doors.uverbs import layouts
from doors.uverbs.layouts import Verb
from tests.doors.verbs_client import (
    ROOM_WORDS,
    SUCCESS,
    Buffer,
    Mapped,
    Program,
    carry,
    completion,
    connected,
    packed,
    receive_wqe,
    send_wqe,
)

HANDLE_ALONE = {
    Verb.DEALLOC_PD: layouts.DESTROY,
    Verb.DESTROY_AH: layouts.DESTROY,
    Verb.DEREG_MR: layouts.DESTROY,
    Verb.DEALLOC_MW: layouts.DESTROY,
    Verb.DESTROY_QP: layouts.DESTROY_WITH_EVENTS,
    Verb.DESTROY_SRQ: layouts.DESTROY_WITH_EVENTS,
    Verb.DETACH_MCAST: layouts.ATTACH_MCAST,
}


KINDS = {
    Verb.ALLOC_PD: "pd",
    Verb.REG_MR: "mr",
    Verb.ALLOC_MW: "mw",
    Verb.CREATE_CQ: "cq",
    Verb.EX_CREATE_CQ: "cq",
    Verb.CREATE_QP: "qp",
    Verb.EX_CREATE_QP: "qp",
    Verb.CREATE_SRQ: "srq",
    Verb.CREATE_XSRQ: "srq",
    Verb.CREATE_AH: "ah",
    Verb.DEALLOC_PD: "pd",
    Verb.DEREG_MR: "mr",
    Verb.DEALLOC_MW: "mw",
    Verb.DESTROY_QP: "qp",
    Verb.DESTROY_SRQ: "srq",
    Verb.DESTROY_AH: "ah",
}
"""What commands make, or end by a field that is called handle alone."""

USUAL = {
    "comp_channel": (-1,),
    "qp_type": (2, 3, 4),
    "is_srq": (0, 0, 1),
    "mw_type": (1, 2),
    "port_num": (1,),
    "path_mtu": (1, 4),
    "qp_state": tuple(range(7)),
    "cqe": (1, 7, 100),
    "attr_mask": (0x39, 0x31 | 0x40, 0x121181 | 0x8000, 0x121181, 0x12E01, 0x10001, 1, 2, 3),
    **dict.fromkeys(("max_wr", "max_sge", "max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge"), (1, 3, 16)),
}


ADDRESSES = (layouts.AH_ATTR.pack(dlid=2, port_num=1), layouts.QP_DEST.pack(dlid=2, port_num=1))


class Liar:
    """Writes what could be commands; some of their fields are anything."""

    def __init__(self, host, draws: random.Random) -> None:
        self.program = Program(host)
        self.carried_out: Counter[Verb] = Counter()
        self._draws = draws
        self._memory = Buffer()
        self._made: dict[str, list[int]] = {kind: [0] for kind in KINDS.values()}
        self._rings: list[Mapped] = []

    def lie(self) -> None:
        """Write something, and perhaps over a ring."""
        draws = self._draws
        if draws.random() < 0.2:
            with contextlib.suppress(DeviceError):
                self.program.write(packed(draws.randrange(1 << 32), draws.randbytes(draws.randrange(200))))
            return
        verb = draws.choice(tuple(Verb))
        if verb in HANDLE_ALONE and draws.random() < 0.7:
            verb = Verb.POST_SEND
        body = self._body(verb)
        if draws.random() < 0.1:
            body = body[: draws.randrange(len(body))]
        room = ROOM_WORDS if draws.random() < 0.9 else draws.randrange(ROOM_WORDS)
        with contextlib.suppress(DeviceError):
            answer = self.program.write(packed(verb, body, room))
            self.carried_out[verb] += 1
            if verb in KINDS and len(answer) >= 4:
                self._made[KINDS[verb]].append(int.from_bytes(answer[:4], "little"))
            info = answer[-layouts.MMINFO.size :]
            if verb in (Verb.CREATE_CQ, Verb.CREATE_QP) and room == ROOM_WORDS:
                self._rings = [*self._rings[-20:], self.program.mapped(info)]
        if self._rings and draws.random() < 0.2:
            ring = draws.choice(self._rings)
            at = draws.choice((128, 256, 384, draws.randrange(len(ring.memory) - 8)))
            ring.memory[at : at + 8] = draws.choice((bytes(8), b"\3" + bytes(7), draws.randbytes(8)))

    def forget(self) -> None:
        """Close what was passed."""
        for descriptor in self.program.descriptors:
            os.close(descriptor)
        self.program.descriptors.clear()

    def _body(self, verb: Verb) -> bytes:
        layout = HANDLE_ALONE.get(verb) or getattr(layouts, verb.name)
        values = {field: self._value(verb, field) for field in layout.fields}
        for field, empty in layout.unpack(layout.pack())._asdict().items():
            if isinstance(empty, bytes):
                values[field] = self._draws.choice((bytes(32), self._draws.randbytes(32), *ADDRESSES))
        try:
            return layout.pack(**values)
        except struct.error:  # more than the field can hold
            return self._draws.randbytes(layout.size)

    def _value(self, verb: Verb, field: str) -> int:
        draws = self._draws
        if draws.random() < 0.03:
            return draws.choice((0, 1, draws.randrange(256), draws.randrange(1 << 32)))
        if field.endswith("handle") and field != "user_handle":
            kind = KINDS[verb] if field == "handle" else field.split("_")[-2]
            return draws.choice(self._made.get(kind, [0])[-8:])
        if field in ("start", "hca_va"):
            return draws.choice((self._memory.address, 0))
        if field == "length":
            return draws.choice((4096, 1, (1 << 64) - 1))
        return draws.choice(USUAL.get(field, (0, 0, 0, 1)))


def test_nothing_that_a_program_writes_harms_another(programs, hosts):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    liar = Liar(hosts["H1"], random.Random(seed))
    here, there = connected(programs)
    for count in range(10_000):
        liar.lie()
        if not count % 100:
            liar.forget()
            carry(hosts, 10_000)
            there.receives.put(receive_wqe(count))
            here.post(send_wqe(count, data=b""))
            carry(hosts, 10_000)
            assert (completion(here.done).status, completion(there.done).wr_id) == (SUCCESS, count)
    liar.forget()
    liar.program.close()
    made = {verb for verb in KINDS if verb not in HANDLE_ALONE}
    assert min(liar.carried_out[verb] for verb in made) > 10, "most of what it writes is no lie"
