"""Verify believes a stamp, hashes what it does not believe, and mends what is wrong."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
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
    no_space,
    segments_read,
    sha256,
    write_files,
)
from tokforge_models.bundle import Bundle, State
from tokforge_models.errors import IntegrityError
from tokforge_models.progress import Event, Phase
from tokforge_models.pulling.pull import pull
from tokforge_models.store.pins import Pin
from tokforge_models.store.store import Store
from tokforge_models.upkeep.importing import import_bundle
from tokforge_models.upkeep.integrity import BundleReport, FileReport, verify

FILES = make_files()
BUNDLE = bundle_of(FILES)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one ready bundle."""
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    pull(BUNDLE, store, fetchers=MemoryHub(dict(FILES)).opener())
    return store


def check(
    store: Store,
    *,
    bundle: Bundle | None = BUNDLE,
    full: bool = False,
    events: list[Event] | None = None,
) -> BundleReport:
    (report,) = verify(
        store,
        ["demo"],
        bundles={"demo": bundle} if bundle else {},
        full=full,
        progress=(events if events is not None else []).append,
    )
    return report


def repair(store: Store, hub: MemoryHub, bundle: Bundle | None = BUNDLE) -> BundleReport:
    (report,) = verify(
        store,
        ["demo"],
        bundles={"demo": bundle} if bundle else {},
        repair=True,
        fetchers=hub.opener(),
    )
    return report


def file_of(report: BundleReport, path: str) -> FileReport:
    return next(file for file in report.files if file.path == path)


def rot(path: Path, at: int) -> None:
    """Change one byte and nothing that a stamp sees."""
    seen = path.stat()
    with path.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def test_a_good_bundle_is_believed_by_its_stamps(store: Store) -> None:
    events: list[Event] = []
    report = check(store, events=events)
    assert report.ok
    assert report.state is State.READY
    assert [file.path for file in report.files] == list(FILES)
    for file in report.files:
        digest = sha256(FILES[file.path])
        assert file == FileReport(file.path, True, digest, digest, len(FILES[file.path]))
    assert events == []


