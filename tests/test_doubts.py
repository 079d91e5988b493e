"""Whoever knows something about a bundle is asked before its manifest is believed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from store_kit import SEGMENT, FastDisk, MemoryHub, bundle_of, make_files, sha256, write_files
from tokforge_models.bundle import FileRole
from tokforge_models.pulling.pull import pull
from tokforge_models.store.doubts import Kind, doubts_about, speaks_of
from tokforge_models.store.manifest import Entry, Manifest, Stamp
from tokforge_models.store.pins import Pin
from tokforge_models.store.store import Store

FILES = make_files()
PINS = {name: Pin(len(data), sha256(data)) for name, data in FILES.items()}
BUNDLE = bundle_of(FILES)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES)).opener())
    return store


@pytest.fixture
def folder(store: Store) -> Path:
    return store.ready("demo").path


@pytest.fixture
def manifest(store: Store) -> Manifest:
    return store.manifest("demo", "r1")


def changed(manifest: Manifest, path: str, change: Callable[[Entry], Entry | None]) -> Manifest:
    files = [change(file) if file.path == path else file for file in manifest.files]
    return replace(manifest, files=tuple(file for file in files if file))


def with_content(manifest: Manifest, folder: Path, path: str, data: bytes) -> Manifest:
    """The manifest of someone who changed a file and knows how to hide it."""
    (folder / path).write_bytes(data)
    stamp = Stamp.of(folder / path)
    entry = Entry(path, FileRole.REQUIRED, len(data), sha256(data), (sha256(data),), stamp)
    return changed(manifest, path, lambda _: entry)


def test_a_whole_bundle_raises_none(manifest: Manifest, folder: Path) -> None:
    assert doubts_about(manifest, folder, PINS, BUNDLE) == ()
    assert doubts_about(manifest, folder, {}) == ()


@pytest.mark.parametrize("path", list(FILES))
@pytest.mark.parametrize(
    "forge", [lambda _: None, lambda entry: replace(entry, role=FileRole.REFERENCE)]
)
def test_a_manifest_that_leaves_a_needed_file_out(
    manifest: Manifest, folder: Path, path: str, forge: Callable[[Entry], Entry | None]
) -> None:
    (doubt,) = doubts_about(changed(manifest, path, forge), folder, PINS)
    assert (doubt.path, doubt.kind, doubt.pin) == (path, Kind.ABSENT, PINS[path])
    assert doubt.why == f"{path} is needed, and nobody verified it"


def test_the_registry_may_require_more_than_the_configuration(
    manifest: Manifest, folder: Path
) -> None:
    more = bundle_of({**FILES, "config_cpu.json": b"{}"})
    (doubt,) = doubts_about(manifest, folder, {}, more)
    assert (doubt.path, doubt.kind) == ("config_cpu.json", Kind.ABSENT)
    assert doubt.pin == Pin(2, sha256(b"{}"))
    other = replace(more, revision="r2")
    assert not speaks_of(other, manifest)
    assert doubts_about(manifest, folder, {}, other) == ()


def test_a_file_that_mnn_would_open_because_it_is_there(manifest: Manifest, folder: Path) -> None:
    write_files(folder, {"context.json": b"{}", "notes.txt": b"mine"})
    (doubt,) = doubts_about(manifest, folder, PINS, BUNDLE)
    assert (doubt.path, doubt.kind) == ("context.json", Kind.STRAY)
    assert str(folder / "context.json") in doubt.why
    (doubt,) = doubts_about(manifest, folder, {"context.json": Pin(2, sha256(b"{}"))})
    assert doubt.kind is Kind.ABSENT


def test_a_digest_that_others_have_differently(manifest: Manifest, folder: Path) -> None:
    forged = changed(manifest, "llm.mnn", lambda entry: replace(entry, sha256="0" * 64))
    said = replace(PINS["llm.mnn"], by="pins.json", remembered=True)
    (doubt,) = doubts_about(forged, folder, {"llm.mnn": said})
    assert (doubt.kind, doubt.why) == (Kind.WRONG, "llm.mnn is not what pins.json says")
    (doubt,) = doubts_about(forged, folder, {"llm.mnn": said}, BUNDLE)
    assert doubt.why == "llm.mnn is not what the registry says"


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (b"{", "config.json is not valid JSON"),
        (b"[]", "config.json is not a JSON object"),
        (b'{"base_dir": "/etc"}', "config.json sets base_dir, which sends MNN to another folder"),
        (b"", "config.json is empty"),
    ],
)
def test_a_configuration_that_cannot_be_followed(
    manifest: Manifest, folder: Path, config: bytes, why: str
) -> None:
    forged = with_content(manifest, folder, "config.json", config)
    assert doubts_about(forged, folder, {})[0].why.startswith(why)


def test_an_empty_file_is_none(manifest: Manifest, folder: Path) -> None:
    forged = with_content(manifest, folder, "llm.mnn.weight", b"")
    assert [doubt.why for doubt in doubts_about(forged, folder, {})] == ["llm.mnn.weight is empty"]


def test_of_a_spoiled_configuration_nothing_is_learned(manifest: Manifest, folder: Path) -> None:
    """Else a repair would look for files that no source has."""
    other = b'{"llm_weight": "other.weight"}'
    forged = with_content(manifest, folder, "config.json", other)
    assert {doubt.path for doubt in doubts_about(forged, folder, PINS)} == {"config.json"}
    assert doubts_about(manifest, folder, PINS) == ()
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert doubts_about(manifest, folder, PINS) == ()
