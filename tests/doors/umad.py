"""A program that uses umad devices by system calls alone, as libraries do; run with the preloaded library."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import time
from pathlib import Path

HEADER = 64
REGISTER, UNREGISTER, ENABLE_PKEY = 0xC01C1B01, 0x40041B02, 0x1B03
PORTS = "/sys/class/infiniband/rxe_ironband0/ports/1/"
NODE_INFO, PORT_INFO = 0x11, 0x15
GET, SET, GET_TABLE = 1, 2, 0x12


def opened(name: str = "umad0", flags: int = os.O_RDWR | os.O_NONBLOCK) -> int:
    device = os.open(f"/dev/infiniband/{name}", flags)
    if name.startswith("umad"):
        fcntl.ioctl(device, ENABLE_PKEY)
    return device


def register(device: int, qpn: int = 0, mgmt_class: int = 0, version: int = 0, methods: int = 0, rmpp: int = 0) -> int:
    request = bytearray(struct.pack("=I16s3B3xBx", 0, methods.to_bytes(16, "little"), qpn, mgmt_class, version, rmpp))
    fcntl.ioctl(device, REGISTER, request)
    return int.from_bytes(request[:4], "little")


def directed(path: tuple[int, ...], attribute: int, tid: int, method: int = GET, data: bytes = b"") -> bytes:
    head = struct.pack(">4BHBBQHHI", 1, 0x81, 1, method, 0, 0, len(path), tid, attribute, 0, 0)
    body = head + bytes(8) + b"\xff\xff\xff\xff" + bytes(28) + data.ljust(64, b"\0")
    return (body + bytes([0, *path])).ljust(256, b"\0")


def send(device: int, agent: int, mad: bytes, timeout_ms: int = 1000, retries: int = 0, lid: int = 0xFFFF) -> int:
    qpn = 0 if mad[1] in (1, 0x81) else 1
    head = struct.pack("=5I", agent, 0, timeout_ms, retries, len(mad)) + struct.pack(
        ">IIHBB", qpn, 0x80010000, lid, 0, 0
    )
    return os.write(device, head.ljust(HEADER, b"\0") + mad)


def received(device: int, room: int = HEADER + 256, timeout_ms: int = 10_000) -> tuple[int, int, bytes]:
    """Agent, status and MAD of what can be read."""
    poll = select.poll()
    poll.register(device, select.POLLIN)
    assert poll.poll(timeout_ms)
    data = os.read(device, room)
    agent, status, _timeout, _retries, length = struct.unpack_from("=5I", data)
    assert status or length == len(data)
    return agent, status, data[HEADER:]


def fails(number: int, function, *arguments) -> None:
    found = 0
    try:
        function(*arguments)
    except OSError as error:
        found = error.errno
    assert found == number, f"errno {found}, expected {errno.errorcode[number]}"


def sysfs(name: str) -> str:
    return Path(PORTS + name).read_text().strip()


def wait_for(condition) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
