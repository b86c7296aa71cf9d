"""What figures must reach, and how they are shown."""

from bench.figures import FIGURES, Reading, Target


def test_target_says_what_reaches_it() -> None:
    assert str(Target(most=8)) == "<= 8"
    assert str(Target(least=3000)) == ">= 3,000"
    assert str(Target(0.588, 0.648)) == "0.588 .. 0.648"
    assert [Target(0.588, 0.648).held(value) for value in (0.587, 0.588, 0.648, 0.649)] == [False, True, True, False]


def test_a_slower_machine_may_take_longer_and_need_not_be_as_fast() -> None:
    assert Target(most=90).scaled(0.5) == Target(most=180)
    assert Target(least=1_500_000).scaled(1 / 3.3) == Target(least=455_000)
    assert Target(1.0, 2.0, ports=8).scaled(2) == Target(2.0, 1.0, ports=8)
    assert str(Target(least=1_500_000).scaled(1 / 3.3)) == ">= 455,000"


def test_speeds_and_times_are_scaled_and_nothing_else() -> None:
    absolute = {name for name, figure in FIGURES.items() if figure.target and figure.unit in ("s", "/s", "cycles/s")}
    assert {name for name, figure in FIGURES.items() if figure.scaled_by} == absolute


def test_a_reading_of_repetitions_is_their_median_between_least_and_most() -> None:
    assert Reading.of([3, 1, 7]) == Reading(3, 1, 7)


def test_a_value_is_shown_with_the_digits_of_its_figure() -> None:
    assert FIGURES["cosim_ratio"].shown(0.956) == "0.96"
    assert FIGURES["model_cycles_per_s"].shown(2_126_601.4) == "2,126,601"
