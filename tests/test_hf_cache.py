"""Files that Hugging Face's own tools have are adopted, never trusted, never written to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from store_kit import SEGMENT, FastDisk, MemoryHub, bundle_of, make_files, sha256
from tokforge_models.bundle import Source, State
from tokforge_models.files.digests import hash_as_blob
from tokforge_models.pulling.plan import Verb
from tokforge_models.pulling.pull import preview, pull
from tokforge_models.sources.hf_cache import HuggingFaceCache
from tokforge_models.sources.network import Network
from tokforge_models.sources.source import openers
from tokforge_models.store.store import Store

FILES = make_files(weight_bytes=2300)
COMMIT = "ab" * 20


def blob_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache as `hf download` leaves it: small files by git's digest, large ones by sha256."""
    root = tmp_path / "hub"
    repo = root / "models--maker--demo"
    (repo / "blobs").mkdir(parents=True)
    snapshot = repo / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name, data in FILES.items():
        blob = repo / "blobs" / (sha256(data) if len(data) > 1000 else blob_sha1(data))
        blob.write_bytes(data)
        (snapshot / name).symlink_to(Path("../../blobs") / blob.name)
    with mock.patch("huggingface_hub.constants.HF_HUB_CACHE", str(root)):
        yield root


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home", FastDisk(), SEGMENT)


def weight_blob(cache: Path) -> Path:
    return cache / "models--maker--demo" / "blobs" / sha256(FILES["llm.mnn.weight"])


def test_a_cached_file_is_linked_instead_of_fetched(cache: Path, store: Store) -> None:
    hub = MemoryHub(dict(FILES))
    pulled = pull(bundle_of(FILES), store, fetchers=hub.opener())
    assert {path for path, _, _ in hub.reads} == {"config.json", "llm_config.json", "tokenizer.txt"}
    weight = pulled.path / "llm.mnn.weight"
    assert weight.samefile(weight_blob(cache))
    assert not weight.is_symlink()


def test_where_no_link_can_be_made_it_is_copied(cache: Path, tmp_path: Path) -> None:
    class NoLinks(FastDisk):
        def _link(self, existing: Path, path: Path) -> None:
            raise OSError("cross-device link")

    hub = MemoryHub(dict(FILES))
    store = Store(tmp_path / "home", NoLinks(), SEGMENT)
    pulled = pull(bundle_of(FILES), store, fetchers=hub.opener())
    weight = pulled.path / "llm.mnn.weight"
    assert weight.read_bytes() == FILES["llm.mnn.weight"]
    assert not weight.samefile(weight_blob(cache))
    assert "llm.mnn.weight" not in {path for path, _, _ in hub.reads}


def test_a_damaged_cached_file_is_left_alone_and_fetched(cache: Path, store: Store) -> None:
    damaged = bytes(len(FILES["llm.mnn.weight"]))
    weight_blob(cache).write_bytes(damaged)
    hub = MemoryHub(dict(FILES))
    pulled = pull(bundle_of(FILES), store, fetchers=hub.opener())
    assert (pulled.path / "llm.mnn.weight").read_bytes() == FILES["llm.mnn.weight"]
    assert weight_blob(cache).read_bytes() == damaged
    assert ("llm.mnn.weight", 0, 2300) in hub.reads


def test_a_dry_run_says_so(cache: Path, store: Store) -> None:
    plan = preview(bundle_of(FILES), store, fetchers=MemoryHub(dict(FILES)).opener())
    verbs = {action.wanted.path: action.verb for action in plan.actions}
    assert verbs["llm.mnn.weight"] is Verb.ADOPT
    assert verbs["config.json"] is Verb.FETCH
    assert plan.disk_bytes == plan.missing_bytes


def test_a_whole_snapshot_makes_a_bundle_ready_offline(cache: Path, store: Store) -> None:
    """Even where nobody published digests: the blobs are named by them."""
    source = Source("hf", "maker/demo", COMMIT)
    bundle = bundle_of(FILES, pinned=False, revision=COMMIT, sources=(source,))
    pulled = pull(bundle, store, fetchers=openers(Network(offline=True)))
    assert pulled.state is State.READY
    assert pulled.bytes_fetched == 0
    for name, data in FILES.items():
        assert (pulled.path / name).read_bytes() == data


def test_what_is_looked_for(cache: Path) -> None:
    found = HuggingFaceCache()
    weight = FILES["llm.mnn.weight"]
    assert found.find(sha256(weight), len(weight)) == weight_blob(cache).resolve()
    assert found.find(sha256(weight), 1) is None
    assert found.find("*", len(weight)) is None
    assert found.find("../x", 1) is None
    assert found.find(None, 1) is None
    assert {file.path for file in found.snapshot("maker/demo", COMMIT)} == set(FILES)
    assert found.snapshot("maker/other", COMMIT) == ()
    assert found.snapshot("maker/demo", f"../snapshots/{COMMIT}") == ()
    assert found.snapshot("../maker/demo", COMMIT) == ()
    assert HuggingFaceCache(cache / "missing").find(sha256(weight), len(weight)) is None


def test_a_circle_of_links_is_no_file(tmp_path: Path) -> None:
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    digest = sha256(b"x")
    (blobs / digest).symlink_to(blobs / digest)
    assert HuggingFaceCache(tmp_path).find(digest, 1) is None


def test_gits_digest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello\n")
    assert hash_as_blob(tmp_path / "x") == "ce013625030ba8dba906f756967f9e9ca394464a"
