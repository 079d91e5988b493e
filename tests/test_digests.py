"""Digests of wholes and parts agree with hashlib, however bytes are cut."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.files.digests import (
    content_digest,
    cut,
    digests_of,
    hash_file,
    hash_segments,
    is_sha256,
    segment_count,
    segment_span,
)


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 50))
def test_segments_cover_the_stream_whatever_its_chunks(chunks: list[bytes], length: int) -> None:
    data = b"".join(chunks)
    pieces = list(cut(iter(chunks), length))
    assert b"".join(pieces) == data
    assert len(pieces) == segment_count(len(data), length)
    for index, piece in enumerate(pieces):
        start, stop = segment_span(index, len(data), length)
        assert piece == data[start:stop]
    digests = digests_of(iter(chunks), length)
    assert digests.size == len(data)
    assert digests.sha256 == hashlib.sha256(data).hexdigest()
    assert digests.segments == tuple(hashlib.sha256(piece).hexdigest() for piece in pieces)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, (1 << 20) + 1, 3 << 20])
def test_files(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    path = tmp_path / "file"
    path.write_bytes(data[:size])
    seen: list[int] = []
    assert hash_file(path, seen.append) == hashlib.sha256(data[:size]).hexdigest()
    assert sum(seen) == size
    digests = hash_segments(path, 1 << 19)
    assert digests.sha256 == hash_file(path)
    assert len(digests.segments) == segment_count(size, 1 << 19)


def test_content_does_not_depend_on_order_but_on_everything_else() -> None:
    files = {"a": (1, "x"), "b": (2, "y")}
    assert content_digest(files) == content_digest(dict(reversed(files.items())))
    for other in ({"a": (1, "x")}, {"a": (1, "x"), "c": (2, "y")}, {"a": (2, "x"), "b": (2, "y")}):
        assert content_digest(other) != content_digest(files)


@pytest.mark.parametrize("text", [None, 5, "", "A" * 64, "a" * 63, "a" * 64 + "\n", "g" * 64])
def test_what_is_no_digest(text: object) -> None:
    assert not is_sha256(text)
    assert is_sha256("a" * 64)
