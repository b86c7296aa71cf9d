"""An open rdma_cm device: the commands that a program writes, as the kernel takes them (rdma/rdma_user_cm.h)."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from doors.mads.umad_device import DeviceError
from doors.rdma_cm import layouts
from doors.rdma_cm.cm_id import CmId, News
from doors.rdma_cm.cm_machine import CmMachine
from doors.rdma_cm.group_id import GroupId
from doors.rdma_cm.layouts import CMD_HDR, CONN_PARAM, CmCommand, CmQuery, JoinFlag
from doors.rdma_cm.mgid import GroupAddress
from doors.rdma_cm.route import packed_path
from doors.rdma_cm.socket_address import SOCKADDR_IN6_BYTES, Endpoint, group_address, packed_ib
from doors.uverbs.c_struct import CStruct
from doors.uverbs.device import Put
from doors.uverbs.process_memory import ProcessMemory
from verbs.memory import MemoryFaultError
from wire.path_record import EXACTLY

__all__ = ["OpenIds", "RdmaCmDevice"]

_COMM_EST: Final = 4
"""IBV_EVENT_COMM_EST."""

_NO_INDEX: Final = 0xFFFF_FFFF
"""Devices are known by their GUIDs, as those are whose system has no numbers for them."""

_PATH_FLAGS: Final = 0x2B
"""IB_PATH_GMP, PRIMARY, OUTBOUND and INBOUND_REVERSE: a path for everything."""


_ID_OPTIONS: Final = {0: 1, 1: 4, 2: 4, 3: 1}
"""Of the level RDMA_OPTION_ID, TOS, REUSEADDR, AFONLY and ACK_TIMEOUT, and their bytes."""

_TOS: Final = 0
_REUSEADDR: Final = 1
_ACK_TIMEOUT: Final = 3
_MOST_ACK_TIMEOUT: Final = 31
_MOST_IDS: Final = 1 << 16


class OpenIds:
    """The rdma_cm_ids of all programs and their multicast groups, by the numbers that those know them by."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._entries: dict[int, tuple[CmId, RdmaCmDevice]] = {}
        self._number_of: dict[CmId, int] = {}
        self._group_numbers = count(1)
        self._groups: dict[int, tuple[CmId, GroupId]] = {}

    def add(self, one: CmId, device: RdmaCmDevice) -> int:
        """Gives one a number.

        Raises:
            DeviceError: there are too many.
        """
        if len(self._entries) >= _MOST_IDS:
            raise DeviceError(errno.ENOMEM)
        number = next(self._numbers)
        self._entries[number] = one, device
        self._number_of[one] = number
        return number

    def move(self, one: CmId, device: RdmaCmDevice) -> None:
        """It belongs to another device from now on."""
        self._entries[self._number_of[one]] = one, device

    def remove(self, one: CmId) -> None:
        """It is no more."""
        del self._entries[self._number_of.pop(one)]
        for group in one.groups:
            self.remove_group(group)

    def add_group(self, one: CmId, group: GroupId) -> None:
        """Gives a group of one a number.

        Raises:
            DeviceError: there are too many.
        """
        if len(self._groups) >= _MOST_IDS:
            raise DeviceError(errno.ENOMEM)
        group.number = next(self._group_numbers)
        self._groups[group.number] = one, group

    def remove_group(self, group: GroupId) -> None:
        """It is no more."""
        del self._groups[group.number]

    def find_group(self, number: int) -> tuple[CmId, GroupId]:
        """A group, and whose it is.

        Raises:
            DeviceError: there is none of that number.
        """
        if number not in self._groups:
            raise DeviceError(errno.ENOENT)
        return self._groups[number]

    def find(self, number: int) -> tuple[CmId, RdmaCmDevice]:
        """One, and whose it is.

        Raises:
            DeviceError: there is none of that number.
        """
        if number not in self._entries:
            raise DeviceError(errno.ENOENT)
        return self._entries[number]

    def number_of(self, one: CmId) -> int:
        """Its number; 0 as long as it has none."""
        return self._number_of.get(one, 0)

    def of(self, device: RdmaCmDevice) -> list[CmId]:
        """Those of a device."""
        return [one for one, owner in self._entries.values() if owner is device]


