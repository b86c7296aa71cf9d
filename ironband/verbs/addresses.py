"""Addresses: GIDs, global routes, and what address handles are made of."""

from __future__ import annotations

import re
from typing import Final

from ironband.verbs.base import PyverbsObject
from ironband.verbs.pyverbs_error import PyverbsUserError
from verbs import address

__all__ = ["GID", "GRH", "AHAttr", "GlobalRoute", "gid_text"]

_GID: Final = re.compile(r"[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){7}")


def gid_text(number: int) -> str:
    """A GID as eight groups of four hexadecimal digits."""
    digits = f"{number:032x}"
    return ":".join(digits[at : at + 4] for at in range(0, len(digits), 4))


def _gid_number(text: str) -> int:
    if not _GID.fullmatch(text):
        raise PyverbsUserError(f"Invalid GID value ({text}): expected eight groups of four hexadecimal digits")
    return int(text.replace(":", ""), 16)


class GID(PyverbsObject):
    """A GID. `number` is all of it, its first byte highest."""

    def __init__(self, val: str | None = None) -> None:
        super().__init__()
        self.number = 0 if val is None else _gid_number(val)

    @property
    def gid(self) -> str:
        """As text."""
        return gid_text(self.number)

    @gid.setter
    def gid(self, val: str) -> None:
        self.number = _gid_number(val)

    def __str__(self) -> str:
        return self.gid


class GRH(PyverbsObject):
    """What a GRH says, for those who answer a datagram."""

    def __init__(
        self,
        sgid: GID | None = None,
        dgid: GID | None = None,
        version_tclass_flow: int = 0,
        paylen: int = 0,
        next_hdr: int = 0,
        hop_limit: int = 1,
    ) -> None:
        super().__init__()
        self.sgid = (sgid or GID()).gid
        self.dgid = (dgid or GID()).gid
        self.version_tclass_flow = version_tclass_flow
        self.paylen = paylen
        self.next_hdr = next_hdr
        self.hop_limit = hop_limit

    def __str__(self) -> str:
        return _table(self, "dgid", "sgid", "version_tclass_flow", "paylen", "next_hdr", "hop_limit")


class GlobalRoute(PyverbsObject):
    """What goes into a GRH."""

    def __init__(
        self,
        dgid: GID | None = None,
        flow_label: int = 0,
        sgid_index: int = 0,
        hop_limit: int = 1,
        traffic_class: int = 0,
    ) -> None:
        super().__init__()
        self.dgid = (dgid or GID()).gid
        self.flow_label = flow_label
        self.sgid_index = sgid_index
        self.hop_limit = hop_limit
        self.traffic_class = traffic_class

    def __str__(self) -> str:
        return _table(self, "dgid", "flow_label", "sgid_index", "hop_limit", "traffic_class")


class AHAttr(PyverbsObject):
    """Where packets go. What is of GR counts only with IS_GLOBAL."""

    def __init__(
        self,
        dlid: int = 0,
        sl: int = 0,
        src_path_bits: int = 0,
        static_rate: int = 0,
        is_global: int = 0,
        port_num: int = 1,
        gr: GlobalRoute | None = None,
    ) -> None:
        super().__init__()
        if is_global and gr is None:
            raise PyverbsUserError("Global AH Attr is created but gr parameter is None")
        self.dlid = dlid
        self.sl = sl
        self.src_path_bits = src_path_bits
        self.static_rate = static_rate
        self.is_global = is_global
        self.port_num = port_num
        self._route = gr or GlobalRoute()

    @property
    def gr(self) -> GlobalRoute:
        """What goes into a GRH."""
        return self._route

    @property
    def dgid(self) -> str | None:
        """The destination's GID; None without a GRH, as for those that follow."""
        return self._route.dgid if self.is_global else None

    @dgid.setter
    def dgid(self, val: str) -> None:
        self._route.dgid = val

    @property
    def flow_label(self) -> int | None:
        """FlowLabel."""
        return self._route.flow_label if self.is_global else None

    @flow_label.setter
    def flow_label(self, val: int) -> None:
        self._route.flow_label = val

    @property
    def sgid_index(self) -> int | None:
        """Which of the port's GIDs is SGID."""
        return self._route.sgid_index if self.is_global else None

    @sgid_index.setter
    def sgid_index(self, val: int) -> None:
        self._route.sgid_index = val

    @property
    def hop_limit(self) -> int | None:
        """HopLmt."""
        return self._route.hop_limit if self.is_global else None

    @hop_limit.setter
    def hop_limit(self, val: int) -> None:
        self._route.hop_limit = val

    @property
    def traffic_class(self) -> int | None:
        """TClass."""
        return self._route.traffic_class if self.is_global else None

    @traffic_class.setter
    def traffic_class(self, val: int) -> None:
        self._route.traffic_class = val

    def vector(self) -> address.AddressVector:
        """The same for the adapter.

        Raises:
            ValueError: a value that does not fit its field.
        """
        gr = self._route
        route = None
        if self.is_global:
            number = _gid_number(gr.dgid)
            route = address.GlobalRoute(number, gr.sgid_index, gr.flow_label, gr.hop_limit, gr.traffic_class)
        return address.AddressVector(int(self.dlid), int(self.sl), int(self.src_path_bits), route, int(self.port_num))

    @classmethod
    def of(cls, vector: address.AddressVector) -> AHAttr:
        """The adapter's for programs."""
        route, gr = vector.route, None
        if route is not None:
            dgid = GID(gid_text(route.dgid))
            gr = GlobalRoute(dgid, route.flow_label, route.sgid_index, route.hop_limit, route.traffic_class)
        return cls(vector.dlid, vector.sl, vector.src_path_bits, 0, int(gr is not None), vector.port, gr)

    def __str__(self) -> str:
        names = ["port_num", "sl", "src_path_bits", "dlid", "static_rate", "is_global"]
        if self.is_global:
            names += ["dgid", "flow_label", "sgid_index", "hop_limit", "traffic_class"]
        return _table(self, *names)


def _table(thing: object, *names: str) -> str:
    return "".join(f"{name.replace('_', ' '):22}: {getattr(thing, name)!s:<20}\n" for name in names)
