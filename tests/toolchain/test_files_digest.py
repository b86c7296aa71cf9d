"""The digest of files: of paths and contents, and of nothing else."""

from toolchain.files_digest import files_digest


def of(folder, **contents):
    folder.mkdir(parents=True)
    for name, text in contents.items():
        (folder / name).write_text(text)
    return files_digest(folder.iterdir(), folder)


def test_paths_and_contents_count_and_where_they_are_does_not(tmp_path):
    same = of(tmp_path / "here", a="1", b="23")
    assert of(tmp_path / "there/below", b="23", a="1") == same
    others = [of(tmp_path / "1", a="12", b="3"), of(tmp_path / "2", a="1"), of(tmp_path / "3", a="1", c="23")]
    assert len({same, *others}) == 4


def test_order_does_not_count(tmp_path):
    of(tmp_path / "some", a="1", b="2")
    files = [tmp_path / "some/a", tmp_path / "some/b"]
    assert files_digest(files, tmp_path) == files_digest(files[::-1], tmp_path)
