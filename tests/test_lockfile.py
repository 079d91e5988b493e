"""tokforge.lock: what was installed, to the byte."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from store_kit import FastDisk, MemoryHub, bundle_of, make_files
from tokforge_models.bundle import Source
from tokforge_models.errors import IntegrityError, StorageError, UnknownBundle
from tokforge_models.pulling.pull import pull
from tokforge_models.store.store import Store
from tokforge_models.upkeep.lockfile import as_locked, freeze, read_lock, write_lock

FILES = make_files()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home", FastDisk())


def test_what_is_locked_comes_back(store: Store, tmp_path: Path) -> None:
    bundle = bundle_of(FILES, pinned=False, revision=None)
    pull(bundle, store, fetchers=MemoryHub(dict(FILES), commit="c1").opener())
    frozen = freeze(store)
    write_lock(tmp_path / "tokforge.lock", frozen, store.disk)
    assert read_lock(tmp_path / "tokforge.lock") == frozen
    assert frozen["demo"].commit == "c1"
    assert {file.path: file.size for file in frozen["demo"].files} == {
        name: len(data) for name, data in FILES.items()
    }


def test_locked_bytes_come_from_the_locked_commit_of_the_same_source(store: Store) -> None:
    source = Source("hf", "memory/demo")
    bundle = bundle_of(FILES, pinned=False, revision=None, sources=(source,))
    pull(bundle, store, fetchers=MemoryHub(dict(FILES), commit="c1").opener())
    frozen = freeze(store)["demo"]
    newer = replace(bundle, revision="r9", sources=(Source("hf", "a/b"), source))
    locked = as_locked(newer, frozen)
    assert locked.revision == "c1"
    assert locked.sources == (Source("hf", "a/b"), Source("hf", "memory/demo", "c1"))
    assert all(file.sha256 for file in locked.files)


def test_other_bytes_than_locked_are_refused(store: Store, tmp_path: Path) -> None:
    bundle = bundle_of(FILES, pinned=False, revision=None)
    pull(bundle, store, fetchers=MemoryHub(dict(FILES), commit="c1").opener())
    locked = as_locked(bundle, freeze(store)["demo"])
    elsewhere = Store(tmp_path / "other", FastDisk())
    moved = {**FILES, "llm.mnn": bytes(len(FILES["llm.mnn"]))}
    with pytest.raises(IntegrityError, match="is not what it must be"):
        pull(locked, elsewhere, fetchers=MemoryHub(moved, commit="c2").opener())
    pulled = pull(locked, elsewhere, fetchers=MemoryHub(dict(FILES), commit="c2").opener())
    assert pulled.revision == "c1"


def test_only_what_is_ready_can_be_locked(store: Store) -> None:
    with pytest.raises(UnknownBundle, match="nothing is installed"):
        freeze(store)
    with pytest.raises(UnknownBundle, match="demo is not installed"):
        freeze(store, ["demo"])


GOOD = {
    "source": "url:x",
    "revision": "r1",
    "commit": None,
    "files": [{"path": "a", "role": "required", "size": 1, "sha256": "ab" * 32}],
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2, "bundles": {}}',
        '{"schema": 1.0, "bundles": {}}',
        '{"schema": true, "bundles": {}}',
        '{"schema": 1, "bundles": []}',
        '{"schema": 1, "bundles": {"a": 1}}',
        json.dumps({"schema": 1, "bundles": {"../x": GOOD}}),
        *(
            json.dumps({"schema": 1, "bundles": {"demo": {**GOOD, key: value}}})
            for key, value in (
                ("revision", "../x"),
                ("revision", None),
                ("commit", "../x"),
                ("commit", 1),
                ("source", 1),
                ("files", []),
                ("files", [{**GOOD["files"][0], "path": "../../x"}]),  # type: ignore[index,dict-item]
                ("files", [{**GOOD["files"][0], "size": -1}]),  # type: ignore[index,dict-item]
                ("files", [{**GOOD["files"][0], "sha256": "x"}]),  # type: ignore[index,dict-item]
                ("files", [{**GOOD["files"][0], "role": "x"}]),  # type: ignore[index,dict-item]
                ("files", [GOOD["files"][0], {**GOOD["files"][0], "path": "A"}]),  # type: ignore[index,dict-item]
            )
        ),
        '{"schema": 1, "schema": 1, "bundles": {}}',
        "[" * 100_000,
    ],
)
def test_a_lock_file_is_read_with_distrust(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokforge.lock"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(IntegrityError, match="is not a valid lock file"):
        read_lock(path)


def test_a_lock_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        read_lock(tmp_path / "tokforge.lock")
