"""Whatever a server does: no wrong byte is published, no right one is lost, the command ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import CASES, FILES, REPO, SEGMENT, Case, pull
from hub import running
from store_kit import FastDisk
from tokforge_models.bundle import State
from tokforge_models.store.store import Store


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_ends_as_the_table_says(tmp_path: Path, case: Case) -> None:
    with running() as hub:
        hub.commit(REPO, case.files)
        case.order(hub)
        ended = pull(tmp_path, hub, case)
        assert (ended.code, case.says in ended.says) == (case.code, True), ended
        assert ended.document["bundles"][0]["hosts"], "a host was contacted"
        published(tmp_path, ready=case.code == 0)
        for token in hub.tokens_seen("cdn"):
            raise AssertionError(f"the files' host saw {token}")


def published(home: Path, *, ready: bool) -> None:
    """Every file that has its final name is right; a bundle is ready or not, as told."""
    store = Store(home / "store", FastDisk(), SEGMENT)
    assert (store.status("demo").state is State.READY) == ready
    found = {
        path.relative_to(revision).as_posix(): path.read_bytes()
        for revision in (home / "store" / "bundles" / "demo").glob("*")
        if revision.is_dir()
        for path in revision.rglob("*")
        if path.is_file() and ".tokforge" not in path.parts
    }
    for name, data in found.items():
        assert data == FILES[name], f"{name} is wrong"
    if ready:
        assert found.keys() >= FILES.keys()
    assert not (home / "x").exists()
    assert not (home.parent / "x").exists()


@pytest.mark.parametrize("case", [case for case in CASES if case.code], ids=lambda case: case.name)
def test_after_a_fault_the_next_pull_completes(tmp_path: Path, case: Case) -> None:
    """Against a hub that is well again, with the right token; what was safe is not fetched."""
    with running() as hub:
        hub.commit(REPO, case.files)
        case.order(hub)
        pull(tmp_path, hub, case)
    with running() as hub:
        hub.commit(REPO, case.files)
        store = Store(tmp_path / "store", FastDisk(), SEGMENT)
        safe = store.status("demo").partial_bytes
        ended = pull(tmp_path, hub, case)
        assert ended.code == 0, ended
        published(tmp_path, ready=True)
        one = ended.document["bundles"][0]
        if case.source.startswith("hf"):
            assert one["bytes_reused"] >= safe