def test_full_hashes_everything_in_threads(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    events: list[Event] = []
    threads = set()

    def tell(event: Event) -> None:
        threads.add(threading.current_thread().name)
        events.append(event)

    (report,) = verify(store, bundles={"demo": BUNDLE}, full=True, progress=tell)
    assert report.ok
    assert {event.phase for event in events} == {Phase.HASHING}
    assert events[-1].done == events[-1].total == sum(map(len, FILES.values()))
    assert threading.current_thread().name not in threads


def test_an_interrupted_check_ends_and_changes_nothing(store: Store) -> None:
    manifest = store.manifest("demo", "r1")

    def interrupt(event: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(store, bundles={"demo": BUNDLE}, full=True, progress=interrupt)
    assert store.manifest("demo", "r1") == manifest


def test_a_touched_file_is_hashed_again_and_stamped_anew(store: Store) -> None:
    path = store.ready("demo").path / "llm.mnn"
    path.write_bytes(path.read_bytes())
    assert store.status("demo").problems
    events: list[Event] = []
    assert check(store, events=events).ok
    assert {event.path for event in events} == {"llm.mnn"}
    assert not store.status("demo").problems


def test_rot_that_no_stamp_sees_is_found_by_full_and_stays_found(store: Store) -> None:
    path = store.ready("demo").path / "llm.mnn.weight"
    rot(path, 2100)
    assert check(store).ok
    report = check(store, full=True)
    assert not report.ok
    assert report.state is State.DAMAGED
    bad = file_of(report, "llm.mnn.weight")
    assert bad.expected == sha256(FILES["llm.mnn.weight"])
    assert bad.actual == sha256(path.read_bytes())
    assert [file.path for file in report.files if not file.ok] == ["llm.mnn.weight"]
    assert store.status("demo").state is State.DAMAGED
    assert not check(store).ok
    rot(path, 2100)
    assert check(store).ok
    assert store.status("demo").state is State.READY


def test_missing_short_and_unreadable_files(store: Store) -> None:
    folder = store.ready("demo").path
    (folder / "llm.mnn").unlink()
    (folder / "tokenizer.txt").write_bytes(b"430")
    (folder / "llm_config.json").unlink()
    (folder / "llm_config.json").symlink_to(folder / "config.json")
    report = check(store)
    assert report.state is State.DAMAGED
    assert file_of(report, "llm.mnn").actual is None
    assert file_of(report, "tokenizer.txt").actual == sha256(b"430")
    assert file_of(report, "llm_config.json").actual is None
    assert sum(file.ok for file in report.files) == 2


def test_a_repair_fetches_only_the_damaged_segments(store: Store) -> None:
    folder = store.ready("demo").path
    rot(folder / "llm.mnn.weight", 2100)
    rot(folder / "llm.mnn.weight", 4299)
    rot(folder / "llm.mnn", 0)
    assert not check(store, full=True).ok
    hub = MemoryHub(dict(FILES))
    assert repair(store, hub).ok
    assert segments_read(hub) == {("llm.mnn.weight", 2), ("llm.mnn.weight", 4), ("llm.mnn", 0)}
    assert check(store, full=True).ok


@pytest.mark.parametrize(("length", "missing"), [(0, 5), (2500, 3), (4299, 1), (9000, 1)])
def test_a_repair_of_a_file_of_another_length(store: Store, length: int, missing: int) -> None:
    path = store.ready("demo").path / "llm.mnn.weight"
    path.write_bytes(FILES["llm.mnn.weight"].ljust(9000, b"x")[:length])
    hub = MemoryHub(dict(FILES))
    assert repair(store, hub).ok
    assert len(segments_read(hub)) == missing
    assert path.read_bytes() == FILES["llm.mnn.weight"]


def test_a_repair_never_writes_into_a_file_that_is_linked_elsewhere(
    store: Store, tmp_path: Path
) -> None:
    path = store.ready("demo").path / "llm.mnn.weight"
    (tmp_path / "elsewhere").hardlink_to(path)
    rot(path, 2100)
    spoiled = path.read_bytes()
    assert not check(store, full=True).ok
    hub = MemoryHub(dict(FILES))
    assert repair(store, hub).ok
    assert segments_read(hub) == {("llm.mnn.weight", 2)}
    assert (tmp_path / "elsewhere").read_bytes() == spoiled
    assert path.read_bytes() == FILES["llm.mnn.weight"]


def test_a_repair_is_refused_while_the_bundle_is_used(store: Store) -> None:
    rot(store.ready("demo").path / "llm.mnn", 0)
    with store.claim("demo", "tokforge run demo"):
        assert not check(store, full=True).ok
        hub = MemoryHub(dict(FILES))
        report = repair(store, hub)
    assert not report.ok
    assert "in use by `tokforge run demo`" in report.problems[0]
    assert hub.given == 0


def test_a_repair_that_no_source_can_make_says_so(store: Store) -> None:
    rot(store.ready("demo").path / "llm.mnn", 0)
    assert not check(store, full=True).ok
    report = repair(store, MemoryHub({}), replace(BUNDLE, sources=()))
    assert not report.ok
    assert "no public address" in report.problems[0]
    report = repair(store, MemoryHub(dict(FILES), listing_error="the wire is cut"))
    assert report.problems == ("not repaired: the wire is cut",)


def test_an_import_is_repaired_from_the_folder_it_came_from(tmp_path: Path) -> None:
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    folder = write_files(tmp_path / "mine", {**FILES, "README.md": b"x"})
    path = import_bundle(store, folder, "demo").path
    rot(path / "llm.mnn", 0)
    (path / "README.md").unlink()
    assert not check(store, bundle=None, full=True).ok
    report = repair(store, MemoryHub({}), None)
    assert report.ok, report
    assert (path / "README.md").exists()
    rot(path / "llm.mnn", 0)
    rot(folder / "llm.mnn", 0)
    assert not check(store, bundle=None, full=True).ok
    assert not repair(store, MemoryHub({}), None).ok


def test_an_import_under_a_known_id_is_repaired_as_what_it_is(tmp_path: Path) -> None:
    """The registry's revision is another one: it must not take the import's place."""
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    bundle = bundle_of(make_files(seed=7), pinned=False)
    folder = write_files(tmp_path / "mine", FILES)
    path = import_bundle(store, folder, "demo", bundle=bundle).path
    rot(path / "llm.mnn", 0)
    assert not check(store, bundle=bundle, full=True).ok
    assert repair(store, MemoryHub(make_files(seed=7)), bundle).ok
    assert store.ready("demo").path == path


def test_a_forged_manifest_does_not_outvote_the_pins(store: Store) -> None:
    manifest = store.manifest("demo", "r1")
    path = store.ready("demo").path / "llm.mnn"
    forged = make_files(seed=9)["llm.mnn"]
    path.write_bytes(forged)
    entries = tuple(
        replace(entry, sha256=sha256(forged)) if entry.path == "llm.mnn" else entry
        for entry in manifest.files
    )
    store.write_manifest(replace(manifest, files=entries))
    report = check(store)
    assert not report.ok
    bad = file_of(report, "llm.mnn")
    assert (bad.expected, bad.actual) == (sha256(FILES["llm.mnn"]), sha256(forged))
    assert repair(store, MemoryHub(dict(FILES))).ok
    assert path.read_bytes() == FILES["llm.mnn"]


@pytest.mark.parametrize("listed", [True, False])
def test_a_manifest_without_the_weights_makes_nothing_ready(tmp_path: Path, listed: bool) -> None:
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    bundle = bundle_of(FILES, listed=listed)
    pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
    path = store.ready("demo").path / "llm.mnn.weight"
    manifest = store.manifest("demo", "r1")
    kept = tuple(entry for entry in manifest.files if entry.path != "llm.mnn.weight")
    store.write_manifest(replace(manifest, files=kept))
    path.write_bytes(make_files(seed=9)["llm.mnn.weight"])

    assert store.status("demo").state is State.DAMAGED
    with pytest.raises(IntegrityError, match=r"llm\.mnn\.weight is needed, and nobody verified it"):
        store.ready("demo")
    report = check(store, bundle=bundle)
    assert report.state is State.DAMAGED
    assert file_of(report, "llm.mnn.weight") == FileReport(
        "llm.mnn.weight", False, sha256(FILES["llm.mnn.weight"]), None, 4300
    )
    assert report.extra == ()
    assert repair(store, MemoryHub(dict(FILES)), bundle).ok
    assert path.read_bytes() == FILES["llm.mnn.weight"]

    store.write_manifest(replace(manifest, files=kept))
    assert pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener()).bytes_fetched == 0
    assert check(store, bundle=bundle).ok


def test_a_stray_file_that_mnn_would_open(store: Store) -> None:
    path = store.ready("demo").path / "context.json"
    path.write_bytes(b"{}")
    assert store.status("demo").state is State.DAMAGED
    report = repair(store, MemoryHub(dict(FILES)))
    assert not report.ok
    assert f"MNN would open {path}, which nobody verified" in report.problems
    assert "move those files away" in report.problems[-1]
    path.unlink()
    assert check(store).ok


def test_an_import_is_named_by_its_content_and_its_manifest_must_have_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    pulled = import_bundle(store, write_files(tmp_path / "mine", FILES), "demo")
    manifest = store.manifest("demo", pulled.revision)
    other = make_files(seed=9)["llm.mnn"]
    (pulled.path / "llm.mnn").write_bytes(other)
    forged = tuple(
        replace(entry, sha256=sha256(other)) if entry.path == "llm.mnn" else entry
        for entry in manifest.files
    )
    store.write_manifest(replace(manifest, files=forged))
    assert store.status("demo").state is State.DAMAGED
    assert "files with the revision's content" in check(store, bundle=None).problems[0]


def pinned_as(store: Store, path: str, data: bytes) -> None:
    """Let pins.json say that `path` was `data` when it was seen first."""
    pins = store.home / "pins.json"
    if pins.exists():
        pins.unlink()
    store.pins.remember("demo", "r1", {path: Pin(len(data), sha256(data))})


def test_where_only_the_pin_disagrees_everyone_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "home", FastDisk(), SEGMENT)
    bundle = bundle_of(FILES, pinned=False)
    pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
    other = make_files(seed=9)["llm.mnn"]
    pinned_as(store, "llm.mnn", other)

    pins = str(store.home / "pins.json")
    assert store.status("demo").state is State.DAMAGED
    assert store.status("demo").problems == (f"llm.mnn is not what {pins} says",)
    report = check(store, bundle=bundle)
    assert (report.state, report.problems) == (State.DAMAGED, store.status("demo").problems)
    with pytest.raises(IntegrityError) as caught:
        pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
    assert f"{pins} remembers another first download" in caught.value.hint

    report = repair(store, MemoryHub(dict(FILES)), bundle)
    assert not report.ok
    assert f"{pins} remembers another first download" in report.problems[-1]
    assert (store.folder("demo") / "r1" / "llm.mnn").read_bytes() == FILES["llm.mnn"]
    Path(pins).unlink()
    assert check(store, bundle=bundle).ok

    pinned_as(store, "llm.mnn", other)
    assert repair(store, MemoryHub({**FILES, "llm.mnn": other}), bundle).ok
    assert store.status("demo").state is State.READY
    assert (store.ready("demo").path / "llm.mnn").read_bytes() == other


