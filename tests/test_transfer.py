"""A fault at any step, and a kill at any step: no verified byte lost, no wrong one published."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_kit import (
    SEGMENT,
    FastDisk,
    FaultyDisk,
    MemoryHub,
    bundle_of,
    forbidden,
    interrupted,
    make_files,
    no_space,
    safe_segments,
    segments_read,
    write_files,
)
from tokforge_models.bundle import Bundle, Source, State
from tokforge_models.errors import FetchError, IntegrityError, StorageError
from tokforge_models.pulling.pull import pull
from tokforge_models.store.store import Store
from tokforge_models.upkeep.integrity import verify

FILES = make_files(weight_bytes=2300)
BYTES = sum(len(data) for data in FILES.values())


def finish(home: Path, bundle: Bundle, safe: set[tuple[str, int]]) -> None:
    """The next pull completes, and fetches nothing that was safe."""
    store = Store(home, FastDisk(), SEGMENT)
    hub = MemoryHub(dict(FILES))
    pulled = pull(bundle, store, fetchers=hub.opener())
    assert pulled.state is State.READY
    assert store.status(bundle.id).state is State.READY
    assert not safe & segments_read(hub)
    assert pulled.bytes_fetched == hub.given
    assert pulled.bytes_fetched + pulled.bytes_reused == BYTES
    for name, data in FILES.items():
        assert (pulled.path / name).read_bytes() == data
    assert [report.ok for report in verify(store, bundles={bundle.id: bundle}, full=True)] == [True]
    assert not list(store.home.glob("bundles/**/*.part"))
    assert not list(store.home.glob("bundles/**/journal"))


@pytest.mark.parametrize(
    ("fail", "error", "pinned"),
    [
        (no_space, StorageError, True),
        (forbidden, StorageError, False),
        (interrupted, KeyboardInterrupt, True),
    ],
)
def test_a_fault_at_any_step_of_a_pull_is_mended_by_the_next(
    tmp_path: Path, fail: Callable[[], None], error: type[BaseException], pinned: bool
) -> None:
    bundle = bundle_of(FILES, pinned=pinned)
    states = set()
    for at in range(1, 1000):
        home = tmp_path / str(at)
        store = Store(home, FaultyDisk(at, fail, lasting=True), segment_bytes=SEGMENT)
        hub = MemoryHub(dict(FILES))
        try:
            pull(bundle, store, fetchers=hub.opener())
        except error as caught:
            if isinstance(caught, StorageError):
                assert "everything verified so far" in caught.kept
                assert caught.hint
        else:
            break
        status = Store(home, FastDisk(), SEGMENT).status(bundle.id)
        states.add(status.state)
        safe = safe_segments(store, bundle, FILES)
        in_flight = SEGMENT + 700
        assert hub.given - sum(_length(*segment) for segment in safe) <= in_flight
        finish(home, bundle, safe)
        shutil.rmtree(home)
    else:
        raise AssertionError("the pull never got through")
    assert at > 60
    assert states == {State.ABSENT, State.PARTIAL, State.READY}


def _length(name: str, index: int) -> int:
    return min(SEGMENT, len(FILES[name]) - index * SEGMENT)


CHILD = """
    import sys
    from pathlib import Path
    from store_kit import *
    from tokforge_models.errors import TokforgeError
    from tokforge_models.pulling.pull import pull
    home, at = Path(sys.argv[1]), int(sys.argv[2])
    files = make_files(weight_bytes=2300)
    store = Store(home, FaultyDisk(at, killed), segment_bytes=SEGMENT)
    pull(bundle_of(files), store, fetchers=MemoryHub(files).opener())
