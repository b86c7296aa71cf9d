"""`ironband measure tick`."""

from __future__ import annotations

from typing import Any

from cosim.pictures.laboratory_pictures import tick_figure
from cosim.scenario.laboratory import tick_scenario
from cosim.topology.topology import Port
from ironband.measure.laboratory import Asked, Laboratory, NothingToMeasure
from laboratory.wait_tick import WaitTick
from toolchain.errors import UserError
from wire.registers import Counter

__all__ = ["measure_tick"]

_SENDER = Port("A", 1)


def measure_tick(packets: int, tick: int, xmit_wait: int | None, port: str | None, **asked: Any) -> int:
    """Measure and report; the exit status, 1 if none that was found was configured.

    Raises:
        UserError: no capture, one in which the port never waits, or a counter that was not told.
        OutputError: a file cannot be written.
        What the engines raise (cosim.engines.simulation.run).
    """
    laboratory = Laboratory("tick", Asked(**asked))
    told = asked["given"] is not None
    if told != (xmit_wait is not None):
        raise UserError("--xmit-wait: expected with --from, where no simulation has the counter, and only then")
    if port is not None and not told:
        raise UserError(f"--port {port}: expected only with --from")
    with laboratory.capture(tick_scenario(packets, tick), [f"{_SENDER}:out"]) as reading:
        waits = WaitTick(reading.capture, port or "")
        reading.read(waits)
        count = reading.run.counters[_SENDER][Counter.XMIT_WAIT] if reading.run is not None else xmit_wait or 0
        if not waits.found:
            raise NothingToMeasure(f"{reading.place}: no data packets of {port or 'a port'}")
        if not waits.waits:
            raise NothingToMeasure(f"{reading.place}: {waits.place} never waits between two packets")
        if not count:
            raise NothingToMeasure("PortXmitWait did not count: its tick is longer than any wait")
        best = waits.best(count)
        ns = waits.cycle_ns
        laboratory.print(
            f"{waits.place} waited {waits.waits:,} times between packets, {waits.waited_cycles * ns:,.0f} ns in all; "
            f"PortXmitWait counted {count:,}"
        )
        laboratory.print(
            f"waiting by counts: a tick of {waits.waited_cycles / count:.1f} cycles; "
            "too much, as ticks that a wait only partly fills do not count"
        )
        cycles = [fit.cycles for fit in best]
        said = f"{cycles[0]}" if len(cycles) == 1 else f"{cycles[0]} to {cycles[-1]}"
        laboratory.print(
            f"the tick that makes this number of these waits: {said} cycles, {cycles[0] * ns:,.0f} ns "
            f"(PortSamplesControl.Tick {cycles[0] - 1:#04x}); it would count {best[0].least:,} to {best[0].most:,}"
        )
        if reading.run is not None:
            laboratory.print(f"configured: {tick} cycles")
    results = {
        "waits": waits.waits,
        "waited_ns": waits.waited_cycles * ns,
        "xmit_wait": count,
        "simple_estimate_cycles": waits.waited_cycles / count,
        "tick_cycles": cycles,
        "cycle_ns": ns,
    }
    return laboratory.finish(tick_figure(waits, count, best), results, held=told or tick in cycles)