def test_pins_that_cannot_be_read_are_told_by_every_bundle(store: Store) -> None:
    (store.home / "pins.json").write_bytes(b"{")
    status = store.status("demo")
    assert status.state is State.DAMAGED
    assert "pins.json is not valid" in status.problems[0]
    assert "move that file away" in status.problems[0]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_pins_that_are_no_file_are_not_waited_for(store: Store) -> None:
    pins = store.home / "pins.json"
    pins.unlink(missing_ok=True)
    os.mkfifo(pins)
    assert store.status("demo").state is State.DAMAGED
    report = check(store)
    assert not report.ok
    assert "not a regular file" in report.problems[-1]
    assert f"move {pins} away" in report.problems[-1]


def test_a_verdict_that_cannot_be_written_says_so(store: Store) -> None:
    rot(store.ready("demo").path / "llm.mnn", 0)
    store.disk = FaultyDisk(1, no_space, lasting=True)
    (report,) = verify(store, bundles={"demo": BUNDLE}, full=True)
    assert report.state is State.DAMAGED
    assert "only --full finds it again" in report.problems[-1]
    assert "No space left on device" in report.problems[-1]
    (report,) = verify(
        store,
        bundles={"demo": BUNDLE},
        full=True,
        repair=True,
        fetchers=MemoryHub(dict(FILES)).opener(),
    )
    assert report.state is State.DAMAGED
    assert not report.ok


