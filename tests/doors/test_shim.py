"""The preloaded library and the server together stand in for a kernel: system calls and what they do."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.ironband.served import served

PROLOGUE = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r}); from tests.doors.umad import *\n"

HAS_LID = """
device = opened()
agent = register(device)
send(device, agent, directed((), PORT_INFO, 1))
info = bytearray(received(device)[2][64:128])
info[16:20] = b"\\0\\x05\\0\\x05"   # LID and MasterSMLID
info[32:34] = b"\\0\\0"             # no change of states
send(device, agent, directed((), PORT_INFO, 2, SET, bytes(info)))
received(device)
assert sysfs("lid") == "0x5"
"""
"""The port has LID 5."""


def runs(folder: Path, program: str, topology: str = "star") -> None:
    ended = served(topology, "--", sys.executable, "-c", PROLOGUE + textwrap.dedent(program), cwd=folder)
    assert ended.returncode == 0, ended.stderr


def test_what_a_program_hears_that_it_has_set_the_files_say_already(tmp_path):
    runs(tmp_path, HAS_LID)


def test_a_read_with_too_little_room_leaves_the_mad_there(tmp_path):
    runs(
        tmp_path,
        """
        device = opened()
        agent = register(device)
        fails(errno.EAGAIN, os.read, device, 320)
        mad = directed((1,), NODE_INFO, 0x77)
        assert send(device, agent, mad) == HEADER + len(mad)
        select.select([device], [], [])
        fails(errno.EINVAL, os.read, device, 319)
        number, status, answer = received(device)
        assert (number, status, answer[3]) == (agent, 0, 0x81)
        assert int.from_bytes(answer[12:16], "big") == 0x77
        fails(errno.EAGAIN, os.read, device, 320)
        """,
    )


SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>
ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    ssize_t (*real)(int, struct msghdr *, int) = dlsym(RTLD_NEXT, "recvmsg"), got = real(fd, message, flags);
    if (flags & MSG_PEEK) usleep(200000);
    return got;
}
"""
"""Between a look at what has arrived and its taking there is time for other threads."""


