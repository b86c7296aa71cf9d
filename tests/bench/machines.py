"""Machines and settings for tests of the benchmark."""

from itertools import count

from bench.calibration import Calibration, Loop, Speed
from bench.figures import Reading
from bench.settings import Settings

ON_THE_MODEL = Settings(ports=3, quick=True, sim="model")


def speeds(compiled: float = 1.0, python: float = 1.0) -> dict[str, Speed]:
    """Of a machine so many times as fast as the reference."""
    factors = {"compiled": compiled, "python": python}
    return {kind: Speed(Reading.once(factor), 1 / factor, 1.0) for kind, factor in factors.items()}


def of_one() -> Calibration:
    """A machine of calibration 1.0: the clock goes on by a second at each look."""
    return Calibration(dict.fromkeys(("compiled", "python"), Loop(lambda: None, 1.0)), count().__next__)


def silent(text: str, done: int, of: int) -> None:
    pass
