"""How fast a machine is: loops timed by a clock."""

from bench.calibration import Calibration, Loop, loops
from bench.figures import Reading


def test_a_machine_is_as_fast_as_its_median_loop_against_the_reference() -> None:
    ran: list[str] = []
    compiled, python = (Loop(lambda kind=kind: ran.append(kind), 0.25) for kind in ("compiled", "python"))
    # Begin and end of each loop, one kind after the other, three times.
    times = iter([0, 0.5, 1, 1.25, 2, 2.125, 3, 3.25, 4, 4.25, 5, 5.125])
    calibration = Calibration({"compiled": compiled, "python": python}, times.__next__)
    for _ in range(3):
        calibration.measure()
    assert ran == ["compiled", "python"] * 3
    speeds = calibration.speeds
    assert speeds["compiled"].calibration == Reading(1.0, 0.5, 2.0)
    assert speeds["compiled"].loop_s == 0.25
    assert speeds["python"].calibration.value == 1.0
    assert speeds["python"].reference_s == 0.25


def test_the_loops_do_the_same_every_time() -> None:
    for loop in loops().values():
        assert loop.run() == loop.run()
        assert loop.reference_s > 0
