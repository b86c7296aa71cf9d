"""What `ironband check` says: the totals, and the same as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cosim.experiments.check import CheckResult
from cosim.experiments.check_coverage import Coverage
from cosim.experiments.check_experiment import CheckOptions
from ironband.progress import Console

__all__ = ["check_json", "print_check"]


def check_json(options: CheckOptions, result: CheckResult, coverage: Coverage | None = None) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    given = asdict(options)
    wrong = coverage.refuted if coverage else ()
    return {
        "command": "check",
        "replay": options.command,
        "held": result.held and not wrong,
        **{{"cycles": "cycles", "mtu": "mtu_bytes"}.get(name, name): value for name, value in given.items()},
        "cycles_compared": result.cycles_compared,
        "records_compared": result.records_compared,
        "mismatches": None if options.sim == "model" else int(result.difference is not None),
        "sent_packets": result.packets_sent,
        "delivered_packets": result.packets_delivered,
        "lost_packets": result.packets_lost,
        "under_way_packets": result.packets_under_way,
        "errors_given": result.errors_given,
        "injections_acted": result.injections_acted,
        "packets_refused": result.verdicts,
        "faults": [*result.faults, *wrong],
        "difference": result.report or None,
        "decisions": asdict(coverage.decisions) if coverage else None,
        "limits": asdict(coverage.limits) if coverage else None,
        "counters": asdict(coverage.counters) if coverage else None,
    }


def print_check(console: Console, options: CheckOptions, result: CheckResult, coverage: Coverage | None) -> None:
    """Print the totals, and what was wrong."""
    line = console.print_line

    def total(name: str, value: str) -> None:
        line(f"{name:<22}{value}")

    line(options.command, "bold")
    compared = f"{result.cycles_compared:,}" if options.sim != "model" else "- (the golden model alone)"
    total("cycles compared", compared)
    total("events compared", f"{result.records_compared:,}")
    total("packets sent", f"{result.packets_sent:,}")
    total("packets delivered", f"{result.packets_delivered:,}")
    total("packets lost", f"{result.packets_lost:,}")
    total("not delivered yet", f"{result.packets_under_way:,}")
    if options.errors:
        total("errors given", f"{sum(result.errors_given.values()):,}, {result.injections_acted:,} changed a row")
        for kind, count in result.errors_given.items():
            line(f"  {kind:<22}{count:,}")
    if result.verdicts:
        total("packets refused", f"{sum(result.verdicts.values()):,}")
        for kind, count in result.verdicts.items():
            line(f"  {kind:<22}{count:,}")
    if coverage is not None:
        total("decisions reached", str(coverage.decisions))
        total("limits reached", str(coverage.limits))
        total("counters reached", str(coverage.counters))
    total("mismatches", "-" if options.sim == "model" else str(int(result.difference is not None)))
    for fault in (*result.faults, *(coverage.refuted if coverage else ())):
        line(f"wrong: {fault}", "bold red")
    if result.report:
        line(result.report, "bold red")
