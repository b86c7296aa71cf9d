"""The version of the sources: another one after any change of what is simulated, and no other."""

from ironband.campaign import sources


def test_it_is_another_one_when_a_file_of_a_room_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_HOUSE", tmp_path)
    digest = sources.sources_digest.__wrapped__
    for room in ("rtl", "docs"):
        (tmp_path / room / "__pycache__").mkdir(parents=True)
    found = [digest()]
    for file, text in (("rtl/a.py", "x"), ("rtl/a.py", "y"), ("rtl/b.v", "y")):
        (tmp_path / file).write_text(text)
        found.append(digest())
    assert len(set(found)) == 4
    for file in ("docs/a.md", "rtl/__pycache__/a.pyc"):
        (tmp_path / file).write_text("z")
        assert digest() == found[-1]
