"""One module writes, safely, and says in plain words why it could not."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from store_kit import STEPS, FaultyDisk, forbidden, interrupted, no_space
from tokforge_models.errors import StorageError
from tokforge_models.files.disk import Disk, is_plain_file, is_plain_folder, open_plain, read_small


def test_write_is_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for at in range(1, 10):
        path.write_bytes(b"old content")
        disk = FaultyDisk(at, interrupted)
        try:
            disk.write(path, b"new")
        except KeyboardInterrupt:
            assert path.read_bytes() in {b"old content", b"new"}
        else:
            break
    assert at > 3
    assert path.read_bytes() == b"new"


def test_parts_of_files(tmp_path: Path) -> None:
    disk, path = Disk(), tmp_path / "a" / "b" / "file"
    disk.make_folder(path.parent)
    disk.preallocate(path, 10)
    assert path.read_bytes() == bytes(10)
    disk.write_at(path, 3, b"xyz")
    disk.preallocate(path, 6)
    disk.append(path, b"!")
    disk.sync(path)
    assert path.read_bytes() == b"\0\0\0xyz!"
    disk.publish(path, tmp_path / "final")
    assert (tmp_path / "final").read_bytes() == b"\0\0\0xyz!"
    disk.remove(tmp_path / "final")
    disk.remove(tmp_path / "final")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert disk.free(tmp_path / "not" / "there" / "yet") > 0


def test_a_removed_tree_takes_links_but_not_what_they_lead_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "file").write_text("x")
    (tree / "link").symlink_to(outside, target_is_directory=True)
    (tree / "sub" / "link").symlink_to(outside / "precious")
    Disk().remove_tree(tree)
    assert not tree.exists()
    assert (outside / "precious").read_text() == "x"
    (tmp_path / "tree").symlink_to(outside, target_is_directory=True)
    Disk().remove_tree(tree)
    assert not tree.is_symlink()
    assert (outside / "precious").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links are not told there")
def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"mine")
    for name in ("link", "file.tmp"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    disk, link = Disk(), tmp_path / "link"
    for write in (
        lambda: disk.write(tmp_path / "file", b"x"),
        lambda: disk.append(link, b"x"),
        lambda: disk.write_at(link, 0, b"x"),
        lambda: disk.preallocate(link, 0),
    ):
        with pytest.raises(StorageError, match="symbolic links"):
            write()
    disk.write(link, b"new")
    assert not link.is_symlink()
    assert (tmp_path / "precious").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("fail", "words", "hint"),
    [
        (no_space, "No space left on device", "free some space"),
        (forbidden, "Permission denied", "allow this user"),
    ],
)
def test_a_refusal_says_what_where_and_what_next(
    tmp_path: Path, fail: object, words: str, hint: str
) -> None:
    assert callable(fail)
    with pytest.raises(StorageError) as caught:
        FaultyDisk(1, fail).write(tmp_path / "file", b"x")
    assert words in caught.value.message
    assert str(tmp_path / "file") in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.exit_code == 6


def test_every_step_can_fail(tmp_path: Path) -> None:
    assert [name for name in vars(Disk) if name.startswith("_") and "__" not in name] != []
    assert {name for name in vars(Disk) if name[0] == "_" and name[1] != "_"} == set(STEPS)


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert is_plain_file(tmp_path / "file")
    assert not is_plain_file(tmp_path / "link")
    assert not is_plain_file(tmp_path)
    assert is_plain_folder(tmp_path)
    assert not is_plain_folder(tmp_path / "missing")
    assert read_small(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_small(tmp_path / "file", 4)
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "missing")
    for path in (tmp_path / "link", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            open_plain(path)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_plain(tmp_path / "pipe")
    disk = Disk()
    for write in (disk.append, partial(disk.write_at, offset=0)):
        with pytest.raises(StorageError):
            write(tmp_path / "pipe", data=b"x")
    os.mkfifo(tmp_path / "file.tmp")
    with pytest.raises(StorageError):
        disk.write(tmp_path / "file", b"x")


def test_a_pipe_that_came_after_the_look_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("tokforge_models.files.disk.is_plain_file", lambda _: True)
    with pytest.raises(OSError, match="not a regular file"):
        open_plain(tmp_path / "pipe")


def test_a_folder_in_place_of_a_file_is_to_be_moved_away(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    for change in (Disk().remove, partial(Disk().write, data=b"x")):
        with pytest.raises(StorageError) as caught:
            change(tmp_path / "file")
        assert f"move {tmp_path / 'file'} away" in caught.value.hint
