"""The kernel's commands of rdma_cm devices, in bytes: their structures, and what is refused."""

import ctypes
import errno
import os
import shutil
import subprocess
from collections import Counter
from random import Random

import pytest

from doors.mads.umad_device import DeviceError
from doors.rdma_cm import layouts
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from doors.uverbs.c_struct import CStruct
from tests.doors.cm_connections import REJECTED, REQUEST, connected, refused
from tests.doors.cm_programs import Program, address
from wire.ip_cm import PortSpace

CREATED = layouts.CREATE_ID.pack(ps=PortSpace.TCP)


@pytest.mark.skipif(shutil.which("cc") is None, reason="NOT TESTED against the kernel's headers: apt-get install gcc")
def test_every_structure_is_as_long_as_the_kernels_headers_say(tmp_path):
    ours = {one.name: one.size for one in vars(layouts).values() if isinstance(one, CStruct) and " " not in one.name}
    source = tmp_path / "sizes.c"
    lines = "".join(f'printf("%zu ", sizeof(struct {name}));' for name in ours)
    source.write_text(f"#include <stdio.h>\n#include <rdma/rdma_user_cm.h>\nint main() {{ {lines} }}")
    if subprocess.run(["cc", "-o", tmp_path / "sizes", source], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED against the kernel's headers: apt-get install linux-libc-dev")
    printed = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True, check=True).stdout
    theirs = dict(zip(ours, map(int, printed.split()), strict=True))
    # Newer headers have `ece` at the end of these.
    for name in ("rdma_ucm_connect", "rdma_ucm_accept"):
        assert theirs.pop(name) in (ours[name], ours.pop(name) + 8)
    assert theirs == ours


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", errno.EINVAL),
        (bytes(7), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID, in_bytes=24), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID) + bytes(23), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID, in_bytes=25, out_bytes=4) + CREATED, errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID) + bytes(24), errno.ENOSPC),
        (layouts.CMD_HDR.pack(command=CmCommand.CREATE_ID, out_bytes=4) + bytes(24), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.GET_OPTION) + bytes(24), errno.ENOSYS),
        (layouts.CMD_HDR.pack(command=23), errno.EINVAL),
        (layouts.CMD_HDR.pack(command=CmCommand.LISTEN) + layouts.LISTEN.pack(id=99), errno.ENOENT),
        (layouts.CMD_HDR.pack(command=CmCommand.GET_EVENT, out_bytes=336) + bytes(8), errno.EAGAIN),
    ],
)
def test_a_command_that_is_none_is_refused(client, data, error):
    with refused(error):
        client.device.write(data, 1, no_wait=True)


@pytest.mark.parametrize(("kind", "error"), [(2, 0), (3, 0), (4, 0), (8, errno.EOPNOTSUPP), (9, errno.EOPNOTSUPP)])
def test_queue_pairs_that_are_not_connected_or_looked_up_have_no_ids(client, kind, error):
    if error:
        with refused(error):
            client.create(PortSpace.IB, kind)
    else:
        assert client.create(PortSpace.IB, kind)


def test_commands_in_the_wrong_order_are_refused(server, client):
    number = client.create()
    for code, body in (
        (CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number)),
        (CmCommand.CONNECT, layouts.CONNECT.pack(id=number)),
        (CmCommand.ACCEPT, layouts.ACCEPT.pack(id=number)),
        (CmCommand.REJECT, layouts.REJECT.pack(id=number)),
        (CmCommand.DISCONNECT, layouts.ONLY_ID.pack(id=number)),
    ):
        with refused(errno.EINVAL):
            client.command(code, body)
    client.resolve(number, address(1, 5))
    with refused(errno.EINVAL):
        client.connect(number, bytes(57))
    with refused(errno.EINVAL):
        client.listen(number)
    with refused(errno.EINVAL):
        client.bind(number, address(2))


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"level": 1, "optname": 1, "optlen": 72}, errno.ENOSYS),
        ({"optname": 4, "optlen": 4}, errno.ENOSYS),
        ({"optname": 1, "optlen": 1}, errno.EINVAL),
        ({"optname": 3, "optlen": 1}, errno.EINVAL),
        ({"optname": 0, "optlen": 1, "optval": 8}, errno.EFAULT),
    ],
)
def test_an_option_that_there_is_not_is_refused(client, values, error):
    wrong = ctypes.c_ubyte(32)
    body = layouts.SET_OPTION.pack(**{"id": client.create(), "optval": ctypes.addressof(wrong), **values})
    with refused(error):
        client.command(CmCommand.SET_OPTION, body, process=os.getpid())