class RdmaCmDevice:
    """One opening of a machine's rdma_cm device: a channel of events, and the rdma_cm_ids whose events come there."""

    def __init__(self, machine: CmMachine, ids: OpenIds, on_news: Callable[[], None]) -> None:
        """ON_NEWS is called whenever there is an event to be got."""
        self._machine = machine
        self._ids = ids
        self._on_news = on_news
        self._news: deque[News] = deque()

    @property
    def has_news(self) -> bool:
        """Whether there is an event to be got."""
        return bool(self._news)

    def close(self) -> None:
        """The program has closed it, or is gone."""
        self._on_news = lambda: None
        for one in self._ids.of(self):
            self._end(one)

    def write(self, data: bytes, process: int, *, no_wait: bool) -> list[Put] | None:
        """Carries out a command of a process, and gives what is put where.

        None if it waits for an event, and is to be asked again then.

        Raises:
            DeviceError: it fails.
        """
        if len(data) < CMD_HDR.size:
            raise DeviceError(errno.EINVAL)
        header = CMD_HDR.unpack(data)
        body = data[CMD_HDR.size :]
        if header.in_bytes > len(body) or header.command not in set(CmCommand):
            raise DeviceError(errno.EINVAL)
        found = _COMMANDS.get(CmCommand(header.command))
        if found is None:
            raise DeviceError(errno.ENOSYS)
        layout, handler, least_back = found
        if len(body) < layout.size:
            raise DeviceError(errno.EINVAL)
        if header.out_bytes < least_back:
            raise DeviceError(errno.ENOSPC)
        if header.command == CmCommand.GET_EVENT and not self._news:
            if no_wait:
                raise DeviceError(errno.EAGAIN)
            return None
        fields = layout.unpack(body)
        back = handler(self, fields, process)
        if back is None:
            return []
        return [Put(fields.response, back[: header.out_bytes])]

    # Commands. Each gives what is put where the program wants its answer.

    def _create_id(self, fields: Any, _process: int) -> bytes:
        one = CmId(self._machine, fields.ps, fields.qp_type, fields.uid, self._tell)
        return layouts.CREATE_ID_RESP.pack(id=self._ids.add(one, self))

    def _destroy_id(self, fields: Any, _process: int) -> bytes:
        one = self._own(fields.id)
        self._end(one)
        return layouts.EVENTS_RESP.pack(events_reported=one.told)

    def _bind(self, fields: Any, _process: int) -> None:
        self._own(fields.id).bind(_endpoint(fields.addr))

    def _resolve_address(self, fields: Any, _process: int) -> None:
        source = Endpoint.unpack(fields.src_addr)
        self._own(fields.id).resolve_address(source, _endpoint(fields.dst_addr))

    def _resolve_route(self, fields: Any, _process: int) -> None:
        self._own(fields.id).resolve_route(fields.timeout_ms)

    def _query_route(self, fields: Any, _process: int) -> bytes:
        one = self._own(fields.id)
        values: dict[str, int | bytes] = {"ibdev_index": _NO_INDEX}
        if one.port is not None:
            values |= {"node_guid": self._machine.node_guid(one.port).to_bytes(8, "big"), "port_num": one.port.number}
            values |= {"num_paths": int(one.path is not None), "ib_route": _user_path(one)}
        for name, endpoint in (("src_addr", one.source), ("dst_addr", one.destination)):
            values[name] = endpoint.pack().ljust(SOCKADDR_IN6_BYTES, b"\0")
        return layouts.QUERY_ROUTE_RESP.pack(**values)

    def _query(self, fields: Any, _process: int) -> bytes:
        one = self._own(fields.id)
        match fields.option:
            case CmQuery.ADDR:
                return self._addresses(one, one.source.pack(), one.destination.pack())
            case CmQuery.GID:
                near, far = _gids(one)
                key = one.path.p_key if one.path is not None else 0
                return self._addresses(
                    one,
                    packed_ib(near, key, one.service(one.source)),
                    packed_ib(far, key, one.service(one.destination)),
                )
            case CmQuery.PATH:
                head = layouts.QUERY_PATH_RESP.pack(num_paths=int(one.path is not None))
                if one.path is None:
                    return head
                return head + layouts.PATH_DATA.pack(flags=_PATH_FLAGS, path_rec=packed_path(one.path))
            case _:
                raise DeviceError(errno.ENOSYS)

    def _addresses(self, one: CmId, source: bytes, destination: bytes) -> bytes:
        values: dict[str, int | bytes] = {
            "src_size": len(source),
            "dst_size": len(destination),
            "src_addr": source,
            "dst_addr": destination,
            "ibdev_index": _NO_INDEX,
        }
        if one.port is not None:
            key = one.path.p_key if one.path is not None else one.port.p_keys[0]
            values |= {"node_guid": self._machine.node_guid(one.port).to_bytes(8, "big"), "port_num": one.port.number}
            values["pkey"] = key.to_bytes(2, "big")
        return layouts.QUERY_ADDR_RESP.pack(**values)

    def _connect(self, fields: Any, _process: int) -> None:
        parameters = CONN_PARAM.unpack(fields.conn_param)
        if not parameters.valid:
            raise DeviceError(errno.EINVAL)
        self._own(fields.id).connect(parameters)

    def _listen(self, fields: Any, _process: int) -> None:
        self._own(fields.id).listen(fields.backlog)

    def _accept(self, fields: Any, _process: int) -> None:
        self._own(fields.id).accept(CONN_PARAM.unpack(fields.conn_param), fields.uid)

    def _reject(self, fields: Any, _process: int) -> None:
        self._own(fields.id).reject(fields.reason, fields.private_data[: fields.private_data_len])

    def _disconnect(self, fields: Any, _process: int) -> None:
        self._own(fields.id).disconnect()

    def _init_qp_attr(self, fields: Any, _process: int) -> bytes:
        return self._own(fields.id).qp_attributes(fields.qp_state)

    def _get_event(self, _fields: Any, _process: int) -> bytes:
        about, code, status, parameters, child, group = self._news[0]
        number, user = self._ids.number_of(about), about.user
        if child is not None:
            number = self._ids.add(child, self)
            about.taken()
        self._news.popleft()
        about.told += 1
        if group is not None:
            number, user = group.number, group.user
            group.told += 1
        return layouts.EVENT_RESP.pack(uid=user, id=number, event=code, status=status, param=parameters)

    def _set_option(self, fields: Any, process: int) -> None:
        one = self._own(fields.id)
        if fields.level or fields.optname not in _ID_OPTIONS:
            raise DeviceError(errno.ENOSYS)
        if fields.optlen != _ID_OPTIONS[fields.optname]:
            raise DeviceError(errno.EINVAL)
        value = int.from_bytes(_bytes_of(process, fields.optval, fields.optlen), "little")
        if fields.optname == _TOS:
            one.qos_class = value
        elif fields.optname == _REUSEADDR:
            one.reuses = bool(value)
        elif fields.optname == _ACK_TIMEOUT:
            if value > _MOST_ACK_TIMEOUT:
                raise DeviceError(errno.EINVAL)
            one.ack_timeout = value

    def _notify(self, fields: Any, _process: int) -> None:
        one = self._own(fields.id)
        if fields.event != _COMM_EST:
            raise DeviceError(errno.EINVAL)
        one.establish()

    def _migrate_id(self, fields: Any, _process: int) -> bytes:
        one, device = self._ids.find(fields.id)
        if device._machine is not self._machine:
            raise DeviceError(errno.EINVAL)
        mine = [news for news in device._news if news.about is one]
        device._news = deque(news for news in device._news if news.about is not one)
        self._ids.move(one, self)
        one.tell = self._tell
        for news in mine:
            self._tell(news)
        return layouts.EVENTS_RESP.pack(events_reported=one.told)

    def _join_ip(self, fields: Any, _process: int) -> bytes:
        return self._join_group(fields, GroupAddress(_endpoint(fields.addr).address), JoinFlag.FULL_MEMBER)

    def _join(self, fields: Any, _process: int) -> bytes:
        return self._join_group(fields, group_address(fields.addr, fields.addr_size), fields.join_flags)

    def _join_group(self, fields: Any, address: GroupAddress, flag: int) -> bytes:
        one = self._own(fields.id)
        group = one.new_group(address, flag, fields.uid)
        self._ids.add_group(one, group)
        one.join(group)
        return layouts.CREATE_ID_RESP.pack(id=group.number)

    def _leave(self, fields: Any, _process: int) -> bytes:
        one, group = self._ids.find_group(fields.id)
        self._own(self._ids.number_of(one))
        self._ids.remove_group(group)
        self._news = deque(news for news in self._news if news.group is not group)
        one.leave(group)
        return layouts.EVENTS_RESP.pack(events_reported=group.told)

    # Inside.

    def _own(self, number: int) -> CmId:
        one, device = self._ids.find(number)
        if device is not self:
            raise DeviceError(errno.EINVAL)
        return one

    def _tell(self, news: News) -> None:
        self._news.append(news)
        self._on_news()

    def _end(self, one: CmId) -> None:
        """Ends one, and with it the events of it, and what was asked of it that the program has not got."""
        self._ids.remove(one)
        for news in self._news:
            if news.about is one and news.child is not None:
                news.child.close()
        self._news = deque(news for news in self._news if news.about is not one)
        one.close()


