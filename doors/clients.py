"""The programs that have devices open: their connections to the server, what they ask, and what they are given."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from doors.descriptors import MANY_SPARE, NoRoom, check_room
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Moment
from doors.mads.umad_device import DeviceError, UmadDevice
from doors.protocol import (
    MOST_INLINE,
    VERSION,
    DeviceKind,
    Operation,
    ProtocolError,
    PutKind,
    Request,
    arrival,
    put,
    reply,
)
from doors.rdma_cm.cm_channel import CmChannel, is_left
from doors.rdma_cm.cm_hosts import CmHosts
from doors.rdma_cm.device import OpenIds
from doors.uverbs.adapter import UverbsAdapter
from doors.uverbs.device import UverbsDevice

__all__ = ["Clients"]

_MOST_MESSAGE: Final = 2 * MOST_INLINE
_MOST_DESCRIPTORS: Final = 4
_DESCRIPTOR_BYTES: Final = 4
_BACKLOG: Final = 256
_PEER: Final = struct.Struct("3i")
_SIZE: Final = struct.Struct("=Q")
_MOST_WAITING: Final = 4096
"""What a program has not read that nobody keeps for it any more."""


class Clients:
    """All connections.

    Attributes:
        now: what time it is; kept right by the owner.
        connected: called when a program has opened a connection.
    """

    def __init__(
        self,
        address: Path,
        selector: selectors.BaseSelector,
        ports: Mapping[str, list[HostPort]],
        tell: Callable[[str], None],
        set_manager: Callable[[HostPort, bool], None],
        adapter: Callable[[str], UverbsAdapter] | None = None,
        communication: CmHosts | None = None,
    ) -> None:
        """Listens at ADDRESS. PORTS are those of each machine, the default one's first; ADAPTER gives a host's verbs
        device; COMMUNICATION, their connections.

        TELL is told in a line what somebody may want to know; SET_MANAGER, which ports have a Subnet Manager.
        """
        self.now = Moment(0, 0)
        self.connected: Callable[[], None] = lambda: None
        self._selector = selector
        self._ports = ports
        self._tell = tell
        self._set_manager = set_manager
        self._adapter = adapter
        self._communication = communication
        self._cm_ids = OpenIds()
        self._unanswered: list[int] = []
        self._connections: set[_Connection] = set()
        self._managers: dict[HostPort, _Connection] = {}
        self._for_manager: deque[tuple[_Connection, int, HostPort]] = deque()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        # With each message comes whose it is: a child may write to what its parent has opened.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._listener.bind(str(address))
        self._listener.listen(_BACKLOG)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """End all connections."""
        for connection in list(self._connections):
            self._end(connection)
        self._forget_unanswered(lambda end: True)
        self._selector.unregister(self._listener)
        self._listener.close()

    @property
    def deadline(self) -> int | None:
        """When the first program that waits has waited long enough."""
        return min((wait[0] for one in self._connections for wait in one.waits.values()), default=None)

    def expire(self) -> None:
        """Wake the programs that have waited long enough."""
        for connection in self._connections:
            over = [thread for thread, wait in connection.waits.items() if wait[0] <= self.now.time]
            for thread in over:
                _until, end = connection.waits.pop(thread)
                _send_to(end, reply(0))
                os.close(end)

    def _accept(self, _events: int) -> None:
        with suppress(BlockingIOError):
            accepted, _address = self._listener.accept()
            accepted.setblocking(False)
            connection = _Connection(accepted)
            try:
                check_room(accepted.fileno(), MANY_SPARE)
            except NoRoom as error:
                self._tell(f"{connection}: refused: {error}")
                accepted.close()
                return
            self._connections.add(connection)
            self._selector.register(accepted, selectors.EVENT_READ, lambda events: self._serve(connection, events))
            self.connected()

    def _serve(self, connection: _Connection, events: int) -> None:
        """Something can be read from a connection, or written to it."""
        if events & selectors.EVENT_WRITE:
            self._push(connection)
        if not events & selectors.EVENT_READ:
            return
        descriptors: list[int] = []
        try:
            message, descriptors, flags, process = _received(connection.socket)
            if not message:
                self._end(connection)
                return
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not 1 <= len(descriptors) <= 2:
                raise ProtocolError(f"a message of {len(message)} bytes and {len(descriptors)} descriptors")
            request = Request.of(message, descriptors[1] if len(descriptors) == 2 else None)
            if self._answer(connection, request, process, descriptors[0]):
                descriptors.pop(0)
        except BlockingIOError:
            return
        except OSError:
            self._end(connection)
        except NoRoom as error:
            self._tell(f"{connection}: its device ends: {error}")
            self._end(connection)
        except ProtocolError as error:
            self._tell(f"{connection}: what it sent is no request: {error}")
            self._end(connection)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _answer(self, connection: _Connection, request: Request, process: int, end: int) -> bool:
        """Answer a request of a process at END; whether END stays open.

        Raises:
            ProtocolError: it is none at this time.
            NoRoom: END cannot stay open.
        """
        if (request.operation is Operation.OPEN) is not (connection.port is None):
            raise ProtocolError(f"{request.operation.name} of a device that is {'not ' * (not connection.port)}open")
        result, data, passed = 0, b"", None
        try:
            match request.operation:
                case Operation.OPEN:
                    if self._open(connection, request, end):
                        return True
                case Operation.WHICH:
                    result = connection.which
                case Operation.WAIT:
                    check_room(end, MANY_SPARE)
                    self._drop_wait(connection, request.flags)
                    connection.waits[request.flags] = self.now.time + request.argument, end
                    return True
                case Operation.WRITE if connection.verbs is not None:
                    answer = connection.verbs.write(request.data, process)
                    result, passed = len(request.data), answer.descriptor
                    kinds = (PutKind.BYTES, PutKind.DESCRIPTOR)
                    data = b"".join(put(one.address, one.data, kinds[one.is_descriptor]) for one in answer.puts)
                case Operation.WRITE if connection.events is not None:
                    given = connection.events.write(request.data, process, end, no_wait=bool(request.flags))
                    if given is None:
                        return True
                    result, data = len(request.data), given
                case Operation.MAP if connection.verbs is not None and len(request.data) == _SIZE.size:
                    passed = os.dup(connection.verbs.map(request.argument, *_SIZE.unpack(request.data)))
                case Operation.IOCTL if connection.verbs is not None:
                    raise DeviceError(errno.ENOTTY)
                case _ if connection.device is None:
                    raise DeviceError(errno.EINVAL)
                case Operation.WRITE:
                    result = connection.device.write(request.data, self.now)
                case Operation.IOCTL:
                    data = connection.device.ioctl(request.argument, request.data)
        except DeviceError as error:
            _send_to(end, reply(error.errno))
        else:
            _send_to(end, reply(0, result, data), passed)
        return False

    def _open(self, connection: _Connection, request: Request, end: int) -> bool:
        """Open a device; whether the program has to wait for it.

        Raises:
            DeviceError: there is no such device, or it is in use.
            ProtocolError: the library is of another version.
            NoRoom: there is too much open already for it to wait.
        """
        version, no_wait, kind = request.flags >> 16, bool(request.flags & 0x100), request.flags & 0xFF
        if version != VERSION or kind not in set(DeviceKind):
            expected = f"expected version {VERSION}, kind 0..{max(DeviceKind)}"
            raise ProtocolError(f"version {version}, device kind {kind}: {expected}")
        name = request.data.decode(errors="replace")
        ports = self._ports.get(name or next(iter(self._ports)))
        if ports is None:
            self._tell(f"{connection}: there is no host {name!r}")
            raise DeviceError(errno.ENODEV)
        if kind == DeviceKind.UVERBS:
            ports = [next(port for port in ports if port.host == host) for host in dict.fromkeys(p.host for p in ports)]
        if request.argument >= (1 if kind == DeviceKind.RDMA_CM else len(ports)):
            raise DeviceError(errno.ENXIO)
        port = ports[request.argument]
        connection.which = kind << 16 | request.argument
        if kind == DeviceKind.UVERBS:
            connection.verbs = self._open_verbs(connection, port)
            connection.port = port
            return False
        if kind == DeviceKind.RDMA_CM:
            if self._communication is None:
                raise DeviceError(errno.ENODEV)
            machine = self._communication.machine(list(dict.fromkeys(one.host for one in ports)))
            connection.events = CmChannel(machine, self._cm_ids, lambda: self._give(connection, b"", 0), _send_to)
            connection.port = port
            return False
        if kind == DeviceKind.ISSM and port in self._managers:
            if no_wait:
                raise DeviceError(errno.EAGAIN)
            check_room(end, MANY_SPARE)
            self._for_manager.append((connection, end, port))
            return True
        connection.port = port
        if kind == DeviceKind.ISSM:
            self._make_manager(connection, port)
        else:
            connection.device = UmadDevice(port, lambda data, least: self._give(connection, data, least))
        return False

    def _open_verbs(self, connection: _Connection, port: HostPort) -> UverbsDevice:
        """The verbs device of a host.

        Raises:
            DeviceError: it has none, or the program's memory cannot be reached.
        """
        adapter = self._adapter(port.host) if self._adapter is not None else None
        if adapter is None:
            raise DeviceError(errno.ENODEV)
        try:
            return UverbsDevice(adapter, connection.process)
        except DeviceError as error:
            reason = (
                "run it as the user who runs the server" if error.errno == errno.EACCES else os.strerror(error.errno)
            )
            self._tell(f"{connection} at {port.host}: its memory cannot be reached: {reason}")
            raise

    def _make_manager(self, connection: _Connection, port: HostPort) -> None:
        connection.port = port
        self._managers[port] = connection
        self._set_manager(port, True)

    def _end(self, connection: _Connection) -> None:
        """A connection's end: the program has closed the device, or died."""
        self._connections.discard(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        for thread in list(connection.waits):
            self._drop_wait(connection, thread)
        if connection.verbs is not None:
            connection.verbs.close()
        if connection.events is not None:
            self._unanswered += connection.events.close()
        self._forget_unanswered(is_left)
        unread = connection.device.close() if connection.device else 0
        if unread:
            self._tell(f"{connection} at {connection.port}: gone, with {unread} MADs not answered yet")
        for waiting in [one for one in self._for_manager if one[0] is connection]:
            self._for_manager.remove(waiting)
            os.close(waiting[1])
        port = connection.port
        if port is not None and self._managers.get(port) is connection:
            del self._managers[port]
            following = next((one for one in self._for_manager if one[2] is port), None)
            if following is None:
                self._set_manager(port, False)
            else:
                self._for_manager.remove(following)
                self._make_manager(following[0], port)
                _send_to(following[1], reply(0))
                os.close(following[1])

    @staticmethod
    def _drop_wait(connection: _Connection, thread: int) -> None:
        wait = connection.waits.pop(thread, None)
        if wait is not None:
            os.close(wait[1])

    def _forget_unanswered(self, is_over: Callable[[int], bool]) -> None:
        """Closes the descriptors at which nobody waits any more for what will not come."""
        over = [end for end in self._unanswered if is_over(end)]
        self._unanswered = [end for end in self._unanswered if end not in over]
        for end in over:
            os.close(end)

    # Giving.

    def _give(self, connection: _Connection, data: bytes, least: int) -> None:
        """DATA can be read, with room for LEAST bytes at the least."""
        if len(connection.unread) >= _MOST_WAITING:
            return
        connection.unread.append((data, least))
        self._push(connection)

    def _push(self, connection: _Connection) -> None:
        while connection.unread:
            data, least = connection.unread[0]
            try:
                if len(data) <= MOST_INLINE:
                    connection.socket.sendmsg([arrival(len(data), least), data])
                else:
                    _send_memory(connection.socket, arrival(len(data), least), data)
            except BlockingIOError:
                break
            except OSError:
                # It is gone, which its end will say.
                connection.unread.clear()
                break
            connection.unread.popleft()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unread else 0)
        if connection.socket.fileno() >= 0 and self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, lambda ready: self._serve(connection, ready))


