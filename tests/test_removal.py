"""rm frees what it can, refuses what is used, and can be interrupted."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from store_kit import (
    SEGMENT,
    FastDisk,
    FaultyDisk,
    MemoryHub,
    bundle_of,
    forbidden,
    interrupted,
    make_files,
)
from tokforge_models.bundle import State
from tokforge_models.errors import FetchError, Refused, StorageError, UnknownBundle
from tokforge_models.pulling.pull import pull
from tokforge_models.store.store import Store
from tokforge_models.upkeep.removal import bytes_on_disk, remove

FILES = make_files(2300)
BUNDLE = bundle_of(FILES)


def ready(home: Path) -> Store:
    store = Store(home, FastDisk(), SEGMENT)
    pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES)).opener())
    return store


def test_a_ready_bundle_goes_with_all_its_revisions(tmp_path: Path) -> None:
    store = ready(tmp_path)
    newer = make_files(seed=2)
    pull(bundle_of(newer, revision="r2"), store, fetchers=MemoryHub(newer).opener())
    removed = remove(store, "demo")
    assert removed.id == "demo"
    assert removed.bytes_freed >= sum(map(len, FILES.values())) + sum(map(len, newer.values()))
    assert store.status("demo").state is State.ABSENT
    assert not store.folder("demo").exists()
    assert store.pins.seen("demo", "r1") == {}
    with pytest.raises(UnknownBundle, match="demo is not in the store"):
        remove(store, "demo")


def test_a_partial_bundle_goes_too(tmp_path: Path) -> None:
    store = Store(tmp_path, FastDisk(), SEGMENT)
    with pytest.raises(FetchError):
        pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES), cut_after=2000).opener())
    assert remove(store, "demo").bytes_freed > 0
    assert store.statuses() == ()


def test_bytes_that_someone_else_links_are_not_freed(tmp_path: Path) -> None:
    store = ready(tmp_path / "home")
    path = store.ready("demo").path / "llm.mnn.weight"
    (tmp_path / "mine").hardlink_to(path)
    freed = remove(store, "demo").bytes_freed
    assert (tmp_path / "mine").read_bytes() == FILES["llm.mnn.weight"]
    assert freed < remove(ready(tmp_path / "home"), "demo").bytes_freed


def test_a_link_in_place_of_the_bundle_goes_alone(tmp_path: Path) -> None:
    store = ready(tmp_path / "home")
    shutil.move(store.folder("demo"), tmp_path / "elsewhere")
    store.folder("demo").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    remove(store, "demo")
    assert not store.folder("demo").is_symlink()
    assert (tmp_path / "elsewhere" / "r1" / "llm.mnn").exists()


CHILD = """
    import sys
    from pathlib import Path
    from tokforge_models.store.store import Store
    with Store(Path(sys.argv[1])).claim("demo", "tokforge run demo"):
        print("runs", flush=True)
        sys.stdin.read()
"""


def test_a_bundle_that_a_running_command_uses_is_refused_with_its_name(tmp_path: Path) -> None:
    store = ready(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        with pytest.raises(Refused) as caught:
            remove(store, "demo")
        assert f"in use by `tokforge run demo` (process {process.pid})" in caught.value.message
        assert store.status("demo").state is State.READY
        process.kill()
        process.wait()
        remove(store, "demo")
    assert store.status("demo").state is State.ABSENT


def test_a_bundle_that_is_being_pulled_is_refused(tmp_path: Path) -> None:
    store = ready(tmp_path)
    with (
        store.lock("demo", "tokforge pull demo", 0),
        pytest.raises(Refused, match="worked on by `tokforge pull demo`"),
    ):
        remove(store, "demo", timeout=0)
    assert store.status("demo").state is State.READY


@pytest.mark.parametrize("fail", [forbidden, interrupted])
def test_an_interrupted_removal_can_be_finished_or_undone(tmp_path: Path, fail: object) -> None:
    assert callable(fail)
    for at in range(1, 100):
        home = tmp_path / str(at)
        ready(home)
        try:
            remove(Store(home, FaultyDisk(at, fail, lasting=True), SEGMENT), "demo")
        except (StorageError, KeyboardInterrupt):
            pass
        else:
            break
        store = Store(home, FastDisk(), SEGMENT)
        assert store.status("demo").state in {State.READY, State.PARTIAL, State.ABSENT}
        shutil.copytree(home, tmp_path / "copy")
        pull(
            BUNDLE,
            Store(tmp_path / "copy", FastDisk(), SEGMENT),
            fetchers=MemoryHub(dict(FILES)).opener(),
        )
        shutil.rmtree(tmp_path / "copy")
        if store.folder("demo").exists():
            remove(store, "demo")
        assert store.status("demo").state is State.ABSENT
        shutil.rmtree(home)
    else:
        raise AssertionError("the removal never got through")
    assert at > 10


def test_what_vanishes_while_it_is_weighed_frees_nothing(tmp_path: Path) -> None:
    assert bytes_on_disk(tmp_path / "gone") == 0