_Handler = Callable[[RdmaCmDevice, Any, int], bytes | None]

_COMMANDS: Final[dict[CmCommand, tuple[CStruct, _Handler, int]]] = {
    CmCommand.CREATE_ID: (layouts.CREATE_ID, RdmaCmDevice._create_id, layouts.CREATE_ID_RESP.size),
    CmCommand.DESTROY_ID: (layouts.DESTROY_ID, RdmaCmDevice._destroy_id, layouts.EVENTS_RESP.size),
    CmCommand.BIND_IP: (layouts.BIND_IP, RdmaCmDevice._bind, 0),
    CmCommand.RESOLVE_IP: (layouts.RESOLVE_IP, RdmaCmDevice._resolve_address, 0),
    CmCommand.RESOLVE_ROUTE: (layouts.RESOLVE_ROUTE, RdmaCmDevice._resolve_route, 0),
    CmCommand.QUERY_ROUTE: (layouts.QUERY, RdmaCmDevice._query_route, layouts.QUERY_ROUTE_RESP.size - 8),
    CmCommand.CONNECT: (layouts.CONNECT, RdmaCmDevice._connect, 0),
    CmCommand.LISTEN: (layouts.LISTEN, RdmaCmDevice._listen, 0),
    CmCommand.ACCEPT: (layouts.ACCEPT, RdmaCmDevice._accept, 0),
    CmCommand.REJECT: (layouts.REJECT, RdmaCmDevice._reject, 0),
    CmCommand.DISCONNECT: (layouts.ONLY_ID, RdmaCmDevice._disconnect, 0),
    CmCommand.INIT_QP_ATTR: (layouts.INIT_QP_ATTR, RdmaCmDevice._init_qp_attr, layouts.QP_ATTR.size),
    CmCommand.GET_EVENT: (layouts.GET_EVENT, RdmaCmDevice._get_event, layouts.EVENT_RESP.size - 12),
    CmCommand.SET_OPTION: (layouts.SET_OPTION, RdmaCmDevice._set_option, 0),
    CmCommand.NOTIFY: (layouts.NOTIFY, RdmaCmDevice._notify, 0),
    CmCommand.JOIN_IP_MCAST: (layouts.JOIN_IP_MCAST, RdmaCmDevice._join_ip, layouts.CREATE_ID_RESP.size),
    CmCommand.LEAVE_MCAST: (layouts.DESTROY_ID, RdmaCmDevice._leave, layouts.EVENTS_RESP.size),
    CmCommand.MIGRATE_ID: (layouts.MIGRATE_ID, RdmaCmDevice._migrate_id, layouts.EVENTS_RESP.size),
    CmCommand.QUERY: (layouts.QUERY, RdmaCmDevice._query, layouts.QUERY_PATH_RESP.size),
    CmCommand.BIND: (layouts.BIND, RdmaCmDevice._bind, 0),
    CmCommand.RESOLVE_ADDR: (layouts.RESOLVE_ADDR, RdmaCmDevice._resolve_address, 0),
    CmCommand.JOIN_MCAST: (layouts.JOIN_MCAST, RdmaCmDevice._join, layouts.CREATE_ID_RESP.size),
}
"""What each command has, how it is carried out, and for how many bytes of an answer a program has room at least:
older libraries do not know the last members of some."""