def test_a_verdict_on_a_full_disk_is_sought_again_and_mended(store: Store) -> None:
    class FullDisk(FastDisk):
        """A disk on which what is there can be touched, and nothing be written."""

        def _write(self, path: Path, data: bytes, *, offset: int | None) -> None:
            no_space()

    rot(store.ready("demo").path / "llm.mnn", 0)
    store.disk = FullDisk()
    report = check(store, full=True)
    assert "will be sought again" in report.problems[-1]
    assert check(store).state is State.DAMAGED
    store.disk = FastDisk()
    assert repair(store, MemoryHub(dict(FILES))).ok
    assert check(store, full=True).ok


def test_a_repair_in_place_needs_no_space(store: Store) -> None:
    class FullDisk(FastDisk):
        def free(self, path: Path) -> int:
            return 0

    rot(store.ready("demo").path / "llm.mnn.weight", 2100)
    assert not check(store, full=True).ok
    store.disk = FullDisk()
    assert repair(store, MemoryHub(dict(FILES))).ok


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/hostname")])
@pytest.mark.parametrize("name", ["llm.mnn", "config.json"])
def test_what_is_no_file_is_replaced(
    store: Store, name: str, make: Callable[[Path], object]
) -> None:
    path = store.ready("demo").path / name
    path.unlink()
    make(path)
    assert store.status("demo").state is State.DAMAGED
    assert not check(store, full=True).ok
    assert repair(store, MemoryHub(dict(FILES))).ok
    assert path.read_bytes() == FILES[name]


