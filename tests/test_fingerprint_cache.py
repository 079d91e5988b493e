"""The cache gives back what it was given, survives damage, and never stands in the way."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.errors import IntegrityError, Refused
from tokforge_models.model_files.fingerprint import Fingerprint
from tokforge_models.store import fingerprint_cache
from tokforge_models.store.fingerprint_cache import FingerprintCache, pack, unpack

WORDS = Fingerprint((b"a", b"", b"<end>"), frozenset({2}), frozenset({2}), "full", 1024)
ids = st.frozensets(st.integers(0, 2**21), max_size=5)
fingerprints = st.builds(
    Fingerprint,
    tokens=st.lists(st.binary(max_size=5), max_size=9).map(tuple),
    special_ids=ids,
    stop_ids=ids,
    attention=st.sampled_from(["full", "linear", "mixed", "unknown"]),
    context_length=st.none() | st.integers(1, 1 << 30),
)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were really read."""
    folders: list[Path] = []

    def read(folder: Path) -> Fingerprint:
        folders.append(folder)
        return WORDS

    monkeypatch.setattr(fingerprint_cache, "fingerprint_of", read)
    return folders


def test_a_bundle_is_read_once(tmp_path: Path, reads: list[Path]) -> None:
    bundle = tmp_path / "bundle"
    for _ in range(3):
        assert FingerprintCache(tmp_path / "cache").get(bundle, "abc") == WORDS
    assert reads == [bundle]
    assert FingerprintCache(tmp_path / "cache").get(bundle, "other") == WORDS
    assert reads == [bundle, bundle]


def test_a_damaged_entry_is_written_anew(tmp_path: Path, reads: list[Path]) -> None:
    cache = FingerprintCache(tmp_path)
    cache.get(tmp_path, "abc")
    [entry] = tmp_path.glob("*.fingerprint")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1])
    assert cache.get(tmp_path, "abc") == WORDS
    assert len(reads) == 2
    assert entry.read_bytes() == whole


def test_a_folder_that_cannot_be_made_costs_only_time(tmp_path: Path, reads: list[Path]) -> None:
    (tmp_path / "file").write_text("x")
    assert FingerprintCache(tmp_path / "file" / "cache").get(tmp_path, "abc") == WORDS


def test_a_key_is_a_name(tmp_path: Path, reads: list[Path]) -> None:
    with pytest.raises(Refused):
        FingerprintCache(tmp_path).get(tmp_path, "../abc")


def test_damage_of_the_bundle_is_told(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError) as caught:
        FingerprintCache(tmp_path / "cache").get(tmp_path / "none", "abc")
    assert "tokforge verify --full --repair" in caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path, reads: list[Path]) -> None:
    os.mkfifo(tmp_path / "abc.fingerprint")
    assert FingerprintCache(tmp_path).get(tmp_path, "abc") == WORDS
    assert (tmp_path / "abc.fingerprint").is_file()


def test_a_schema_is_a_whole_number() -> None:
    _, _, rest = pack(WORDS).partition(b"\n")
    for schema in (b"1.0", b"true", b"2"):
        other = rest.replace(b'"schema": 1', b'"schema": ' + schema)
        assert unpack(hashlib.sha256(other).hexdigest().encode() + b"\n" + other) is None


@given(fingerprints)
def test_round_trip(fingerprint: Fingerprint) -> None:
    assert unpack(pack(fingerprint)) == fingerprint


@given(fingerprints, st.data())
def test_no_damage_goes_unseen_or_raises(fingerprint: Fingerprint, data: st.DataObject) -> None:
    whole = pack(fingerprint)
    cut = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([whole[cut] ^ data.draw(st.integers(1, 255))])
    assert unpack(whole[:cut] + flipped + whole[cut + 1 :]) is None
    assert unpack(whole[:cut]) in (None, fingerprint)
    assert unpack(data.draw(st.binary(max_size=50))) is None