class _Connection:
    """A connection, which is a device once one has been opened by it."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.device: UmadDevice | None = None
        self.verbs: UverbsDevice | None = None
        self.events: CmChannel | None = None
        self.port: HostPort | None = None
        self.which = 0
        """Kind and number of the device."""
        self.waits: dict[int, tuple[int, int]] = {}
        """By thread: until when, and the end that is closed then."""
        self.unread: deque[tuple[bytes, int]] = deque()
        self.process, _user, _group = _PEER.unpack(
            connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        )
        self._name = ""
        with suppress(OSError):
            self._name = Path(f"/proc/{self.process}/comm").read_text().strip()

    def __str__(self) -> str:
        return f"{self._name or 'a program'} ({self.process})"


def _received(connected: socket.socket) -> tuple[bytes, list[int], int, int]:
    """A message, the descriptors that came with it, flags, and the process that sent it."""
    room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR_BYTES) + socket.CMSG_SPACE(_PEER.size)
    message, beside, flags, _address = connected.recvmsg(_MOST_MESSAGE, room, socket.MSG_CMSG_CLOEXEC)
    descriptors: list[int] = []
    process = 0
    for _level, kind, data in beside:
        if kind == socket.SCM_RIGHTS:
            descriptors += struct.unpack(f"{len(data) // _DESCRIPTOR_BYTES}i", data)
        elif kind == socket.SCM_CREDENTIALS:
            process, _user, _group = _PEER.unpack(data)
    return message, descriptors, flags, process


def _send_to(end: int, data: bytes, passed: int | None = None) -> None:
    """Send a message to a descriptor that may be anything, and whose other end may be gone; PASSED goes along."""
    with suppress(OSError):
        os.set_blocking(end, False)
        if passed is None:
            os.write(end, data)
        else:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=os.dup(end)) as sender:
                socket.send_fds(sender, [data], [passed])
    if passed is not None:
        os.close(passed)


def _send_memory(connected: socket.socket, head: bytes, data: bytes) -> None:
    """Send bytes too many for a message."""
    memory = os.memfd_create("ironband", os.MFD_CLOEXEC)
    try:
        with open(memory, "wb", closefd=False) as file:
            file.write(data)
        socket.send_fds(connected, [head], [memory])
    finally:
        os.close(memory)
