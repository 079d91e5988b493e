"""States are read from disk, whatever lies there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from store_kit import (
    SEGMENT,
    FastDisk,
    FaultyDisk,
    MemoryHub,
    bundle_of,
    forbidden,
    make_files,
)
from tokforge_models.bundle import Role, Settings, State
from tokforge_models.errors import (
    FetchError,
    IntegrityError,
    MayOnlyRead,
    UnknownBundle,
    UsageError,
)
from tokforge_models.pulling.pull import pull
from tokforge_models.store.manifest import Manifest, read_manifest
from tokforge_models.store.store import Store, default_home

FILES = make_files()
BUNDLE = bundle_of(FILES)
BYTES = sum(map(len, FILES.values()))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one ready bundle."""
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES)).opener())
    return store


def test_a_ready_bundle(store: Store) -> None:
    (status,) = store.statuses()
    folder = store.home / "bundles" / "demo" / "r1"
    assert status.state is State.READY
    assert (status.id, status.role, status.revision) == ("demo", Role.DRAFT, "r1")
    assert (status.bytes, status.partial_bytes, status.path) == (BYTES, 0, folder)
    assert status.problems == ()
    installed = store.installed()["demo"]
    assert installed.path == folder
    assert installed.settings == Settings(backend="cpu", threads=2)
    assert len(installed.content) == 64
    assert {path.name for path in folder.iterdir()} == {*FILES, ".tokforge"}
    assert (store.home / "bundles" / "demo" / "current").read_text() == "r1\n"


def test_statuses_hash_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_hashing(*_: object) -> None:
        raise AssertionError("hashed")

    monkeypatch.setattr("tokforge_models.files.digests.hash_file", no_hashing)
    monkeypatch.setattr("tokforge_models.files.digests.hashlib.sha256", no_hashing)
    assert store.statuses()[0].state is State.READY


def test_an_empty_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere")
    assert store.statuses() == ()
    assert store.installed() == {}
    assert store.status("demo").state is State.ABSENT
    with pytest.raises(UnknownBundle, match="demo is not installed") as caught:
        store.ready("demo")
    assert caught.value.hint == "tokforge pull demo"
    assert not (tmp_path / "nowhere").exists()


def _spoil_current(folder: Path) -> None:
    (folder / "current").write_text("../../etc")


def _empty_current(folder: Path) -> None:
    (folder / "current").write_text("")


def _binary_current(folder: Path) -> None:
    (folder / "current").write_bytes(b"\xff\x00")


def _huge_current(folder: Path) -> None:
    (folder / "current").write_text("a" * 100_000)


def _current_is_a_folder(folder: Path) -> None:
    (folder / "current").unlink()
    (folder / "current").mkdir()


def _current_is_a_dangling_link(folder: Path) -> None:
    (folder / "current").unlink()
    (folder / "current").symlink_to("nowhere")


def _other_current(folder: Path) -> None:
    (folder / "current").write_text("r2\n")


def _no_manifest(folder: Path) -> None:
    (folder / "r1" / ".tokforge" / "manifest.json").unlink()


def _linked_manifest(folder: Path) -> None:
    manifest = folder / "r1" / ".tokforge" / "manifest.json"
    manifest.rename(folder / "elsewhere")
    manifest.symlink_to(folder / "elsewhere")


def _linked_ours(folder: Path) -> None:
    (folder / "r1" / ".tokforge").rename(folder / "r1" / "ours")
    (folder / "r1" / ".tokforge").symlink_to("ours", target_is_directory=True)


def _linked_revision(folder: Path) -> None:
    (folder / "r1").rename(folder.parent.parent / "elsewhere")
    (folder / "r1").symlink_to(folder.parent.parent / "elsewhere", target_is_directory=True)


def _missing_file(folder: Path) -> None:
    (folder / "r1" / "llm.mnn").unlink()


