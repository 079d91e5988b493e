"""What leaves the store is exactly what a phone needs, checked once more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from store_kit import (
    SEGMENT,
    FastDisk,
    FaultyDisk,
    MemoryHub,
    bundle_of,
    interrupted,
    make_files,
    no_space,
    write_files,
)
from tokforge_models.bundle import BundleFile, FileRole
from tokforge_models.errors import (
    IntegrityError,
    Refused,
    StorageError,
    UnknownBundle,
    UsageError,
)
from tokforge_models.progress import Event
from tokforge_models.pulling.pull import pull
from tokforge_models.store.store import Store
from tokforge_models.upkeep.exporting import export_bundle
from tokforge_models.upkeep.importing import import_bundle

FILES = {**make_files(), "config_cpu.json": b"{}"}
REFERENCE = {"llm.mnn.json": b"{}", "runtime_config.json": b"{}"}


BUNDLE = bundle_of(FILES)
BUNDLE = replace(
    BUNDLE,
    files=(*BUNDLE.files, *(BundleFile(name, FileRole.REFERENCE) for name in REFERENCE)),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one ready bundle that has its reference files, too."""
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    pull(BUNDLE, store, all_files=True, fetchers=MemoryHub({**FILES, **REFERENCE}).opener())
    return store


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_exactly_the_required_files(store: Store, tmp_path: Path) -> None:
    done = export_bundle(store, "demo", tmp_path / "out" / "there", bundle=BUNDLE)
    assert names(done.path) == set(done.files) == set(FILES)
    assert done.bytes == sum(map(len, FILES.values()))
    for name, data in FILES.items():
        assert (done.path / name).read_bytes() == data
    unknown = export_bundle(store, "demo", tmp_path / "other")
    assert names(unknown.path) == set(FILES)


def test_an_import_exports_what_its_configuration_asks_for(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "mine", {**FILES, "README.md": b"x"})
    import_bundle(store, folder, "mine")
    done = export_bundle(store, "mine", tmp_path / "out")
    assert names(done.path) == set(make_files())


def test_again_copies_nothing_and_mends_what_is_missing(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_bundle(store, "demo", out, bundle=BUNDLE)
    before = {path.name: path.stat().st_ino for path in out.iterdir()}
    (out / "llm.mnn").unlink()
    export_bundle(store, "demo", out, bundle=BUNDLE)
    after = {path.name: path.stat().st_ino for path in out.iterdir()}
    assert names(out) == set(FILES)
    assert {name for name in after if after[name] == before[name]} >= set(FILES) - {"llm.mnn"}


@pytest.mark.parametrize(
    "stranger",
    [{"notes.txt": b"x"}, {"llm.mnn": b"other"}, {"sub/x": b"y"}, {"llm.mnn.json": b"{}"}],
)
def test_a_folder_with_anything_else_is_refused_and_left_alone(
    store: Store, tmp_path: Path, stranger: dict[str, bytes]
) -> None:
    out = write_files(tmp_path / "out", stranger)
    with pytest.raises(Refused, match="is not empty") as caught:
        export_bundle(store, "demo", out, bundle=BUNDLE)
    assert next(iter(stranger)) in caught.value.got
    assert names(out) == set(stranger)


def test_a_link_in_the_folder_is_not_written_through(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "precious").write_bytes(b"mine")
    (out / "llm.mnn").symlink_to(tmp_path / "precious")
    with pytest.raises(Refused, match="is not empty"):
        export_bundle(store, "demo", out, bundle=BUNDLE)
    assert (tmp_path / "precious").read_bytes() == b"mine"


def test_never_into_the_store_nor_onto_a_file(store: Store, tmp_path: Path) -> None:
    for place in (store.home / "out", store.folder("demo")):
        with pytest.raises(Refused, match="lies in the store"):
            export_bundle(store, "demo", place, bundle=BUNDLE)
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refused, match="is not a folder"):
        export_bundle(store, "demo", tmp_path / "file", bundle=BUNDLE)


