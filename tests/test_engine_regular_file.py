from __future__ import annotations

import os
import sys

import pytest

from tokforge_engine.regular_file import read_head, read_regular, read_tail


def test_reads_what_it_is_asked_for(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(file)
    assert read_regular(file, 5) == read_regular(tmp_path / "link", 5) == b"12345"
    assert (read_head(file, 2), read_head(file, 9)) == (b"12", b"12345")
    assert (read_tail(file, 2), read_tail(file, 9)) == (b"45", b"12345")


def test_a_larger_file(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(tmp_path / "file", 4)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
@pytest.mark.parametrize("read", [read_head, read_regular, read_tail])
def test_no_pipe_is_waited_for_and_no_device_read(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", os.devnull):
        with pytest.raises(OSError, match="not a regular file"):
            read(path, 5)
    with pytest.raises(OSError):
        read(tmp_path, 5)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing", 5)
