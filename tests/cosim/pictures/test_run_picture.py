"""The picture of a run is a picture, says what it shows, and is the same for the same run."""

from xml.etree import ElementTree

import pytest
from PIL import Image

from cosim.analysis.event import Event
from cosim.pictures.run_picture import Picture, View
from cosim.topology.topology import Port
from tests.cosim.analysis.jam_trace import jam
from tests.cosim.analysis.test_story import story_of
from toolchain.atomic_files import OutputError


@pytest.fixture(scope="module")
def picture() -> Picture:
    run = jam()
    picture = Picture(run.topology, run.scenario.title, run.scenario.symbol_time_ns, run.start, View(run.start))
    for event in story_of(run)[0]:
        picture.add(event)
    return picture


def test_it_is_written_as_svg_and_png(picture, tmp_path):
    picture.save(tmp_path / "jam.svg", tmp_path / "jam.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jam.png", "jam.svg"]
    with Image.open(tmp_path / "jam.png") as image:
        assert image.size[0] > 1000
        assert len(image.convert("RGB").getcolors(1 << 24)) > 100
    words = " ".join("".join(text.itertext()) for text in ElementTree.parse(tmp_path / "jam.svg").iter())
    for shown in ("The traffic jam", "blocks of 64 bytes", "waits for credits", "room for 15", "µs", "cycle"):
        assert shown in words