def test_a_file_that_rotted_is_not_exported(store: Store, tmp_path: Path) -> None:
    path = store.ready("demo").path / "llm.mnn"
    path.write_bytes(bytes(len(FILES["llm.mnn"])))
    with pytest.raises(IntegrityError, match="is not what was verified") as caught:
        export_bundle(store, "demo", tmp_path / "out", bundle=BUNDLE)
    assert "--repair demo" in caught.value.hint
    assert "llm.mnn" not in names(tmp_path / "out")


def test_what_is_not_ready_is_not_exported(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownBundle):
        export_bundle(store, "other", tmp_path / "out")
    (store.ready("demo").path / "llm.mnn").unlink()
    with pytest.raises(IntegrityError, match="demo is damaged"):
        export_bundle(store, "demo", tmp_path / "out")
    more = replace(BUNDLE, files=(*BUNDLE.files, BundleFile("new.bin")))
    pull(BUNDLE, store, fetchers=MemoryHub({**FILES, **REFERENCE}).opener())
    with pytest.raises(IntegrityError, match="lacks files that the registry requires"):
        export_bundle(store, "demo", tmp_path / "out", bundle=more)


@pytest.mark.parametrize("fail", [no_space, interrupted])
def test_a_fault_at_any_step_is_mended_by_the_next_export(
    store: Store, tmp_path: Path, fail: object
) -> None:
    assert callable(fail)
    for at in range(1, 200):
        out = tmp_path / f"out{at}"
        faulty = Store(store.home, FaultyDisk(at, fail, lasting=True), SEGMENT)
        try:
            export_bundle(faulty, "demo", out, bundle=BUNDLE)
        except (StorageError, KeyboardInterrupt):
            pass
        else:
            break
        if out.exists():
            for name in names(out) & set(FILES):
                assert (out / name).read_bytes() == FILES[name]
        export_bundle(store, "demo", out, bundle=BUNDLE)
        assert names(out) == set(FILES)
    else:
        raise AssertionError("the export never got through")
    assert at > 20


def test_of_two_exports_to_one_folder_one_is_refused(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    second: list[Refused] = []

    def meanwhile(event: Event) -> None:
        if not second:
            with pytest.raises(Refused, match="another command is exporting to") as caught:
                export_bundle(store, "demo", out, bundle=BUNDLE)
            second.append(caught.value)

    export_bundle(store, "demo", out, bundle=BUNDLE, progress=meanwhile)
    assert second
    assert names(out) == set(FILES)


class SpoiledDisk(FastDisk):
    """A disk that keeps other bytes than it was given."""

    def _append(self, path: Path, data: bytes) -> None:
        super()._append(path, bytes(len(data)))


def test_what_was_written_is_hashed_not_what_was_read(store: Store, tmp_path: Path) -> None:
    spoiled = Store(store.home, SpoiledDisk(), SEGMENT)
    with pytest.raises(IntegrityError, match="is not what was verified"):
        export_bundle(spoiled, "demo", tmp_path / "out", bundle=BUNDLE)
    assert names(tmp_path / "out") == set()


def test_what_killed_exports_left_is_swept(store: Store, tmp_path: Path) -> None:
    left = {"llm.mnn.0123456789ab.part": b"x", ".tokforge-export.lock": b""}
    out = write_files(tmp_path / "out", left)
    export_bundle(store, "demo", out, bundle=BUNDLE)
    assert names(out) == set(FILES)
    mine = write_files(tmp_path / "mine", {"llm.mnn.part": b"mine"})
    with pytest.raises(Refused, match="is not empty"):
        export_bundle(store, "demo", mine, bundle=BUNDLE)


def test_a_folder_where_a_file_belongs_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out" / "llm.mnn").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"llm\.mnn is in the way") as caught:
        export_bundle(store, "demo", tmp_path / "out", bundle=BUNDLE)
    assert "move it away" in caught.value.hint


def test_the_home_of_nobody(store: Store) -> None:
    with pytest.raises(UsageError, match="~nosuchuser"):
        export_bundle(store, "demo", Path("~nosuchuser/out"), bundle=BUNDLE)
