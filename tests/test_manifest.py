"""A manifest is believed only if it is exactly one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.bundle import FileRole, Role, State
from tokforge_models.errors import IntegrityError
from tokforge_models.store.manifest import Entry, Manifest, Stamp, from_bytes, to_bytes
from tokforge_models.store.store import Store

SHA = "ab" * 32
GOOD = Manifest(
    "demo",
    Role.DRAFT,
    "package:demo",
    "r1",
    "r1",
    1000,
    (
        Entry("config.json", FileRole.REQUIRED, 0, SHA, (), None),
        Entry("sub/llm.mnn", FileRole.REFERENCE, 1001, SHA, (SHA, SHA), Stamp(1001, -5, 1 << 63)),
    ),
)


def test_what_is_written_is_read() -> None:
    assert from_bytes(to_bytes(GOOD), id="demo", revision="r1") == GOOD


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(to_bytes(GOOD)), **changes}).encode()


def changed_file(**changes: Any) -> bytes:
    document = json.loads(to_bytes(GOOD))
    document["files"][1].update(changes)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema":1,"schema":1}',
        b'{"schema": ' + b"9" * 10_000 + b"}",
        changed(schema=2),
        changed(schema=True),
        changed(schema=1.0),
        changed(more=1),
        changed(id="other"),
        changed(id="../x"),
        changed(id=None),
        changed(role="king"),
        changed(role=[]),
        changed(source=None),
        changed(revision="r2"),
        changed(revision=".."),
        changed(commit=5),
        changed(segment_bytes=0),
        changed(segment_bytes=-1),
        changed(segment_bytes=1.5),
        changed(segment_bytes=10**30),
        changed(files={}),
        changed(files=[]),
        changed(files=[1]),
        changed_file(path="../../etc/passwd"),
        changed_file(path="/etc/passwd"),
        changed_file(path="C:\\x"),
        changed_file(path=".tokforge/journal"),
        changed_file(path="CONFIG.json"),
        changed_file(path="config.json"),
        changed_file(path="config.json/x"),
        changed_file(path=3),
        changed_file(path="\ud800"),
        changed_file(size=-1),
        changed_file(size=True),
        changed_file(size=1.0),
        changed_file(size=10**40),
        changed_file(size="1001"),
        changed_file(sha256="AB" * 32),
        changed_file(sha256=None),
        changed_file(segments=[SHA]),
        changed_file(segments=[SHA, SHA, SHA]),
        changed_file(segments=[SHA, 5]),
        changed_file(segments=None),
        changed_file(stamp=[1, 2]),
        changed_file(stamp=[1, 2, "3"]),
        changed_file(stamp=[1, 2, True]),
        changed_file(stamp={}),
        changed_file(role="chat"),
        changed_file(more=1),
    ],
)
def test_a_hostile_manifest_is_damage_not_a_crash(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(IntegrityError):
        from_bytes(data, id="demo", revision="r1")
    folder = tmp_path / "bundles" / "demo"
    (folder / "r1" / ".tokforge").mkdir(parents=True)
    (folder / "r1" / ".tokforge" / "manifest.json").write_bytes(data)
    (folder / "current").write_text("r1\n")
    status = Store(tmp_path).status("demo")
    assert status.state is State.DAMAGED
    assert status.problems


def _flip(at: int, by: int) -> bytes:
    data = bytearray(to_bytes(GOOD))
    data[at % len(data)] ^= by
    return bytes(data)


@given(st.binary(max_size=200) | st.builds(_flip, st.integers(0), st.integers(1, 255)))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    try:
        manifest = from_bytes(data, id="demo", revision="r1")
    except IntegrityError:
        return
    assert manifest.id == "demo"
    assert all(".." not in entry.path for entry in manifest.files)


def test_content_counts_required_files_only_and_not_where_they_came_from() -> None:
    from dataclasses import replace

    other = replace(GOOD, id="other", source="path:/x", files=GOOD.files[:1])
    assert other.content == GOOD.content
    bigger = replace(GOOD, files=(replace(GOOD.files[0], size=1, segments=(SHA,)), GOOD.files[1]))
    assert bigger.content != GOOD.content