def _short_file(folder: Path) -> None:
    with (folder / "r1" / "llm.mnn").open("r+b") as stream:
        stream.truncate(100)


def _linked_file(folder: Path) -> None:
    (folder / "r1" / "llm.mnn").rename(folder / "elsewhere")
    (folder / "r1" / "llm.mnn").symlink_to(folder / "elsewhere")


def _folder_for_file(folder: Path) -> None:
    (folder / "r1" / "llm.mnn").unlink()
    (folder / "r1" / "llm.mnn").mkdir()


def _copied_manifest(folder: Path) -> None:
    manifest = folder / "r1" / ".tokforge" / "manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "id": "other"}))


DAMAGES = [
    _spoil_current,
    _empty_current,
    _binary_current,
    _huge_current,
    _current_is_a_folder,
    _current_is_a_dangling_link,
    _other_current,
    _no_manifest,
    _linked_manifest,
    _linked_ours,
    _linked_revision,
    _missing_file,
    _short_file,
    _linked_file,
    _folder_for_file,
    _copied_manifest,
]


@pytest.mark.parametrize("spoil", DAMAGES)
def test_damage_is_seen_and_named(store: Store, spoil: Callable[[Path], None]) -> None:
    spoil(store.home / "bundles" / "demo")
    status = store.status("demo")
    assert status.state is State.DAMAGED
    assert status.problems
    assert store.installed() == {}
    with pytest.raises(IntegrityError, match="demo is damaged") as caught:
        store.ready("demo")
    assert caught.value.hint == "tokforge pull demo"


@pytest.mark.parametrize(
    "spoil",
    [
        spoil
        for spoil in DAMAGES
        if spoil not in {_current_is_a_folder, _linked_ours, _linked_revision, _folder_for_file}
    ],
)
def test_the_next_pull_mends_it(store: Store, spoil: Callable[[Path], None]) -> None:
    spoil(store.home / "bundles" / "demo")
    hub = MemoryHub(dict(FILES))
    pull(BUNDLE, store, fetchers=hub.opener())
    assert store.status("demo").state is State.READY
    assert hub.given <= len(FILES["llm.mnn"])
    assert store.statuses()[0].problems == ()
    for name, data in FILES.items():
        path = store.ready("demo").path / name
        assert path.read_bytes() == data
        assert not path.is_symlink()


def test_a_touched_file_is_still_ready_but_told(store: Store) -> None:
    path = store.ready("demo").path / "llm.mnn"
    path.write_bytes(path.read_bytes())
    status = store.status("demo")
    assert status.state is State.READY
    assert status.problems == ("llm.mnn was touched since it was verified",)


def test_a_partial_bundle_tells_what_is_safe(tmp_path: Path) -> None:
    store = Store(tmp_path, FastDisk(), SEGMENT)
    before = len(FILES["config.json"]) + len(FILES["llm_config.json"])
    with pytest.raises(FetchError):
        pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES), cut_after=before + 1200).opener())
    (status,) = store.statuses()
    assert status.state is State.PARTIAL
    assert (status.role, status.revision) == (Role.DRAFT, "r1")
    assert (status.bytes, status.partial_bytes) == (0, before + SEGMENT)
    with pytest.raises(IntegrityError, match="demo is partial"):
        store.ready("demo")


def test_a_bundle_that_is_a_file_or_a_link(store: Store) -> None:
    bundles = store.home / "bundles"
    shutil.move(bundles / "demo", bundles.parent / "elsewhere")
    (bundles / "demo").symlink_to(bundles.parent / "elsewhere", target_is_directory=True)
    (bundles / "file").write_text("x")
    (bundles / "NOT AN ID").mkdir()
    (bundles / "empty").mkdir()
    assert [(status.id, status.state) for status in store.statuses()] == [
        ("demo", State.DAMAGED),
        ("file", State.DAMAGED),
    ]