def _endpoint(address: bytes) -> Endpoint:
    found = Endpoint.unpack(address)
    if found is None:
        raise DeviceError(errno.EINVAL)
    return found


def _gids(one: CmId) -> tuple[int, int]:
    """Those of both ends, as far as they are known."""
    if one.path is not None:
        return one.path.local_gid, one.path.remote_gid
    return one.port.gid if one.port is not None else 0, one.remote.gid if one.remote is not None else 0


def _user_path(one: CmId) -> bytes:
    """A struct ib_user_path_rec; without a path, what is known of its ends."""
    near, far = _gids(one)
    ends = {"sgid": near.to_bytes(16, "big"), "dgid": far.to_bytes(16, "big")}
    path = one.path
    if path is None:
        key = one.port.p_keys[0] if one.port is not None else 0
        return layouts.USER_PATH_REC.pack(**ends, pkey=key.to_bytes(2, "big"))
    return layouts.USER_PATH_REC.pack(
        **ends,
        dlid=path.route.path.dlid.to_bytes(2, "big"),
        slid=path.local_lid.to_bytes(2, "big"),
        reversible=1,
        mtu=path.mtu,
        pkey=path.p_key.to_bytes(2, "big"),
        numb_path=1,
        sl=path.route.path.sl,
        mtu_selector=EXACTLY,
        rate_selector=EXACTLY,
        rate=path.rate,
        packet_life_time_selector=EXACTLY,
        packet_life_time=path.life_time,
    )


def _bytes_of(process: int, address: int, length: int) -> bytes:
    """Bytes of a process.

    Raises:
        DeviceError: it does not have them.
    """
    try:
        memory = ProcessMemory(process)
    except OSError as error:
        raise DeviceError(error.errno or errno.EACCES) from None
    try:
        return memory.read(address, length)
    except MemoryFaultError:
        raise DeviceError(errno.EFAULT) from None
    finally:
        memory.close()
