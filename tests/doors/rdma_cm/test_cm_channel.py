"""A program's descriptor of an rdma_cm device: it is waited for by poll(), by the command itself, or not at all."""

import sys
from pathlib import Path

import pytest

from tests.doors.ideal_wire import IdealWire
from tests.ironband.served import wait_for

OPEN = Path("/proc/self/fd")
COMMANDS = """
import ctypes, errno, fcntl, os, select, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/infiniband/rdma_cm", os.O_RDWR)
back = ctypes.create_string_buffer(512)

def command(code, body, room=0):
    data = struct.pack("=IHH", code, len(body), room) + body
    done = libc.write(fd, data, len(data))
    assert done in (-1, len(data)), done
    return 0 if done >= 0 else ctypes.get_errno()

def create():
    body = struct.pack("=QQHB5x", 7, ctypes.addressof(back), 0x0106, 2)
    assert not command(0, body, 4)
    return struct.unpack_from("=I", back)[0]

def resolve(number):
    there = struct.pack("=H2s4s8x12x", 2, (5).to_bytes(2, "big"), bytes((127, 87, 0, 1)))
    assert not command(3, bytes(28) + there + struct.pack("=II", number, 1000))

def event():
    failed = command(12, struct.pack("=Q", ctypes.addressof(back)), 336)
    return errno.errorcode[failed] if failed else struct.unpack_from("=QIIi", back)

def readable():
    return bool(select.select([fd], [], [], 0)[0])

number = create()
"""


@pytest.fixture
def wire(tmp_path):
    with IdealWire(tmp_path) as made:
        yield made


def run(wire: IdealWire, script: str) -> list[str]:
    return wire.run(sys.executable, "-c", COMMANDS + script).splitlines()


def test_it_can_be_read_as_long_as_there_are_events(wire):
    script = """
print(readable())
resolve(number)
resolve_again = create()
resolve(resolve_again)
print(readable(), event()[2], readable(), event()[2], readable())
"""
    assert run(wire, script) == ["False", "True 0 True 0 False"]


def test_events_that_end_with_their_id_cannot_be_read_any_more(wire):
    script = """
resolve(number)
print(readable())
assert not command(1, struct.pack("=QII", ctypes.addressof(back), number, 0), 4)
print(readable())
"""
    assert run(wire, script) == ["True", "False"]


def test_who_does_not_want_to_wait_is_told_so(wire):
    script = """
fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
print(event())
resolve(number)
print(event()[2])
print(event())
"""
    assert run(wire, script) == ["EAGAIN", "0", "EAGAIN"]


def test_a_thread_that_waits_gets_the_event(wire):
    script = """
got = []
thread = threading.Thread(target=lambda: got.append(event()))
thread.start()
time.sleep(0.2)
assert not got
resolve_from = struct.pack("=QQHB5x", 9, 0, 0x0106, 2)
resolve(number)
thread.join()
print(got[0][2], readable())
"""
    assert run(wire, script) == ["0 False"]


def test_a_thread_that_waits_goes_on_when_another_closes_the_device(wire):
    script = """
thread = threading.Thread(target=event, daemon=True)
thread.start()
time.sleep(0.2)
os.close(fd)
time.sleep(0.2)
print(thread.is_alive())
sys.stdout.flush()
os._exit(0)
"""
    assert run(wire, script) == ["True"]


def test_a_program_that_is_killed_while_it_waits_leaves_nothing_behind(wire):
    script = "print('waits', flush=True)\nevent()\n"
    before = len([*OPEN.iterdir()])
    for _ in range(3):
        with wire.start(sys.executable, "-c", COMMANDS + script) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "waits\n"
            program.kill()
    run(wire, "print(readable())")
    wait_for(lambda: len([*OPEN.iterdir()]) <= before + 1)


def test_an_event_is_not_given_to_a_child_that_was_killed_while_it_waited(wire):
    script = """
import signal
child = os.fork()
if not child:
    event()
time.sleep(0.3)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
resolve(number)
print(readable(), event()[2])
"""
    assert run(wire, script) == ["True 0"]


def test_interfaces_are_the_ports_and_those_of_the_machine(wire):
    script = """
class Sockaddr(ctypes.Structure):
    _fields_ = [("family", ctypes.c_ushort), ("port", ctypes.c_ushort), ("address", ctypes.c_ubyte * 4)]
class Interface(ctypes.Structure):
    pass
Interface._fields_ = [
    ("next", ctypes.POINTER(Interface)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(Sockaddr)), ("mask", ctypes.POINTER(Sockaddr)),
    ("other", ctypes.c_void_p), ("data", ctypes.c_void_p),
]
for _ in range(2):
    first = ctypes.POINTER(Interface)()
    assert not libc.getifaddrs(ctypes.byref(first))
    at, found = first, []
    while at:
        one = at.contents
        if one.address and one.address.contents.family == 2:
            found.append((one.name.decode(), ".".join(map(str, one.address.contents.address))))
        at = one.next
    libc.freeifaddrs(first)
print(found[0], ("lo", "127.0.0.1") in found)
"""
    assert run(wire, script) == ["('ib0', '127.87.0.1') True"]
