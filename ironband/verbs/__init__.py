"""Verbs in Python over a fabric in the same process, under the names that pyverbs has (docs/python-verbs.md)."""

from typing import Any

# Before anything of transports is imported: it says in which form they are found.
import cosim  # noqa: F401
from ironband.verbs import enums
from ironband.verbs.addr import AH, GID, GRH, AHAttr, GlobalRoute
from ironband.verbs.base import PyverbsCM, PyverbsObject, inc_rkey
from ironband.verbs.connect import connect
from ironband.verbs.cq import CQ, CQEX, WC, CompChannel, CqInitAttrEx, PollCqAttr
from ironband.verbs.device import AsyncEvent, Context, Device, GIDEntry, get_device_list
from ironband.verbs.device_attributes import DeviceAttr, PortAttr
from ironband.verbs.fabric import Fabric
from ironband.verbs.mr import MR, MW, MWBind, MWBindInfo
from ironband.verbs.network import Network
from ironband.verbs.pd import PD
from ironband.verbs.pyverbs_error import NothingComesError, PyverbsError, PyverbsRDMAError, PyverbsUserError
from ironband.verbs.qp import QP, DataBuffer, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from ironband.verbs.rd import EEC, QPT_RD, RDD
from ironband.verbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from ironband.verbs.wr import SGE, RecvWR, SendWR
from ironband.verbs.xrcd import XRCD, XRCDInitAttr

__all__ = [
    "AH",
    "CQ",
    "CQEX",
    "EEC",
    "GID",
    "GRH",
    "MR",
    "MW",
    "PD",
    "QP",
    "QPT_RD",
    "RDD",
    "SGE",
    "SRQ",
    "WC",
    "XRCD",
    "AHAttr",
    "AsyncEvent",
    "CompChannel",
    "Context",
    "CqInitAttrEx",
    "DataBuffer",
    "Device",
    "DeviceAttr",
    "Fabric",
    "GIDEntry",
    "GlobalRoute",
    "MWBind",
    "MWBindInfo",
    "Network",
    "NothingComesError",
    "PollCqAttr",
    "PortAttr",
    "PyverbsCM",
    "PyverbsError",
    "PyverbsObject",
    "PyverbsRDMAError",
    "PyverbsUserError",
    "QPAttr",
    "QPCap",
    "QPEx",
    "QPInitAttr",
    "QPInitAttrEx",
    "RecvWR",
    "SendWR",
    "SrqAttr",
    "SrqInitAttr",
    "SrqInitAttrEx",
    "XRCDInitAttr",
    "connect",
    "get_device_list",
    "inc_rkey",
]
__all__ += enums.__all__


def __getattr__(name: str) -> Any:
    """The names of `ironband.verbs.enums` are this module's too."""
    return getattr(enums, name)
