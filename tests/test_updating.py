"""An update fetches what changed, and leaves the old revision until the new one is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_kit import FastDisk, MemoryHub, bundle_of, make_files, sha256, write_files
from tokforge_models.bundle import Source, State
from tokforge_models.errors import FetchError, UnknownBundle
from tokforge_models.pulling.pull import pull
from tokforge_models.sources.source import FETCHERS, Listing, RemoteFile
from tokforge_models.store.store import Store
from tokforge_models.upkeep.importing import import_bundle
from tokforge_models.upkeep.updating import followed, update, why_it_stays

OLD = make_files()
NEW = {**OLD, "llm.mnn": make_files(seed=2)["llm.mnn"]}


class Telling(MemoryHub):
    """A hub that states digests, as real ones do."""

    def listing(self) -> Listing:
        files = (RemoteFile(n, len(d), sha256=sha256(d)) for n, d in self.files.items())
        return Listing(tuple(files), commit=self.commit)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "home", FastDisk())
    pull(bundle_of(OLD), store, fetchers=Telling(dict(OLD), commit="c1").opener())
    return store


def test_only_what_changed_is_fetched(store: Store) -> None:
    hub = Telling(dict(NEW), commit="c2")
    updated = update(bundle_of(OLD), store, fetchers=hub.opener())
    assert updated.changed
    assert (updated.before, updated.pulled.revision) == ("r1", "c2")
    assert {path for path, _, _ in hub.reads} == {"llm.mnn"}
    assert updated.pulled.bytes_fetched == len(NEW["llm.mnn"])
    for revision, files in (("r1", OLD), ("c2", NEW)):
        folder = store.revision_folder("demo", revision)
        for name, data in files.items():
            assert (folder / name).read_bytes() == data
    assert store.pins.seen("demo", "c2")["llm.mnn"].sha256 == sha256(NEW["llm.mnn"])


def test_the_old_revision_stays_in_use_where_the_new_one_does_not_come(store: Store) -> None:
    with pytest.raises(FetchError, match="ended early"):
        update(
            bundle_of(OLD), store, fetchers=Telling(dict(NEW), commit="c2", cut_after=700).opener()
        )
    assert store.status("demo").state is State.READY
    assert store.current("demo") == "r1"
    assert update(bundle_of(OLD), store, fetchers=Telling(dict(NEW), commit="c2").opener()).changed


def test_nothing_new_fetches_nothing(store: Store) -> None:
    update(bundle_of(OLD), store, fetchers=Telling(dict(NEW), commit="c2").opener())
    hub = Telling(dict(NEW), commit="c2")
    again = update(bundle_of(OLD), store, fetchers=hub.opener())
    assert not again.changed
    assert hub.given == 0


def test_what_is_not_installed_is_not_updated(tmp_path: Path) -> None:
    with pytest.raises(UnknownBundle, match="is not installed"):
        update(bundle_of(OLD), Store(tmp_path / "other", FastDisk()), fetchers=FETCHERS)


def test_only_one_network_source_is_followed() -> None:
    sources = (Source("path", "x"), Source("hf", "a/b", "c1"), Source("modelscope", "a/b"))
    bundle = followed(bundle_of(OLD, sources=sources))
    assert bundle.sources == (Source("hf", "a/b"),)
    assert bundle.revision is None
    assert not any(file.sha256 or file.size for file in bundle.files)
    local = bundle_of(OLD, sources=(Source("package", "x"),))
    assert followed(local) == local


def test_what_stays_where_everything_is_updated(tmp_path: Path, store: Store) -> None:
    assert why_it_stays(bundle_of(OLD), store) is None
    assert why_it_stays(bundle_of(OLD, sources=()), store) == "it has no public address"
    repository = bundle_of(OLD, pinned=False, sources=(Source("hf", "a/b", "r1"),))
    assert "it came from url:memory" in (why_it_stays(repository, store) or "")
    update(repository, store, fetchers=Telling(dict(OLD), commit="c2").opener())
    assert why_it_stays(repository, store) is None
    folder = write_files(tmp_path / "mine", NEW)
    import_bundle(store, folder, "demo", bundle=repository)
    assert f"it came from path:{folder}" in (why_it_stays(repository, store) or "")
