"""pins.json remembers what was seen first, and only that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store_kit import FastDisk, bundle_of
from tokforge_models.errors import IntegrityError
from tokforge_models.store.pins import Pin, PinFile, pins_for

A, B = "a" * 64, "b" * 64


def test_what_is_seen_first_stays(tmp_path: Path) -> None:
    pins = PinFile(tmp_path / "home" / "pins.json", FastDisk())
    assert pins.seen("demo", "r1") == {}
    pins.remember("demo", "r1", {"x": Pin(1, A)})
    pins.remember("demo", "r1", {"x": Pin(2, B), "y": Pin(3, B)})
    pins.remember("demo", "r2", {"x": Pin(4, B)})
    again = PinFile(tmp_path / "home" / "pins.json", FastDisk())
    assert again.seen("demo", "r1") == {"x": Pin(1, A), "y": Pin(3, B)}
    assert again.seen("demo", "r2") == {"x": Pin(4, B)}
    assert again.seen("other", "r1") == {}


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    pins = PinFile(tmp_path / "pins.json", FastDisk())
    pins.remember("demo", "r1", {})
    assert not (tmp_path / "pins.json").exists()


def test_the_registry_comes_first() -> None:
    bundle = bundle_of({"x": b"1", "y": b"22"})
    seen = {"x": Pin(9, B), "z": Pin(3, B)}
    pins = pins_for(bundle, seen)
    assert pins["x"].size == 1
    assert pins["x"].sha256 == bundle.files[0].sha256
    assert pins["z"] == Pin(3, B)
    unpinned = bundle_of({"x": b"1"}, pinned=False)
    assert pins_for(unpinned, seen)["x"] == Pin(9, B)


@pytest.mark.parametrize(
    ("pin", "size", "sha256", "contradicts"),
    [
        (Pin(), 1, A, False),
        (Pin(1, A), 1, A, False),
        (Pin(1, A), 1, None, False),
        (Pin(1, A), None, A, False),
        (Pin(1, A), 2, None, True),
        (Pin(1, A), 1, B, True),
        (Pin(None, A), 7, B, True),
    ],
)
def test_contradictions(pin: Pin, size: int | None, sha256: str | None, contradicts: bool) -> None:
    assert pin.contradicts(size, sha256) is contradicts


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{}",
        '{"schema": 1}',
        {"schema": 2, "bundles": {}},
        {"schema": 1.0, "bundles": {}},
        {"schema": True, "bundles": {}},
        {"schema": 1, "bundles": {}, "more": 1},
        {"schema": 1, "bundles": []},
        {"schema": 1, "bundles": {"../x": {}}},
        {"schema": 1, "bundles": {"demo": {"..": {}}}},
        {"schema": 1, "bundles": {"demo": {"r1": {"../x": {"size": 1, "sha256": A}}}}},
        {"schema": 1, "bundles": {"demo": {"r1": {"x": {"size": -1, "sha256": A}}}}},
        {"schema": 1, "bundles": {"demo": {"r1": {"x": {"size": 1, "sha256": "A"}}}}},
        {"schema": 1, "bundles": {"demo": {"r1": {"x": {"size": 1, "sha256": A, "more": 1}}}}},
        {"schema": 1, "bundles": {"demo": {"r1": {"x": 5}}}},
    ],
)
def test_a_file_that_makes_no_sense_is_named_and_kept(tmp_path: Path, document: object) -> None:
    path = tmp_path / "pins.json"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text)
    pins = PinFile(path, FastDisk())
    with pytest.raises(IntegrityError, match=r"pins\.json is not valid"):
        pins.seen("demo", "r1")
    with pytest.raises(IntegrityError):
        pins.remember("demo", "r1", {"x": Pin(1, A)})
    assert path.read_text() == text
