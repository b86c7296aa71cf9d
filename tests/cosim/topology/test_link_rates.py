"""Widths and speeds of links: what ports agree on, what is built, and how it is told."""

import pytest

from cosim.topology.link_rates import PortRate, agreed_rate, built_width, rate_line, rate_text, stated_rate
from cosim.topology.place import Wrong
from sm.subnet import End, Speed
from tests.sm.subnets import HOST_GUID, star
from wire.codes import LinkWidth

USUAL = PortRate()
WIDTHS = {"1": LinkWidth.X1, "2": LinkWidth.X2, "4": LinkWidth.X4, "8": LinkWidth.X8, "12": LinkWidth.X12}


@pytest.mark.parametrize("speed", list(Speed))
@pytest.mark.parametrize("width", list(WIDTHS))
def test_ends_that_run_alike_agree_on_what_they_run_at(width, speed):
    rate = stated_rate(width, speed.name, USUAL)
    assert agreed_rate(rate, rate) == (WIDTHS[width], speed)
    assert rate_text(*agreed_rate(rate, rate)) == f"{width}x{speed.name}"


@pytest.mark.parametrize(
    ("one", "other", "agreed"),
    [
        (("4", "EDR"), ("4", "FDR10"), "4xFDR10"),
        (("2", "HDR"), ("4", "NDR"), "1xHDR"),
        (("12", "QDR"), ("8", "DDR"), "4xDDR"),
        (("4", "XDR"), ("1", "SDR"), "1xSDR"),
    ],
)
def test_ends_that_run_differently_agree_on_what_both_can(one, other, agreed):
    assert rate_text(*agreed_rate(stated_rate(*one, USUAL), stated_rate(*other, USUAL))) == agreed


@pytest.mark.parametrize(
    ("spoken", "name"), [("2.5", "SDR"), ("5", "DDR"), ("5.0", "DDR"), ("10.0G", "QDR"), ("10Gbps", "QDR")]
)
def test_speeds_may_be_said_in_gigabits(spoken, name):
    assert stated_rate("4", spoken, USUAL) == stated_rate("4", name, USUAL)


def test_what_ibnetdiscover_has_no_word_for_is_as_usual():
    usual = stated_rate("12", "DDR", USUAL)
    assert stated_rate("??", "???", usual) == usual
    assert stated_rate("4", "???", usual) == PortRate(stated_rate("4", "DDR", USUAL).widths, usual.speeds)


@pytest.mark.parametrize(("width", "speed"), [("3", "SDR"), ("4", "SDRx"), ("4", "G"), ("16", "QDR")])
def test_no_such_width_or_speed(width, speed):
    with pytest.raises(
        Wrong, match=rf"^link {width}x{speed}: expected a width of 1x, 2x, 4x, 8x, 12x and a speed of SDR"
    ):
        stated_rate(width, speed, USUAL)


def test_ibsims_options_set_bits():
    rate = USUAL.having("w", 3).having("s", 5).having("e", 6)
    assert rate == PortRate(LinkWidth.X1 | LinkWidth.X4, Speed.SDR | Speed.QDR | Speed.EDR | Speed.HDR)
    assert rate.having("e", 0).having("s", 0).speeds == Speed.QDR


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (USUAL.having("w", 1), USUAL, "share no width: one has 1X, the other 4X"),
        (USUAL.having("s", 4), USUAL.having("s", 3), "share no speed: one has QDR, the other SDR, DDR"),
    ],
)
def test_ends_that_have_nothing_in_common_make_no_link(one, other, what):
    with pytest.raises(Wrong, match=what):
        agreed_rate(one, other)


def test_nothing_is_told_of_links_that_are_built_as_they_are():
    subnet = star(hosts=3)
    narrow = subnet.links[1]
    subnet.disconnect(narrow.a)
    subnet.connect(narrow.a, narrow.b, LinkWidth.X1)
    assert rate_line(subnet) == ""


def test_what_is_built_of_other_links_is_told_in_a_line():
    subnet = star(hosts=5)
    for link, width in zip(subnet.links, (LinkWidth.X4, LinkWidth.X4, LinkWidth.X2, LinkWidth.X12), strict=False):
        subnet.disconnect(link.a)
        subnet.connect(link.a, link.b, width, Speed.HDR)
    assert subnet.link(End(HOST_GUID, 1)).speed is Speed.HDR
    assert rate_line(subnet) == (
        "links of the file: 2 of 4xHDR (here 4xSDR), 1 of 2xHDR (here 1xSDR), 1 of 12xHDR (here 4xSDR), 1 of 4xSDR"
    )
    assert [built_width(width).name for width in WIDTHS.values()] == ["X1", "X1", "X4", "X4", "X4"]
