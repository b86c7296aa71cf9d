"""The page in a real browser: keys, the mouse, dark and light, a fabric that is served; and no errors."""

from contextlib import closing
from itertools import combinations
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from ironband.page.live import Live
from ironband.page.questions import answers_of
from ironband.page.server import page_server
from ironband.page.subject import read_subject
from tests.ironband.command import COMMAND
from tests.ironband.page.browser import needs_browser, opened
from tests.ironband.page.test_fabric_map import fat_tree
from tests.ironband.served import beside, wait_for

pytestmark = needs_browser

BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def jam():
    return read_subject("scenario", Path("jam"), "model", "smp")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(jam, browser):
    with page_server(answers_of(lambda: jam), 0) as address:
        browser.go(f"{address}#packet=3&cycle=42020")
        yield browser
        assert browser.errors == []


def test_the_whole_run_is_drawn_at_first(page, jam):
    run = jam.run()
    assert page.read("extent") == [run["begin"], run["last"]]
    assert page.read("document.querySelectorAll('#map .node').length") == 3
    assert page.read("document.querySelectorAll('.uplot').length") == 2
    assert page.read("document.querySelectorAll('#ladder polygon').length") == 2
    assert "at A[1], without credits" in page.read("document.querySelector('#spans').innerText")
    assert page.read("document.querySelector('#about').textContent") == (
        "1 switch, 2 hosts, 2 links; 61 events, 5 packets"
    )


def test_keys_go_along_zoom_step_and_choose(page):
    whole = page.read("extent")
    page.press(".")
    assert page.read("[now, Number(document.querySelector('#scrub').value)]") == [42021, 42021]
    page.press(",")
    page.press(",")
    assert page.read("now") == 42019
    page.press("+")
    first, last = page.read("extent")
    assert (last - first, first < 42019 < last) == ((whole[1] - whole[0]) // 2, True)
    page.press("ArrowRight")
    assert page.read("extent")[0] == pytest.approx(first + (last - first) / 4, abs=1)
    page.press("0")
    assert page.read("extent") == whole
    page.press("n")
    assert page.read("document.querySelector('#packet-name').textContent") == "The way of packet 4"
    page.press("p")
    assert page.read("document.querySelector('#packet-name').textContent") == "The way of packet 3"


def test_keys_go_from_node_to_node_and_choose_one(page):
    page.read("document.querySelector('#map .node').focus()")
    page.tell("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown")
    assert "host" in page.read("document.activeElement.getAttribute('aria-label')")
    page.press("Enter")
    assert page.read("[...document.querySelectorAll('#map .node.chosen')].length") == 1
    assert page.read("lanes.length") == 1
    page.press("Escape")
    assert page.read("lanes.length") == 2


def test_no_name_of_a_switch_of_a_large_fabric_is_upon_another(browser, tmp_path):
    topology = tmp_path / "large.net"
    topology.write_text(fat_tree(36, 18, 18).replace('"L', '"leaf'))
    subject = read_subject("topology", topology, "model", "smp")
    with page_server(answers_of(lambda: subject), 0) as address:
        browser.go(address)
        boxes = browser.read(
            "[...document.querySelectorAll('.node.switch .shape')].map((shape) => shape.getBoundingClientRect())"
            ".map(({ left, right, top, bottom }) => [left, right, top, bottom])"
        )
    assert len(boxes) == 54
    for one, other in combinations(boxes, 2):
        assert one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2], (one, other)
    assert browser.errors == []


def test_a_drag_over_a_chart_zooms_and_a_click_scrubs(page):
    first, last = page.read("extent")
    page.drag("#credits .u-over", 0.25, 0.75)
    wide = last - first
    assert page.read("extent") == pytest.approx([first + wide / 4, last - wide / 4], abs=wide / 100)
    page.drag("#buffers .u-over", 0.5, 0.5)
    assert page.read("now") == pytest.approx((first + last) / 2, abs=wide / 100)
    page.drag("#scrub", 0.1, 0.9)
    assert page.read("now") > (first + last) / 2


def test_dark_and_light_follow_the_reader(page):
    for is_dark, colour in ((True, "rgb(18, 24, 30)"), (False, "rgb(255, 255, 255)")):
        page.read("document.body.dataset.ready = ''")
        page.dark(is_dark)
        # It loads itself anew, for charts are drawn in colours that no style sheet reaches.
        page.wait_for(f"document.body?.dataset.ready > 0 && {BACKGROUND} === '{colour}'")


def test_a_fabric_that_is_served_is_followed_to_its_end(browser, tmp_path):
    directory = tmp_path / "d"
    options = ["--link-down-timeout", "20000", "--dir", str(directory)]
    with beside([*COMMAND, "serve", *options, "star"], stdin=PIPE, stdout=DEVNULL) as server:
        wait_for((directory / "fabric.json").exists)
        with closing(Live(directory)) as live, page_server(answers_of(live.shown, live.newest), 0) as address:
            browser.go(address)
            about = "document.querySelector('#about').textContent"
            assert browser.read(about) == "1 switch, 2 hosts, 2 links; live"
            assert browser.read("document.querySelectorAll('.link.inactive').length") == 0
            print("flow H1 H2 0.9 1024", file=server.stdin, flush=True)
            browser.wait_for("document.querySelector('.link').style.strokeWidth > '4px'")
            assert browser.read("lanes.map((lane) => run.port_names[lane.port])") == ["H1[1]", "SW1[2]"]
            print("cut H2", file=server.stdin, flush=True)
            browser.wait_for("document.querySelectorAll('.link.down').length === 1")
            print("quit", file=server.stdin, flush=True)
            browser.wait_for(f"{about}.endsWith('the server has ended')")
            assert server.wait() == 0
    assert browser.errors == []
