"""Prune removes what was asked for, and never what is in use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store_kit import SEGMENT, FastDisk, MemoryHub, bundle_of, make_files
from tokforge_models.bundle import State
from tokforge_models.errors import FetchError, Refused
from tokforge_models.files.digests import pair_key
from tokforge_models.pulling.pull import pull
from tokforge_models.store.store import Store
from tokforge_models.upkeep.pruning import Kind, find_litter, stale_keys, sweep

FILES = make_files()
NEWER = make_files(seed=2)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A bundle with an old revision, one in use, one half fetched; and another half fetched."""
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    for revision in ("r1", "r2"):
        pull(bundle_of(FILES, revision=revision), store, fetchers=MemoryHub(dict(FILES)).opener())
    for id, revision in (("demo", "r3"), ("other", "r1")):
        begun = bundle_of(NEWER, id=id, revision=revision)
        with pytest.raises(FetchError):
            pull(begun, store, fetchers=MemoryHub(dict(NEWER), cut_after=4000).opener())
    return store


def kinds(store: Store, *wanted: Kind) -> set[tuple[str, str, Kind]]:
    return {(one.id, one.revision, one.kind) for one in find_litter(store, wanted or Kind)}


OLD = ("demo", "r1", Kind.UNUSED)
HALF = {("demo", "r3", Kind.PARTIAL), ("other", "r1", Kind.PARTIAL)}


def test_a_look_removes_nothing(store: Store) -> None:
    before = sorted(store.home.rglob("*"))
    assert kinds(store) == {OLD} | HALF
    assert kinds(store, Kind.PARTIAL) == HALF
    assert kinds(store, Kind.UNUSED) == {OLD}
    assert sorted(store.home.rglob("*")) == before


@pytest.mark.parametrize("kind", Kind)
def test_only_what_was_asked_for_goes(store: Store, kind: Kind) -> None:
    rest = kinds(store) - kinds(store, kind)
    swept = sweep(store, find_litter(store, [kind]), command="tokforge prune")
    assert all(one.bytes > 0 for one in swept.removed)
    assert not swept.kept
    assert kinds(store) == rest
    assert store.status("demo").state is State.READY
    assert store.current("demo") == "r2"


def test_what_changed_lately_is_kept(store: Store) -> None:
    assert find_litter(store, Kind, older_than_seconds=3600) == ()
    folder = store.revision_folder("demo", "r1")
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (1, 1))
    (old,) = find_litter(store, Kind, older_than_seconds=3600)
    assert (old.id, old.revision) == ("demo", "r1")


def test_what_is_in_use_is_not_touched_and_holds_up_nothing_else(store: Store) -> None:
    """A model may have begun to run before another revision came into use, but never a half one."""
    litter = find_litter(store, Kind)
    with store.claim("demo", "tokforge run demo"):
        swept = sweep(store, litter, command="tokforge prune")
    ((kept, error),) = swept.kept
    assert (kept.id, kept.revision, kept.kind) == OLD
    assert isinstance(error, Refused)
    assert "tokforge run demo" in error.message
    assert {(one.id, one.revision, one.kind) for one in swept.removed} == HALF
    assert kinds(store) == {OLD}


def test_what_became_needed_meanwhile_is_kept(store: Store) -> None:
    litter = find_litter(store, [Kind.UNUSED])
    store.use("demo", "r1")
    assert sweep(store, litter, command="tokforge prune").removed == ()
    assert store.status("demo").state is State.READY


def test_partials_beside_a_ready_revision(store: Store) -> None:
    part = store.revision_folder("demo", "r2") / ".tokforge" / "0000.part"
    part.write_bytes(b"x" * 100)
    assert ("demo", "r2", Kind.PARTIAL) in kinds(store)
    sweep(store, find_litter(store, [Kind.PARTIAL]), command="tokforge prune")
    assert not part.exists()
    assert store.status("demo").state is State.READY


def test_what_is_known_of_contents_that_are_gone_is_stale(store: Store) -> None:
    ours = store.manifest("demo", "r1").content
    assert ours == store.ready("demo").content
    gone = "ab" * 32
    names = {
        f"fingerprints/{ours}.fingerprint": False,
        f"fingerprints/{gone}.fingerprint": True,
        f"learned/{pair_key(ours)}.json": False,
        f"learned/{pair_key(ours, ours)}.json": False,
        f"learned/{pair_key(ours, gone)}.json": True,
        f"learned/{pair_key(gone)}.json": True,
        "measurements/x.json": False,
    }
    for name in names:
        (store.home / name).parent.mkdir(exist_ok=True)
        (store.home / name).write_bytes(b"{}")
    stale = {path.relative_to(store.home).as_posix() for path in stale_keys(store)}
    assert stale == {name for name, is_stale in names.items() if is_stale}
    assert stale_keys(store, older_than_seconds=3600) == ()


def test_a_folder_of_keys_that_is_a_link_is_not_followed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.json").write_bytes(b"{}")
    (store.home / "learned").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert stale_keys(store) == ()