def test_the_same_run_gives_the_same_file(picture, tmp_path):
    picture.save(tmp_path / "one.svg")
    picture.save(tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_run_without_events_can_be_drawn(tmp_path):
    run = jam()
    Picture(run.topology, "Nothing", 4.0, 0, View(0)).save(tmp_path / "nothing.svg")
    assert (tmp_path / "nothing.svg").stat().st_size > 0


def test_a_long_run_is_drawn_by_its_beginning(tmp_path):
    picture = Picture(jam().topology, "Long", 4.0, 0, View(0))
    for cycle in range(10_000):
        picture.add(Event(cycle, Port("A", 1), "credit", "", vl=0, credit_blocks=cycle % 7))
    assert picture.cut_off
    picture.save(tmp_path / "long.svg")
    assert "Long, the beginning" in (tmp_path / "long.svg").read_text()


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(picture, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        picture.save(tmp_path / "nowhere" / "jam.svg")
    assert list(tmp_path.iterdir()) == []


def words_of(path) -> list[str]:
    """Every text in an SVG file."""
    return ["".join(text.itertext()).strip() for text in ElementTree.parse(path).iter() if text.tag.endswith("text")]


def drawn(tmp_path, **view) -> list[str]:
    """What the picture of the jam says, seen through a view."""
    run = jam()
    picture = Picture(run.topology, "Jam", 4.0, run.start, View(**{"start": run.start} | view))
    for event in story_of(run)[0]:
        picture.add(event)
    picture.save(tmp_path / "view.svg")
    return words_of(tmp_path / "view.svg")


def test_only_the_panels_asked_for_are_drawn(tmp_path):
    shown = drawn(tmp_path, panels=("buffers",))
    assert "Input buffers of the switches" in shown
    assert "Packets on the links, by number" not in shown


def test_only_the_ports_asked_for_are_drawn(tmp_path):
    shown = drawn(tmp_path, ports=(Port("S", 2),))
    assert "S[2] \u2192 B[1]" in shown
    assert "A[1] \u2192 S[1]" not in shown


def test_credits_are_those_of_the_ports_asked_for(tmp_path):
    assert "A[1]" in drawn(tmp_path)
    assert {"A[1]", "S[2]"} & set(drawn(tmp_path, credits=(Port("S", 2),))) == {"S[2]"}


def test_the_lines_begin_with_what_there_was_before(tmp_path):
    pictures = []
    for earlier in ((), (3, 9), (9,), (9, 9)):
        picture = Picture(jam().topology, "Credits", 4.0, 100, View(100, panels=("credits",)))
        for cycle, blocks in [*((50 + place, blocks) for place, blocks in enumerate(earlier)), (200, 5), (300, 1)]:
            picture.add(Event(cycle, Port("A", 1), "credit", "", vl=0, credit_blocks=blocks))
        picture.save(tmp_path / "credits.svg")
        pictures.append((tmp_path / "credits.svg").read_bytes())
    assert pictures[1] == pictures[2] == pictures[3] != pictures[0]


def test_only_the_cycles_asked_for_are_drawn(tmp_path):
    start = jam().start
    shown = drawn(tmp_path, panels=("packets",), start=start + 1_000, end=start + 1_200)
    assert {"3", "4"} & set(shown)
    assert not {"0", "1"} & set(shown)


def test_flows_of_one_name_are_named_once(tmp_path):
    picture = Picture(jam().topology, "Flows", 4.0, 0, View(0, flow_names=["hot", "cold", "hot"]))
    for flow in range(3):
        picture.add(Event(100 * flow, Port("A", 1), "send", "", packet=f"{flow}/0", until=100 * flow + 72))
    picture.save(tmp_path / "flows.svg")
    assert [word for word in words_of(tmp_path / "flows.svg") if word in ("hot", "cold")] == ["hot", "cold"]


def test_injected_errors_are_marked(tmp_path):
    picture = Picture(jam().topology, "Errors", 4.0, 0, View(0))
    picture.add(Event(10, Port("A", 1), "send", "", packet="0/0", until=82))
    picture.add(Event(20, Port("A", 1), "error", ""))
    picture.save(tmp_path / "errors.svg")
    assert "injected error" in words_of(tmp_path / "errors.svg")


def test_packets_are_marked_that_their_receiver_finds_bad_and_that_never_arrive(tmp_path):
    sender, receiver = Port("A", 1), Port("S", 1)

    def said(*events: Event) -> set[str]:
        picture = Picture(jam().topology, "Fates", 4.0, 0, View(0, end=400, panels=("packets",)))
        for start, packet in ((0, "0/0"), (100, "0/1"), (200, "0/0")):
            picture.add(Event(start, sender, "send", "", packet, 0, until=start + 72))
        for event in events:
            picture.add(event)
        picture.save(tmp_path / "fates.svg")
        return {"found bad", "lost", "dropped unsent"} & set(words_of(tmp_path / "fates.svg"))

    hit = Event(10, sender, "error", "")
    assert said() == set()
    assert said(Event(80, receiver, "drop", "", "0/0", 0)) == {"found bad"}
    assert said(hit, Event(80, receiver, "drop", "", "0/0", 0)) == {"found bad"}
    assert said(hit, Event(9, receiver, "receive", "", "0/0", 0)) == set()
    # What is sent again is called the same, and arrives.
    assert said(hit, Event(209, receiver, "receive", "", "0/0", 0)) == {"lost"}
    assert said(Event(80, sender, "drop", "", "0/7", 0)) == {"dropped unsent"}


def test_deliveries_are_numbered_where_there_is_room(tmp_path):
    picture = Picture(jam().topology, "Numbers", 4.0, 0, View(0, end=1_000, panels=("packets",)))
    picture.add(Event(0, Port("S", 2), "send", "", "0/1", 0, until=1))
    for cycle, number in ((300, 5), (302, 6), (600, 7)):
        picture.add(Event(cycle, Port("B", 1), "deliver", "", f"0/{number}", 0))
    picture.save(tmp_path / "numbers.svg")
    assert {"5", "6", "7"} & set(words_of(tmp_path / "numbers.svg")) == {"6", "7"}


def test_vls_are_told_apart_where_a_run_has_several(tmp_path):
    picture = Picture(jam().topology, "VLs", 4.0, 0, View(0))
    assert "waits for credits" in drawn(tmp_path)
    for vl in (0, 3):
        picture.add(Event(10, Port("A", 1), "stall", "", f"{vl}/0", vl, credit_blocks=0))
        picture.add(Event(20, Port("A", 1), "send", "", f"{vl}/0", vl, credit_blocks=0, until=90))
        picture.add(Event(30, Port("S", 1), "receive", "", f"{vl}/0", vl, buffer_blocks=9, buffer_vl_blocks=4))
    picture.save(tmp_path / "vls.svg")
    shown = set(words_of(tmp_path / "vls.svg"))
    assert {"VL0 waits for credits", "VL3 waits for credits", "S[1], VL0 in use", "S[1], VL3 in use"} <= shown


def test_packets_of_transports_are_drawn_by_their_psn(tmp_path):
    picture = Picture(jam().topology, "Again", 4.0, 0, View(0, end=100, panels=("packets",)))
    for cycle, title in ((0, "PSN 41"), (40, "ACK PSN 42"), (80, "PSN 43 again")):
        picture.add(Event(cycle, Port("A", 1), "send", "", f"0/{title}", 0, until=cycle + 19, blocks=1))
    picture.save(tmp_path / "again.svg")
    assert [word for word in words_of(tmp_path / "again.svg") if word in ("41", "42", "43")] == ["41", "42", "43"]
