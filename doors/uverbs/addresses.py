"""Addresses as programs give them, and address handles."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

from doors.mads.umad_device import DeviceError
from doors.uverbs.context import Command, Context, Handled, Reply
from doors.uverbs.layouts import AH_ATTR, CREATE_AH_RESP, RXE_CREATE_AH_RESP
from doors.uverbs.memory import Domain
from verbs.adapter import Adapter
from verbs.address import AddressHandle, AddressVector, GlobalRoute

__all__ = ["Address", "create_ah", "destroy_ah", "vector_of"]


@dataclass(eq=False, slots=True)
class Address(Handled):
    """An address handle."""

    adapter: Adapter
    address: AddressHandle

    def end(self) -> None:
        """See `Handled`."""
        self.adapter.destroy_ah(self.address)


def vector_of(fields: Any) -> AddressVector:
    """The address vector in a structure that holds one.

    Raises:
        DeviceError: there is none such.
    """
    try:
        route = None
        if fields.is_global:
            route = GlobalRoute(
                int.from_bytes(fields.dgid, "big"),
                fields.sgid_index,
                fields.flow_label,
                fields.hop_limit,
                fields.traffic_class,
            )
        return AddressVector(fields.dlid, fields.sl, fields.src_path_bits, route, fields.port_num)
    except ValueError:
        raise DeviceError(errno.EINVAL) from None


def create_ah(context: Context, fields: Any, _command: Command) -> Reply:
    """An address handle, which work requests name by its number."""
    domain = context.get(fields.pd_handle, Domain)
    vector = vector_of(AH_ATTR.unpack(fields.attr))
    adapter = context.host.adapter
    try:
        made = adapter.create_ah(domain.domain, vector)
    except ValueError:
        raise DeviceError(errno.EINVAL) from None
    address = context.add(Address(adapter, made))
    return Reply(CREATE_AH_RESP.pack(ah_handle=address.handle), RXE_CREATE_AH_RESP.pack(ah_num=address.handle))


def destroy_ah(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end."""
    context.remove(context.get(fields.handle, Address))
    return Reply()
