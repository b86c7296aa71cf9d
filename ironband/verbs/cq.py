"""Completion queues."""

from __future__ import annotations

from ironband.verbs.base import refusals
from ironband.verbs.completion_queue import CompChannel, CompletionSource
from ironband.verbs.cq_extended import CQEX, CqInitAttrEx, PollCqAttr
from ironband.verbs.device import Context
from ironband.verbs.wc import WC

__all__ = ["CQ", "CQEX", "WC", "CompChannel", "CqInitAttrEx", "PollCqAttr"]


class CQ(CompletionSource):
    """A completion queue."""

    def __init__(
        self,
        context: Context,
        cqe: int,
        cq_context: object = None,
        channel: CompChannel | None = None,
        comp_vector: int = 0,
    ) -> None:
        """Of CQE completions; CQ_CONTEXT is not looked at."""
        super().__init__(context, cqe, channel, comp_vector)

    def poll(self, num_entries: int = 1) -> tuple[int, list[WC]]:
        """Up to so many completions, and how many they are. If there is none, a little time passes first.

        Raises:
            NothingComesError: there was none many times in a row, and nothing is under way any more.
        """
        found = [WC.of(*taken) for taken in self.take(num_entries)]
        return len(found), found

    def req_notify(self, solicited_only: bool = False) -> None:
        """Asks to be told of the next completion, or of the next solicited or unsuccessful one."""
        self.queue.request_notification(solicited_only=bool(solicited_only))

    def ack_events(self, num_events: int) -> None:
        """Nothing waits for it."""

    def resize(self, cqe: int) -> None:
        """Makes room for so many completions."""
        with refusals("Failed to resize CQ"):
            self.context.adapter.resize_cq(self.queue, int(cqe))

    def __str__(self) -> str:
        return f"CQ\n{'CQEs':22}: {self.cqe:<20}\n"
