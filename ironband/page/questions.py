"""What the page may ask, and with which numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cosim.scenario.limits import MAX_CYCLES
from ironband.page.run_view import RunView
from ironband.page.server import Answers, BadQuestion, Query

__all__ = ["answers_of"]

_MOST_PIXELS: Final = 4_000
_MOST_EVENTS: Final = 1_000
_MOST_PACKETS: Final = 1 << 31
_LAST: Final = 2 * MAX_CYCLES


def answers_of(view: Callable[[], RunView], newest: Callable[[], RunView] | None = None) -> Answers:
    """Answers of a run, which `view` gives; of one that goes on `newest` gives it as it is now, and then `view` too."""
    as_it_is = newest or view

    def ports(query: Query) -> list[int]:
        return query.numbers("ports", len(view().run()["port_names"]) - 1)

    def extent(query: Query) -> tuple[int, int]:
        first, last = query.number("from", 0, _LAST), query.number("to", 0, _LAST)
        if first >= last:
            raise BadQuestion(f"from={first} to={last}: expected the first to be less")
        return first, last

    def series(query: Query) -> object:
        return view().series(*extent(query), query.number("pixels", 1, _MOST_PIXELS), ports(query))

    def events(query: Query) -> object:
        return view().list_events(query.number("from", 0, _LAST), query.number("count", 1, _MOST_EVENTS), ports(query))

    def packet(query: Query) -> object:
        found = view().packet(number := query.number("number", 0, _MOST_PACKETS))
        if found is None:
            raise BadQuestion(f"number={number}: no such packet")
        return found

    return {
        "/run.json": lambda query: as_it_is().run(),
        "/extent.json": lambda query: as_it_is().extent(),
        "/series.json": series,
        "/load.json": lambda query: view().load(*extent(query)),
        "/events.json": events,
        "/packet.json": packet,
    }
