"""A folder of files becomes a bundle, whole or not at all."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from store_kit import (
    SEGMENT,
    FastDisk,
    FaultyDisk,
    bundle_of,
    interrupted,
    make_files,
    no_space,
    write_files,
)
from tokforge_models.bundle import BundleFile, FileRole, Role, State
from tokforge_models.errors import IntegrityError, StorageError, UsageError
from tokforge_models.pulling.pull import pull
from tokforge_models.store.store import Store
from tokforge_models.upkeep.importing import import_bundle
from tokforge_models.upkeep.integrity import verify

FILES = make_files()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home", FastDisk(), SEGMENT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "mine", {**FILES, "README.md": b"x", ".git/config": b"y"})


def test_an_unknown_bundle_is_named_by_its_content(store: Store, folder: Path) -> None:
    first = import_bundle(store, folder, "mine", role=Role.DRAFT)
    assert first.state is State.READY
    assert first.revision.startswith("content-")
    assert {path.name for path in first.path.iterdir()} == {*FILES, "README.md", ".tokforge"}
    manifest = store.manifest("mine", first.revision)
    assert manifest.role is Role.DRAFT
    roles = {entry.path: entry.role for entry in manifest.files}
    assert roles.pop("README.md") is FileRole.REFERENCE
    assert set(roles.values()) == {FileRole.REQUIRED}
    again = import_bundle(store, folder, "mine")
    assert (again.revision, again.bytes_fetched) == (first.revision, 0)
    (folder / "llm.mnn").write_bytes(b"new")
    other = import_bundle(store, folder, "mine")
    assert other.revision != first.revision
    assert store.status("mine").revision == other.revision
    assert (first.path / "llm.mnn").read_bytes() == FILES["llm.mnn"]


def test_files_are_copied_never_linked(store: Store, folder: Path) -> None:
    path = import_bundle(store, folder, "mine").path
    for name in FILES:
        assert (path / name).stat().st_ino != (folder / name).stat().st_ino
        assert (path / name).stat().st_nlink == 1


def test_every_missing_file_is_named_at_once(store: Store, folder: Path) -> None:
    (folder / "llm_config.json").write_text('{"is_visual": true, "is_audio": true}')
    (folder / "llm.mnn.weight").unlink()
    (folder / "tokenizer.txt").rename(folder / "elsewhere")
    (folder / "tokenizer.txt").symlink_to(folder / "elsewhere")
    with pytest.raises(IntegrityError, match="is not a whole bundle") as caught:
        import_bundle(store, folder, "mine")
    assert set(caught.value.expected.split(", ")) == {
        "llm.mnn.weight",
        "tokenizer.txt",
        "embeddings_bf16.bin",
        "visual.mnn",
        "visual.mnn.weight",
        "audio.mnn",
    }
    assert "tokenizer.txt is a symbolic link" in caught.value.got
    assert store.status("mine").state is State.ABSENT


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (b"{", "config.json is not valid JSON"),
        (b'{"llm_model": "../llm.mnn"}', "climbs out of its folder"),
        (b'{"llm_weight": "/llm.mnn.weight"}', "is absolute"),
        (b'{"base_dir": "/"}', "another folder"),
    ],
)
def test_a_configuration_that_cannot_be_followed(
    store: Store, folder: Path, config: bytes, words: str
) -> None:
    (folder / "config.json").write_bytes(config)
    with pytest.raises(IntegrityError, match=words):
        import_bundle(store, folder, "mine")


@pytest.mark.parametrize("name", ["llm.mnn", "llm.mnn.weight", "llm_config.json", "config.json"])
def test_an_empty_file_is_no_file(store: Store, folder: Path, name: str) -> None:
    (folder / "config.json").write_text('{"tokenizer_file": "tokenizer.mtok"}')
    (folder / "tokenizer.txt").rename(folder / "tokenizer.mtok")
    (folder / name).write_bytes(b"")
    with pytest.raises(IntegrityError, match="is not a whole bundle") as caught:
        import_bundle(store, folder, "mine")
    assert caught.value.expected == name
    assert caught.value.got == f"{name} is empty"
    assert caught.value.hint
    assert store.status("mine").state is State.ABSENT


def test_names_that_collide_are_refused_with_advice(store: Store, folder: Path) -> None:
    write_files(folder, {"README.md": b"x", "readme.MD": b"y"})
    if len(list(folder.glob("[Rr]*.[Mm][Dd]"))) == 1:
        pytest.skip("this file system takes both names for one")
    with pytest.raises(IntegrityError, match="cannot live in one folder") as caught:
        import_bundle(store, folder, "mine")
    assert "rename or remove one of them" in caught.value.hint


def test_a_known_bundle_must_match_its_pins(store: Store, folder: Path) -> None:
    bundle = bundle_of(FILES, sources=())
    pulled = import_bundle(store, folder, "demo", bundle=bundle)
    assert pulled.revision == "r1"
    assert pull(bundle, store).bytes_fetched == 0
    (folder / "llm.mnn").write_bytes(b"other")
    (folder / "tokenizer.txt").write_bytes(b"430 4\n")
    with pytest.raises(IntegrityError) as caught:
        import_bundle(store, folder, "demo", bundle=bundle)
    assert "llm.mnn: expected 1500 bytes, the source has 5" in caught.value.message
    assert "tokenizer.txt: expected sha256" in caught.value.message
    assert store.status("demo").state is State.READY


def test_a_known_bundle_without_pins_is_not_called_by_its_revision(
    store: Store, folder: Path
) -> None:
    """Nothing proves that these are the published files."""
    bundle = bundle_of(FILES, pinned=False)
    pulled = import_bundle(store, folder, "demo", bundle=bundle)
    assert pulled.revision.startswith("content-")
    assert pull(bundle, store).revision == pulled.revision


def test_a_known_bundle_needs_what_its_configuration_and_the_registry_ask(
    store: Store, folder: Path
) -> None:
    bundle = bundle_of(FILES, pinned=False)
    more = (
        BundleFile("config_cpu.json"),
        BundleFile("llm.mnn.json", FileRole.REFERENCE),
    )
    bundle = replace(bundle, files=(*bundle.files, *more))
    with pytest.raises(IntegrityError) as caught:
        import_bundle(store, folder, "demo", bundle=bundle)
    assert caught.value.expected == "config_cpu.json"


def test_what_is_not_a_folder(store: Store, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UsageError, match="is not there"):
        import_bundle(store, tmp_path / "missing", "mine")
    with pytest.raises(UsageError, match="~nosuchuser"):
        import_bundle(store, Path("~nosuchuser/x"), "mine")
    with pytest.raises(UsageError, match="cannot be the id"):
        import_bundle(store, folder, "../x")
    assert not store.home.exists()


@pytest.mark.parametrize("fail", [no_space, interrupted])
def test_a_fault_at_any_step_is_mended_by_the_next_import(tmp_path: Path, fail: object) -> None:
    assert callable(fail)
    folder = write_files(tmp_path / "mine", make_files(2300))
    for at in range(1, 500):
        home = tmp_path / str(at)
        try:
            import_bundle(Store(home, FaultyDisk(at, fail, lasting=True), SEGMENT), folder, "mine")
        except (StorageError, KeyboardInterrupt):
            pass
        else:
            break
        store = Store(home, FastDisk(), SEGMENT)
        assert store.status("mine").state in {State.ABSENT, State.PARTIAL, State.READY}
        assert import_bundle(store, folder, "mine").state is State.READY
        (report,) = verify(store, bundles={}, full=True)
        assert report.ok
        shutil.rmtree(home)
    else:
        raise AssertionError("the import never got through")
    assert at > 60


def test_the_folder_itself_may_be_named_by_a_link(
    store: Store, tmp_path: Path, folder: Path
) -> None:
    (tmp_path / "name").symlink_to(folder, target_is_directory=True)
    os.chdir(tmp_path)
    assert import_bundle(store, Path("name"), "mine").state is State.READY