"""


def run_child(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("remainder", range(4))
def test_a_kill_at_any_step_of_a_pull_is_mended_by_the_next(tmp_path: Path, remainder: int) -> None:
    """One real process a step; the four parts run side by side."""
    bundle = bundle_of(FILES)
    for at in range(1 + remainder, 1000, 4):
        home = tmp_path / str(at)
        ended = run_child(CHILD, home, at)
        if ended.returncode == 0:
            break
        assert ended.returncode == -9, ended.stderr
        store = Store(home, FastDisk(), SEGMENT)
        assert store.status(bundle.id).state in {State.ABSENT, State.PARTIAL, State.READY}
        finish(home, bundle, safe_segments(store, bundle, FILES))
        shutil.rmtree(home)
    else:
        raise AssertionError("the pull never got through")
    assert at > 60


def damage(home: Path, bundle: Bundle, *, shared: bool) -> Path:
    """A ready bundle with one wrong byte in the second segment of its weights."""
    store = Store(home, FastDisk(), SEGMENT)
    pulled = pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
    weight = pulled.path / "llm.mnn.weight"
    data = bytearray(FILES["llm.mnn.weight"])
    data[SEGMENT + 5] ^= 1
    weight.write_bytes(data)
    if shared:
        (home / "elsewhere").hardlink_to(weight)
    return weight


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("fail", [no_space, interrupted])
def test_a_fault_at_any_step_of_a_repair_costs_no_good_segment(
    tmp_path: Path, fail: Callable[[], None], shared: bool
) -> None:
    bundle = bundle_of(FILES)
    bad = ("llm.mnn.weight", 1)
    for at in range(1, 200):
        home = tmp_path / str(at)
        weight = damage(home, bundle, shared=shared)
        store = Store(home, FaultyDisk(at, fail, lasting=True), segment_bytes=SEGMENT)
        try:
            (report,) = verify(
                store,
                bundles={bundle.id: bundle},
                repair=True,
                fetchers=MemoryHub(dict(FILES)).opener(),
            )
            mended = report.ok
        except KeyboardInterrupt:
            mended = False
        status = Store(home, FastDisk(), SEGMENT).status(bundle.id)
        assert status.state in {State.DAMAGED, State.READY}
        hub = MemoryHub(dict(FILES))
        (report,) = verify(
            Store(home, FastDisk(), SEGMENT),
            bundles={bundle.id: bundle},
            repair=True,
            fetchers=hub.opener(),
        )
        assert report.ok, (at, report)
        assert segments_read(hub) <= {bad}
        assert weight.read_bytes() == FILES["llm.mnn.weight"]
        if shared:
            assert (home / "elsewhere").read_bytes() != FILES["llm.mnn.weight"]
        shutil.rmtree(home)
        if mended:
            break
    else:
        raise AssertionError("the repair never got through")
    assert at > 10


def test_a_source_that_ends_early_costs_only_the_segment_in_flight(tmp_path: Path) -> None:
    bundle = bundle_of(FILES)
    for cut in range(0, BYTES, 450):
        home = tmp_path / str(cut)
        store = Store(home, FastDisk(), SEGMENT)
        with pytest.raises(FetchError, match="ended early"):
            pull(bundle, store, fetchers=MemoryHub(dict(FILES), cut_after=cut).opener())
        finish(home, bundle, safe_segments(store, bundle, FILES))


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 2 * BYTES), max_size=6),
    spoils=st.lists(st.tuples(st.sampled_from(sorted(FILES)), st.integers(0, 5000)), max_size=3),
)
def test_any_history_of_cuts_and_rot_ends_in_the_right_bytes_at_a_bounded_price(
    cuts: list[int], spoils: list[tuple[str, int]]
) -> None:
    bundle = bundle_of(FILES)
    with TemporaryDirectory() as home:
        store = Store(Path(home), FastDisk(), SEGMENT)
        given_bytes = 0
        for cut in cuts:
            hub = MemoryHub(dict(FILES), cut_after=cut)
            with suppress(FetchError):
                pull(bundle, store, fetchers=hub.opener())
            given_bytes += hub.given
        finish(Path(home), bundle, safe_segments(store, bundle, FILES))
        assert given_bytes <= BYTES + len(cuts) * (SEGMENT + 700)
        for name, at in spoils:
            data = bytearray(FILES[name])
            data[at % len(data)] ^= 1
            (store.ready(bundle.id).path / name).write_bytes(data)
        hub = MemoryHub(dict(FILES))
        (report,) = verify(store, bundles={bundle.id: bundle}, repair=True, fetchers=hub.opener())
        assert report.ok
        assert segments_read(hub) == {
            (name, at % len(FILES[name]) // SEGMENT) for name, at in dict(spoils).items()
        }
        finish(Path(home), bundle, safe_segments(store, bundle, FILES))


def test_more_bytes_than_asked_for_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, FastDisk(), SEGMENT)
    with pytest.raises(FetchError, match="than was asked for"):
        pull(bundle_of(FILES), store, fetchers=MemoryHub(dict(FILES), extra=b"x").opener())


def test_a_wrong_file_is_fetched_again_once_then_refused_and_the_others_kept(
    tmp_path: Path,
) -> None:
    bundle = bundle_of(FILES)
    store = Store(tmp_path, FastDisk(), SEGMENT)
    wrong = {**FILES, "llm.mnn.weight": bytes(len(FILES["llm.mnn.weight"]))}
    hub = MemoryHub(wrong)
    with pytest.raises(IntegrityError, match="is not what it must be") as caught:
        pull(bundle, store, fetchers=hub.opener())
    assert caught.value.exit_code == 5
    assert caught.value.got != caught.value.expected
    weight_reads = [read for read in hub.reads if read[0] == "llm.mnn.weight"]
    assert weight_reads == [("llm.mnn.weight", 0, 2300)] * 2
    assert store.status(bundle.id).state is State.PARTIAL
    safe = safe_segments(store, bundle, FILES)
    assert {("llm.mnn", 0), ("llm.mnn", 1)} <= safe
    finish(tmp_path, bundle, safe)


def test_a_partial_spoiled_on_disk_is_fetched_again_only_where_it_is_wrong(tmp_path: Path) -> None:
    bundle = bundle_of(FILES)
    store = Store(tmp_path, FastDisk(), SEGMENT)
    before_weight = BYTES - 2300 - len(FILES["tokenizer.txt"])
    with pytest.raises(FetchError):
        pull(
            bundle,
            store,
            fetchers=MemoryHub(dict(FILES), cut_after=before_weight + 1500).opener(),
        )
    (part,) = tmp_path.glob("bundles/**/*.part")
    data = bytearray(part.read_bytes())
    data[500] ^= 1
    part.write_bytes(data)
    hub = MemoryHub(dict(FILES))
    pull(bundle, store, fetchers=hub.opener())
    assert segments_read(hub) == {
        ("llm.mnn.weight", 0),
        ("llm.mnn.weight", 2),
        ("tokenizer.txt", 0),
    }


def test_bytes_of_two_versions_of_an_unpinned_file_never_mix(tmp_path: Path) -> None:
    bundle = bundle_of(FILES, pinned=False)
    store = Store(tmp_path, FastDisk(), SEGMENT)
    before_weight = BYTES - 2300 - len(FILES["tokenizer.txt"])
    with pytest.raises(FetchError):
        pull(
            bundle,
            store,
            fetchers=MemoryHub(dict(FILES), cut_after=before_weight + 1500).opener(),
        )
    newer = {**FILES, "llm.mnn.weight": make_files(2300, seed=2)["llm.mnn.weight"]}
    hub = MemoryHub(newer)
    pulled = pull(bundle, store, fetchers=hub.opener())
    assert (pulled.path / "llm.mnn.weight").read_bytes() == newer["llm.mnn.weight"]
    assert ("llm.mnn.weight", 0, 2300) in hub.reads


def test_real_segments_of_eight_mebibytes(tmp_path: Path) -> None:
    files = make_files(weight_bytes=(8 << 20) + 12345)
    source = write_files(tmp_path / "source", files)
    bundle = bundle_of(files, sources=(Source("path", str(source)),))
    store = Store(tmp_path / "home")
    pulled = pull(bundle, store)
    assert pulled.bytes_fetched == sum(map(len, files.values()))
    entry = store.manifest(bundle.id, "r1").by_path()["llm.mnn.weight"]
    assert len(entry.segments) == 2
    weight = pulled.path / "llm.mnn.weight"
    with weight.open("r+b") as stream:
        stream.seek(9 << 20)
        stream.seek((8 << 20) + 1)
        stream.write(b"\0\0\0")
    (report,) = verify(store, bundles={bundle.id: bundle}, repair=True)
    assert report.ok
    assert weight.read_bytes() == files["llm.mnn.weight"]