LAYOUTS = {
    CmCommand.CREATE_ID: layouts.CREATE_ID,
    CmCommand.DESTROY_ID: layouts.DESTROY_ID,
    CmCommand.BIND_IP: layouts.BIND_IP,
    CmCommand.RESOLVE_IP: layouts.RESOLVE_IP,
    CmCommand.QUERY: layouts.QUERY,
    CmCommand.CONNECT: layouts.CONNECT,
    CmCommand.ACCEPT: layouts.ACCEPT,
    CmCommand.REJECT: layouts.REJECT,
    CmCommand.INIT_QP_ATTR: layouts.INIT_QP_ATTR,
    CmCommand.SET_OPTION: layouts.SET_OPTION,
    CmCommand.BIND: layouts.BIND,
    CmCommand.JOIN_IP_MCAST: layouts.JOIN_IP_MCAST,
    CmCommand.JOIN_MCAST: layouts.JOIN_MCAST,
    CmCommand.LEAVE_MCAST: layouts.DESTROY_ID,
    CmCommand.RESOLVE_ADDR: layouts.RESOLVE_ADDR,
}
LIKELY = (CmCommand.GET_EVENT, CmCommand.BIND_IP, CmCommand.RESOLVE_IP, CmCommand.RESOLVE_ROUTE, CmCommand.CONNECT)


def random_body(random: Random, code: int, ids: list[int]) -> bytes:
    """One that makes it past the first look now and then; IDS are the program's."""
    layout = LAYOUTS.get(CmCommand(code), layouts.LISTEN) if code in set(CmCommand) else layouts.LISTEN
    values: dict[str, int | bytes] = {}
    for name in layout.fields:
        if name.endswith("addr"):
            where = address(random.choice((1, 1, 1, 2, 2, 3)), random.choice((1, 1, 1, 0)))
            values[name] = random.choice((where, where, where, where, bytes(16), random.randbytes(28)))
        elif name == "conn_param":
            size = random.choice((0, 0, 10, 56, 57, 255))
            values[name] = layouts.CONN_PARAM.pack(private_data_len=size, valid=random.random() < 0.8)
        elif name == "private_data":
            values[name] = random.randbytes(256)
        else:
            is_own = name == "id" and ids and random.random() < 0.95
            small = random.choice(ids) if is_own else random.choice((0, 1, 2, 3, 4, 16, 28, 255))
            values[name] = random.choice((*PortSpace, PortSpace.TCP, PortSpace.UDP)) if name == "ps" else small
    return layout.pack(**values) + bytes(random.choice((0, 8)))


def test_random_commands_do_no_harm(fabric, server, client):
    seed = 7
    print(f"seed {seed}")
    random = Random(seed)
    strays = [Program(fabric, 1 + number % 2) for number in range(4)]
    ids: dict[Program, list[int]] = {stray: [] for stray in strays}
    done, heard = Counter[int](), Counter[CmEventCode]()
    for _ in range(10_000):
        program = random.choice(strays)
        mine = ids[program]
        code = random.choice([*CmCommand, *LIKELY, *LIKELY, random.randrange(1 << 32)])
        if (code == CmCommand.DESTROY_ID and len(mine) < 5) or (code == CmCommand.CREATE_ID and len(mine) > 20):
            code = CmCommand.RESOLVE_ROUTE
        body = random_body(random, code, mine) if random.random() < 0.97 else random.randbytes(random.randrange(300))
        try:
            back = program.command(code, body, random.choice((4, 144, 336, 65_535)))
            done[code] += 1
            if code == CmCommand.GET_EVENT:
                event = layouts.EVENT_RESP.unpack(back.ljust(336, b"\0"))
                heard[CmEventCode(event.event)] += 1
                if event.id not in mine:
                    mine.append(event.id)
            elif code == CmCommand.DESTROY_ID:
                mine.remove(layouts.DESTROY_ID.unpack(body).id)
            elif code == CmCommand.CREATE_ID:
                mine.append(layouts.CREATE_ID_RESP.unpack(back).id)
        except DeviceError:
            pass
        fabric.now = fabric.now._replace(time=fabric.now.time + random.randrange(10**8))
    print(done, heard)
    assert len(done) >= 14
    assert {REQUEST, REJECTED, CmEventCode.ADDR_ERROR} <= set(heard)
    for stray in strays:
        stray.device.close()
    connected(server, client)