def test_a_new_revision_is_used_only_when_it_is_whole(store: Store) -> None:
    newer = make_files(seed=2)
    with pytest.raises(FetchError):
        pull(
            bundle_of(newer, revision="r2"),
            store,
            fetchers=MemoryHub(newer, cut_after=3000).opener(),
        )
    status = store.status("demo")
    assert (status.state, status.revision) == (State.READY, "r1")
    assert status.partial_bytes > 0
    pull(bundle_of(newer, revision="r2"), store, fetchers=MemoryHub(newer).opener())
    status = store.status("demo")
    assert (status.state, status.revision, status.partial_bytes) == (State.READY, "r2", 0)


@pytest.mark.parametrize("id", ["", "..", "../x", "A", "a/b", "con", "/etc"])
def test_what_cannot_be_an_id_never_becomes_a_path(store: Store, id: str) -> None:
    for ask in (store.folder, store.status, store.ready, store.locks):
        with pytest.raises(UsageError, match="cannot be the id of a bundle"):
            ask(id)
    with pytest.raises(UsageError, match="cannot be the name of a revision"):
        store.revision_folder("demo", "../x")


def test_a_claim_needs_a_ready_bundle(store: Store) -> None:
    with store.claim("demo", "tokforge run demo") as installed:
        assert installed == store.installed()["demo"]
    with pytest.raises(UnknownBundle), store.claim("other", "tokforge run other"):
        raise AssertionError("claimed what is not there")


def test_where_the_store_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKFORGE_HOME", str(tmp_path / "x"))
    assert default_home() == tmp_path / "x"
    assert Store().home == tmp_path / "x"
    monkeypatch.setenv("TOKFORGE_HOME", "")
    assert default_home().name == "tokforge"


def test_the_home_of_nobody() -> None:
    with pytest.raises(UsageError, match="~nosuchuser"):
        Store(Path("~nosuchuser/store"))


@pytest.mark.parametrize("may_write", [False, True])
def test_a_store_that_may_only_be_read_is_used_without_a_claim(
    store: Store, monkeypatch: pytest.MonkeyPatch, may_write: bool
) -> None:
    pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES)).opener())
    shutil.rmtree(store.home / "locks")
    store.disk = FaultyDisk(1, forbidden, lasting=True)
    monkeypatch.setattr("os.access", lambda *_: may_write)
    if may_write:
        with pytest.raises(MayOnlyRead, match="cannot make the folder"):
            store.claim("demo", "tokforge run demo").__enter__()
    else:
        with store.claim("demo", "tokforge run demo") as installed:
            assert installed.id == "demo"


@pytest.fixture
def three(tmp_path: Path) -> Store:
    """A store with three ready bundles."""
    store = Store(tmp_path / "three", FastDisk(), SEGMENT)
    for id in ("one", "two", "zwei"):
        pull(bundle_of(FILES, id=id), store, fetchers=MemoryHub(dict(FILES)).opener())
    return store


def test_what_is_installed_is_read_once(three: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count(path: Path, *, id: str, revision: str) -> Manifest:
        read.append(id)
        return read_manifest(path, id=id, revision=revision)

    monkeypatch.setattr("tokforge_models.store.store.read_manifest", count)
    installed = three.installed()
    assert read == ["one", "two", "zwei"]
    assert installed == {id: three.ready(id) for id in read[:3]}


@pytest.mark.parametrize("victim", ["one", "two"])
def test_what_is_removed_meanwhile_is_not_installed(
    three: Store, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """The first one while it is looked at, the second before that."""

    def last_look(path: Path, *, id: str, revision: str) -> Manifest:
        manifest = read_manifest(path, id=id, revision=revision)
        if id == "one":
            three.disk.remove_tree(three.folder(victim))
        return manifest

    monkeypatch.setattr("tokforge_models.store.store.read_manifest", last_look)
    assert set(three.installed()) == {"one", "two", "zwei"} - {victim}