def test_threads_that_read_one_device_at_once_get_a_mad_each(tmp_path):
    (tmp_path / "slow.c").write_text(SLOW)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "slow.so", "slow.c"], cwd=tmp_path, check=True)
    program = """
device = opened()
agent = register(device)
os.set_blocking(device, True)
seen = []
def reads():
    seen.append(int.from_bytes(os.read(device, HEADER + 256)[HEADER + 12 : HEADER + 16], "big"))
threads = [threading.Thread(target=reads) for _ in range(2)]
send(device, agent, directed((), NODE_INFO, 1))
select.select([device], [], [])
for thread in threads:
    thread.start()
wait_for(lambda: seen)
time.sleep(0.3)
send(device, agent, directed((), NODE_INFO, 2))
for thread in threads:
    thread.join()
assert sorted(seen) == [1, 2]
"""
    (tmp_path / "reads.py").write_text(f"{PROLOGUE}import threading\n{program}")
    script = f"LD_PRELOAD=./slow.so:$LD_PRELOAD exec {sys.executable} reads.py"
    ended = served("star", "--", "sh", "-c", script, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_a_megabyte_is_asked_for_sized_and_read(tmp_path):
    runs(
        tmp_path,
        HAS_LID
        + """
server = register(device, 1, 3, 2, 1 << GET_TABLE, 1)
client = register(device, 1, 3, 2, 0, 1)
asked = struct.pack(">4B4xQHHI", 1, 3, 2, GET_TABLE, 9, 0x11, 0, 0).ljust(256, b"\\0")
send(device, client, asked, lid=5)
number, status, request = received(device)
assert (number, status) == (server, 0)
data = os.urandom(1_000_003)
answer = request[:3] + b"\\x92" + request[4:24] + bytes([1, 1, 1, 0]) + bytes(28) + data
assert send(device, server, answer, 0, lid=5) == HEADER + len(answer)
select.select([device], [], [])
fails(errno.ENOSPC, os.read, device, HEADER + 256)
number, status, got = received(device, HEADER + 2_000_000)
assert (number, status) == (client, 0)
assert got[56:] == data
""",
    )


def test_a_program_hears_at_once_that_nothing_can_answer(tmp_path):
    runs(
        tmp_path,
        """
        device = opened()
        agent = register(device)
        mad = directed((1, 7), NODE_INFO, 0x5)
        send(device, agent, mad, timeout_ms=1_000_000, retries=3)
        number, status, answer = received(device, timeout_ms=-1)
        assert (number, status, len(answer)) == (agent, errno.ETIMEDOUT, 24)
        assert int.from_bytes(answer[12:16], "big") == 5
        """,
    )


def test_a_program_that_never_answers_lets_the_askers_time_run_out(tmp_path):
    runs(
        tmp_path,
        HAS_LID
        + """
client = register(device, 1)
asked = struct.pack(">4B4xQHHI", 1, 0x22, 2, GET, 9, 1, 0, 0).ljust(256, b"\\0")
server = register(device, 1, 0x22, 2, 1 << GET)
began = time.monotonic()
send(device, client, asked, 200, 1, lid=5)
for _try in range(2):
    assert received(device)[0] == server
number, status, answer = received(device)
assert (number, status) == (client, errno.ETIMEDOUT)
assert time.monotonic() - began > 0.39
""",
    )


def test_waiting_for_nothing_takes_its_time(tmp_path):
    runs(
        tmp_path,
        """
        import signal
        device = opened()
        poll = select.poll()
        poll.register(device, select.POLLIN)
        epoll = select.epoll()
        epoll.register(device, select.EPOLLIN)
        waits = lambda: poll.poll(200), lambda: select.select([device], [], [], 0.2)[0], lambda: epoll.poll(0.2)
        for wait in waits:
            began = time.monotonic()
            assert wait() == []
            assert time.monotonic() - began > 0.19
        assert poll.poll(0) == epoll.poll(0) == []
        agent = register(device)
        send(device, agent, directed((1,), NODE_INFO, 1))
        assert epoll.poll(30) == [(device, select.EPOLLIN)]
        assert received(device)[1] == 0
        server = os.getppid()
        for wait in waits:
            # The time is the server's, which stands still.
            began = time.monotonic()
            os.kill(server, signal.SIGSTOP)
            if not os.fork():
                time.sleep(0.6)
                os.kill(server, signal.SIGCONT)
                os._exit(0)
            assert wait() == []
            assert time.monotonic() - began > 0.59
        """,
    )


def test_a_wait_begins_when_it_begins_and_not_when_the_server_was_last_asked(tmp_path):
    runs(
        tmp_path,
        """
        device = opened()
        poll = select.poll()
        poll.register(device, select.POLLIN)
        time.sleep(0.5)
        began = time.monotonic()
        assert poll.poll(300) == []
        assert time.monotonic() - began > 0.29
        """,
    )


def test_a_descriptor_is_the_device_under_any_number_and_in_any_process(tmp_path):
    runs(
        tmp_path,
        """
        device = opened()
        agent = register(device)
        other = os.dup(device)
        os.close(device)
        os.dup2(other, 77)
        send(77, agent, directed((1,), NODE_INFO, 1))
        assert received(other)[1] == 0
        child = os.fork()
        if not child:
            send(other, agent, directed((1,), NODE_INFO, 2))
            os._exit(received(77)[1])
        assert os.waitpid(child, 0)[1] == 0
        os.closerange(70, 90)
        reused = os.open("/dev/null", os.O_RDWR)
        os.dup2(reused, 77)
        assert os.write(77, b"nothing") == 7
        os.close(other)
        """,
    )


def test_an_open_issm_makes_the_port_say_so_until_it_is_closed(tmp_path):
    runs(
        tmp_path,
        """
        def is_sm(): return int(sysfs("cap_mask"), 16) >> 1 & 1
        assert not is_sm()
        device = opened("issm0", os.O_RDWR)
        wait_for(is_sm)
        fails(errno.EAGAIN, opened, "issm0")
        os.close(device)
        wait_for(lambda: not is_sm())
        child = os.fork()
        if not child:
            opened("issm0")
            time.sleep(100)
        wait_for(is_sm)
        os.kill(child, 9)
        wait_for(lambda: not is_sm())
        """,
    )


def test_a_port_whose_m_key_protects_it_is_known_to_its_own_host(tmp_path):
    runs(
        tmp_path,
        """
        device = opened()
        agent = register(device)
        send(device, agent, directed((), PORT_INFO, 1))
        info = bytearray(received(device)[2][64:128])
        info[:8] = bytes([0, 0, 0, 0, 0, 0, 0x12, 0x34])   # M_Key
        info[16:20] = b"\\0\\x05\\0\\x05"                 # LID and MasterSMLID
        info[32:34] = b"\\0\\0"                           # no change of states
        info[34] |= 2 << 6                               # M_KeyProtectBits: nobody reads without the M_Key
        send(device, agent, directed((), PORT_INFO, 2, SET, bytes(info)))
        received(device)
        wait_for(lambda: sysfs("lid") == "0x5")
        """,
    )


def test_what_is_not_there_is_refused_as_a_kernel_does(tmp_path):
    runs(
        tmp_path,
        """
        import socket
        fails(errno.ENXIO, os.open, "/dev/infiniband/umad7", os.O_RDWR)
        fails(errno.ENXIO, os.open, "/dev/infiniband/uverbs1", os.O_RDWR)
        fails(errno.ENOENT, os.open, "/dev/infiniband/ucm0", os.O_RDWR)
        fails(errno.ENOENT, os.listdir, "/sys/class/infiniband_cm")
        fails(errno.EPROTONOSUPPORT, socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 20)
        device = opened()
        fails(errno.EINVAL, os.write, device, bytes(320))
        fails(errno.EINVAL, os.write, device, bytes(8))
        fails(errno.EINVAL, register, device, 2)
        fails(errno.ENOTTY, fcntl.ioctl, device, 0x1B09)
        fails(errno.EINVAL, fcntl.ioctl, device, UNREGISTER, struct.pack("I", 3))
        agent = register(device)
        fcntl.ioctl(device, UNREGISTER, struct.pack("I", agent))
        assert sorted(os.listdir("/sys/class/infiniband")) == ["rxe_ironband0"]
        os.environ["IRONBAND_HOST"] = "H2"
        """,
    )


def test_a_program_at_another_host_sees_that_hosts_adapter(tmp_path):
    runs(
        tmp_path,
        """
        import subprocess
        def guid(host):
            name = "/sys/class/infiniband/rxe_ironband0/node_guid"
            return subprocess.run(["cat", name], env=os.environ | {"IRONBAND_HOST": host}, capture_output=True).stdout
        assert guid("H1") == b"0000:0000:0010:0000\\n"
        assert guid("H2") == b"0000:0000:0010:0002\\n"
        assert guid("H3") == b""
        """,
    )


def test_a_person_is_told_once_where_no_server_or_no_such_host_is(tmp_path):
    hosts = "H9", "../hosts/H1", "H1/sys", ".."
    script = "; ".join(f"IRONBAND_HOST={host} ls /sys/class/infiniband /dev/infiniband" for host in hosts)
    script += "; IRONBAND_DIR=/gone cat /dev/infiniband/umad0"
    ended = served("star", "--", "sh", "-c", script, cwd=tmp_path)
    ours = [line for line in ended.stderr.splitlines() if line.startswith("ironband: ")]
    assert ended.stdout == ""
    assert [re.sub("ironband: .*?(/gone/|/hosts/)", "", line.partition(";")[0]) for line in ours] == [
        *(f"{host}: No such file or directory" for host in hosts),
        "socket: No such file or directory",
    ]


def test_a_program_that_may_open_nothing_more_waits_no_longer_than_it_wants(tmp_path):
    runs(
        tmp_path,
        """
        import resource
        device = opened()
        poll = select.poll()
        poll.register(device, select.POLLIN)
        resource.setrlimit(resource.RLIMIT_NOFILE, (device + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        fails(errno.EMFILE, os.dup, device)
        assert poll.poll(100) == []
        """,
    )
