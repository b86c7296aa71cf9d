"""Domains of XRC."""

from __future__ import annotations

from ironband.verbs.base import PyverbsCM, PyverbsObject, refusals
from ironband.verbs.device import Context

__all__ = ["XRCD", "XRCDInitAttr"]


class XRCDInitAttr(PyverbsObject):
    """What a domain is made with. The file by which processes share one does not matter: there is one process."""

    def __init__(self, comp_mask: int, oflags: int, fd: int) -> None:
        super().__init__()
        self.comp_mask = comp_mask
        self.oflags = oflags
        self.fd = fd


class XRCD(PyverbsCM):
    """A domain: what comes to its queue pairs is for its shared receive queues.

    Attributes:
        context: whose it is.
        domain: the adapter's.
    """

    def __init__(self, context: Context, init_attr: XRCDInitAttr | None = None) -> None:
        super().__init__(context)
        self.context = context
        with refusals("Failed to open XRCD"):
            self.domain = context.adapter.open_xrcd()
        self.made()

    def _end(self) -> None:
        self.context.adapter.close_xrcd(self.domain)
