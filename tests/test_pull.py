"""What a pull asks for, refuses, waits for and answers."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from store_kit import SEGMENT, FastDisk, MemoryHub, bundle_of, make_files, sha256, write_files
from tokforge_models.bundle import BundleFile, FileRole, Source, State
from tokforge_models.errors import FetchError, IntegrityError, Refused, StorageError
from tokforge_models.progress import Event, Phase
from tokforge_models.pulling.plan import Verb
from tokforge_models.pulling.pull import Pulled, preview, pull
from tokforge_models.store.store import Store

FILES = make_files()
BYTES = sum(map(len, FILES.values()))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home", FastDisk(), SEGMENT)


def test_a_first_pull_and_a_second(store: Store) -> None:
    hub = MemoryHub(dict(FILES))
    events: list[Event] = []
    first = pull(bundle_of(FILES), store, progress=events.append, fetchers=hub.opener())
    folder = store.home / "bundles" / "demo" / "r1"
    assert replace(first, seconds=0.0) == Pulled(
        "demo", State.READY, "url:memory", "r1", folder, BYTES, 0, 0.0
    )
    fetching = [event for event in events if event.phase is Phase.FETCHING]
    assert [event.done for event in fetching] == sorted(event.done for event in fetching)
    assert fetching[-1].done == fetching[-1].total == BYTES
    hub.listing_error = "asked although nothing was to be done"
    second = pull(bundle_of(FILES), store, fetchers=hub.opener())
    assert (second.bytes_fetched, second.bytes_reused) == (0, BYTES)


def test_a_preview_decides_and_writes_nothing(store: Store) -> None:
    hub = MemoryHub(dict(FILES))
    plan = preview(bundle_of(FILES), store, fetchers=hub.opener())
    assert [action.verb for action in plan.actions] == [Verb.FETCH] * len(FILES)
    assert plan.missing_bytes == plan.disk_bytes == BYTES
    assert hub.given == 0
    assert not store.home.exists()


def test_only_required_files_are_taken_unless_all_are_wanted(store: Store) -> None:
    bundle = bundle_of(FILES)
    bundle = replace(bundle, files=(*bundle.files, BundleFile("llm.mnn.json", FileRole.REFERENCE)))
    hub = MemoryHub({**FILES, "llm.mnn.json": b"{}", "README.md": b"x"})
    pulled = pull(bundle, store, fetchers=hub.opener())
    assert {p.name for p in pulled.path.iterdir()} == {*FILES, ".tokforge"}
    again = pull(bundle, store, all_files=True, fetchers=hub.opener())
    assert (again.path / "llm.mnn.json").read_bytes() == b"{}"
    assert again.bytes_fetched == 2
    assert not (again.path / "README.md").exists()


def test_without_a_list_the_roles_follow_from_the_configuration(store: Store) -> None:
    files = {**FILES, "llm_config.json": b'{"is_visual": true}'}
    hub = MemoryHub({**files, "README.md": b"x"})
    bundle = bundle_of(files, listed=False)
    with pytest.raises(FetchError, match="is not complete") as caught:
        pull(bundle, store, fetchers=hub.opener())
    assert caught.value.expected == "embeddings_bf16.bin, visual.mnn, visual.mnn.weight"
    for name in caught.value.expected.split(", "):
        hub.files[name] = b"here"
    pulled = pull(bundle, store, fetchers=hub.opener())
    assert (pulled.path / "visual.mnn.weight").read_bytes() == b"here"
    assert not (pulled.path / "README.md").exists()


def test_a_configuration_that_escapes_is_refused(store: Store) -> None:
    files = {**FILES, "config.json": b'{"llm_model": "../../llm.mnn"}'}
    with pytest.raises(IntegrityError, match="climbs out of its folder"):
        pull(bundle_of(files, listed=False), store, fetchers=MemoryHub(files).opener())


def test_what_was_seen_first_is_pinned(store: Store) -> None:
    bundle = bundle_of(FILES, pinned=False)
    pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
    assert store.pins.seen("demo", "r1")["llm.mnn"].sha256 == sha256(FILES["llm.mnn"])
    store.disk.remove_tree(store.folder("demo"))
    changed = {**FILES, "llm.mnn": bytes(len(FILES["llm.mnn"]))}
    with pytest.raises(IntegrityError, match="is not what it must be"):
        pull(bundle, store, fetchers=MemoryHub(changed).opener())
    longer = {**FILES, "llm.mnn": FILES["llm.mnn"] + b"x", "tokenizer.txt": b"x"}
    with pytest.raises(IntegrityError) as caught:
        pull(bundle, store, fetchers=MemoryHub(longer).opener())
    assert "llm.mnn: expected 1500 bytes, the source has 1501" in caught.value.message
    assert "tokenizer.txt: expected 6 bytes, the source has 1" in caught.value.message
    assert "pins.json remembers another first download" in caught.value.hint


def test_without_a_revision_the_hosts_commit_or_the_content_names_it(store: Store) -> None:
    bundle = bundle_of(FILES, revision=None)
    pulled = pull(bundle, store, fetchers=MemoryHub(dict(FILES), commit="c0ffee").opener())
    assert pulled.revision == "c0ffee"
    assert store.manifest("demo", "c0ffee").commit == "c0ffee"
    other = replace(bundle, id="other")
    nameless = pull(other, store, fetchers=MemoryHub(dict(FILES)).opener())
    assert nameless.revision.startswith("content-")
    hostile = replace(bundle, id="third")
    escaping = pull(hostile, store, fetchers=MemoryHub(dict(FILES), commit="../../x").opener())
    assert escaping.revision == nameless.revision


def test_names_that_cannot_live_together_are_refused(store: Store) -> None:
    for names in (["../../x"], ["a", "A"], ["C:\\x"], [".tokforge/manifest.json"]):
        files = dict.fromkeys(names, b"x")
        with pytest.raises(IntegrityError, match="cannot live in one folder"):
            pull(bundle_of(files), store, fetchers=MemoryHub(files).opener())
    assert store.statuses() == ()


def test_sources_are_tried_in_order_against_the_same_pins(store: Store, tmp_path: Path) -> None:
    wrong = write_files(tmp_path / "wrong", {**FILES, "llm.mnn": bytes(1500)})
    right = write_files(tmp_path / "right", FILES)
    sources = tuple(Source("path", str(place)) for place in (tmp_path / "missing", wrong, right))
    events: list[Event] = []
    pulled = pull(bundle_of(FILES, sources=sources), store, progress=events.append)
    notes = [event.note for event in events if event.phase is Phase.NOTE]
    assert [note.partition(" failed, trying the next source: ")[0] for note in notes] == [
        str(source) for source in sources[:2]
    ]
    assert pulled.source == f"path:{right}"
    store.disk.remove_tree(store.folder("demo"))
    with pytest.raises(IntegrityError, match="no source could give demo") as caught:
        pull(bundle_of(FILES, sources=sources[:2]), store)
    assert "missing is not there" in caught.value.message
    assert "llm.mnn is not what it must be" in caught.value.message


def test_a_folder_that_the_user_names_must_match_the_pins(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "mine", FILES)
    pulled = pull(bundle_of(FILES), store, source=f"path:{folder}")
    assert pulled.revision == "r1"
    unpinned = replace(bundle_of(FILES, pinned=False), id="other")
    assert pull(unpinned, store, source=f"path:{folder}").revision.startswith("content-")
    (folder / "llm.mnn").write_bytes(b"other")
    with pytest.raises(IntegrityError, match="does not have what demo is pinned to"):
        pull(bundle_of(FILES), store, source=f"path:{folder}")
    assert store.status("demo").state is State.READY


def test_too_little_disk_is_refused_before_the_first_byte(store: Store) -> None:
    class SmallDisk(FastDisk):
        def free(self, path: Path) -> int:
            return BYTES

    store.disk = SmallDisk()
    hub = MemoryHub(dict(FILES))
    with pytest.raises(StorageError, match="too little space for demo") as caught:
        pull(bundle_of(FILES), store, fetchers=hub.opener())
    assert caught.value.expected == f"{BYTES + (64 << 10) + BYTES // 4096:,} bytes"
    assert caught.value.got == f"{BYTES:,} free"
    assert str(store.home) in caught.value.message
    assert hub.given == 0


def test_a_bundle_without_an_address_is_ready_once_it_is_here(store: Store) -> None:
    bundle = bundle_of(FILES, sources=())
    with pytest.raises(FetchError, match="no public address"):
        pull(bundle, store)
    assert not store.home.exists()
    pull(bundle_of(FILES), store, fetchers=MemoryHub(dict(FILES)).opener())
    assert pull(bundle, store).bytes_fetched == 0


def test_what_a_model_uses_is_not_mended_under_it(store: Store) -> None:
    bundle = bundle_of(FILES)
    path = pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener()).path
    with store.claim("demo", "tokforge run demo"):
        (path / "llm.mnn").unlink()
        with pytest.raises(Refused, match="in use by `tokforge run demo`"):
            pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
        newer = make_files(seed=2)
        pull(bundle_of(newer, revision="r2"), store, fetchers=MemoryHub(newer).opener())
        assert (path / "llm.mnn.weight").exists()


def test_a_link_in_the_way_is_not_followed(store: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    files = {**FILES, "sub/x.bin": b"x"}
    (store.folder("demo") / "r1").mkdir(parents=True)
    (store.folder("demo") / "r1" / "sub").symlink_to(outside, target_is_directory=True)
    with pytest.raises(StorageError, match="is in the way"):
        pull(bundle_of(files), store, fetchers=MemoryHub(files).opener())
    assert not list(outside.iterdir())


CHILD = """
    import sys
    from pathlib import Path
    from store_kit import *
    from tokforge_models.progress import Phase
    from tokforge_models.pulling.pull import pull

    class Slow(MemoryHub):
        def listing(self):
            print("holds", flush=True)
            sys.stdin.readline()
            return super().listing()

    def tell(event):
        if event.phase is Phase.WAITING:
            print("waits for", event.note, flush=True)

    store = Store(Path(sys.argv[1]), FastDisk(), SEGMENT)
    hub = Slow(make_files())
    pulled = pull(bundle_of(hub.files), store, progress=tell, fetchers=hub.opener())
    print(pulled.state, pulled.bytes_fetched)
"""


def start(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(home)],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_of_two_processes_one_works_and_the_other_waits_and_finds_it_ready(tmp_path: Path) -> None:
    with start(tmp_path) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == "holds\n"
        with start(tmp_path) as second:
            assert second.stdout is not None
            waits = second.stdout.readline()
            assert waits == f"waits for `tokforge pull demo` (process {first.pid})\n"
            first.stdin.write("go\n")
            first.stdin.flush()
            assert first.stdout.readline() == f"ready {BYTES}\n"
            assert second.stdout.readline() == "ready 0\n"


def test_when_the_one_that_works_is_killed_the_other_goes_on(tmp_path: Path) -> None:
    with start(tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "holds\n"
        with start(tmp_path) as second:
            assert second.stdout is not None
            assert second.stdin is not None
            assert second.stdout.readline().startswith("waits for")
            first.kill()
            assert second.stdout.readline() == "holds\n"
            second.stdin.write("go\n")
            second.stdin.flush()
            assert second.stdout.readline() == f"ready {BYTES}\n"