def test_a_folder_in_place_of_a_file_must_be_moved_away(store: Store) -> None:
    path = store.ready("demo").path / "llm.mnn"
    path.unlink()
    write_files(path, {"precious": b"mine"})
    hub = MemoryHub(dict(FILES))
    report = repair(store, hub)
    assert not report.ok
    assert f"{path} is in the way" in report.problems[-1]
    assert "move it away" in report.problems[-1]
    assert hub.given == 0
    path.rename(store.home / "elsewhere")
    assert repair(store, hub).ok


def test_a_required_file_that_the_manifest_does_not_have(store: Store) -> None:
    more = {**FILES, "config_cpu.json": b"{}"}
    report = check(store, bundle=bundle_of(more))
    assert not report.ok
    assert file_of(report, "config_cpu.json") == FileReport(
        "config_cpu.json", False, sha256(b"{}"), None, 2
    )


def test_a_broken_manifest_is_repaired_from_the_pins(store: Store) -> None:
    (store.ready("demo").path / ".tokforge" / "manifest.json").write_bytes(b"{")
    assert check(store).state is State.DAMAGED
    assert "nothing says what demo must be" in repair(store, MemoryHub({}), None).problems[1]
    hub = MemoryHub(dict(FILES))
    assert repair(store, hub).ok
    assert hub.given == 0


def test_a_bad_setting_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path, FastDisk(), SEGMENT)
    files = {**FILES, "config.json": b'{"thread_num": "two"}'}
    pull(bundle_of(files), store, fetchers=MemoryHub(files).opener())
    report = check(store, bundle=bundle_of(files))
    assert not report.ok
    assert report.problems == ("config.json: thread_num is not a whole number",)
    assert store.installed()["demo"].content


def test_extra_files_are_told_and_harmless(store: Store) -> None:
    folder = store.ready("demo").path
    write_files(folder, {"notes.txt": b"mine", "sub/x": b"y"})
    (folder / "link").symlink_to(folder)
    report = check(store)
    assert report.ok
    assert report.extra == ("link", "notes.txt", "sub/x")


def test_absent_and_partial_bundles_are_not_ok(store: Store) -> None:
    absent, partial = verify(store, ["other", "half"], bundles={}, repair=True)
    assert (absent.state, absent.ok, absent.files) == (State.ABSENT, False, ())
    store.prepare("half", "r1")
    write_files(store.folder("half") / "r1", {"x": b"y"})
    (partial,) = verify(store, ["half"], bundles={}, repair=True)
    assert (partial.state, partial.ok, partial.files) == (State.PARTIAL, False, ())


def test_a_store_that_may_only_be_read_is_verified_all_the_same(store: Store) -> None:
    rot(store.ready("demo").path / "llm.mnn", 0)
    store.disk = FaultyDisk(1, forbidden, lasting=True)
    report = check(store, full=True)
    assert report.state is State.DAMAGED
    assert [file.path for file in report.files if not file.ok] == ["llm.mnn"]


@pytest.mark.parametrize("damage", [b"{", b"{}", b"\xff"])
@pytest.mark.parametrize("mend", [False, True])
def test_a_damaged_pins_file_is_a_problem_of_each_bundle(
    store: Store, damage: bytes, mend: bool
) -> None:
    (store.home / "pins.json").write_bytes(damage)
    report = repair(store, MemoryHub(dict(FILES))) if mend else check(store)
    assert (report.ok, report.state) == (False, State.DAMAGED)
    assert all(file.ok for file in report.files)
    assert "pins.json is not valid" in report.problems[0]
    assert "move that file away" in report.problems[-1]


def test_whoever_holds_the_lock_is_named_to_those_who_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rot(store.ready("demo").path / "llm.mnn", 0)
    monkeypatch.setattr("tokforge_models.upkeep.integrity._PATIENCE_SECONDS", 0.0)
    events: list[Event] = []
    with store.lock("demo", "tokforge pull demo", 0):
        report = check(store, full=True, events=events)
    assert [event.note for event in events if event.phase is Phase.WAITING] == [
        f"`tokforge pull demo` (process {os.getpid()})"
    ]
    assert any("not written down" in problem for problem in report.problems)
