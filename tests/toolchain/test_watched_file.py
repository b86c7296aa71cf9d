"""What has become of a file since it was read."""

import os
from pathlib import Path

from toolchain.watched_file import WatchedFile


def test_each_change_is_told_once(tmp_path):
    path = tmp_path / "some.net"
    path.write_text("one")
    watched = WatchedFile(path)
    assert watched.data == b"one"
    assert watched.change() == ""
    path.write_text("another")
    assert [watched.change(), watched.change()] == ["has changed", ""]
    path.write_text("a third")
    assert watched.change() == ""
    path.unlink()
    assert [watched.change(), watched.change()] == ["is gone", ""]
    path.write_text("one")
    assert [watched.change(), watched.change()] == ["is as it was again", ""]


def test_what_is_written_again_as_it_was_has_not_changed(tmp_path):
    path = tmp_path / "some.net"
    path.write_text("one")
    watched = WatchedFile(path)
    other = tmp_path / "other"
    other.write_text("one")
    os.utime(other, ns=(1, 1))
    other.replace(path)
    assert watched.change() == ""


def test_what_can_be_read_only_once_is_not_looked_at_again():
    reading, writing = os.pipe()
    os.write(writing, b"one")
    os.close(writing)
    watched = WatchedFile(Path(f"/dev/fd/{reading}"))
    os.close(reading)
    assert watched.data == b"one"
    assert watched.change() == ""
