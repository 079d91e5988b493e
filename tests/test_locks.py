"""One worker a bundle, many users, and nothing that a dead process leaves stands in the way."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store_kit import FastDisk, FaultyDisk, forbidden, no_space
from tokforge_models.errors import MayOnlyRead, Refused, StorageError
from tokforge_models.files.locks import Holder, Locks

HOLD = """
    import sys
    from pathlib import Path
    from tokforge_models.files.disk import Disk
    from tokforge_models.files.locks import Locks
    locks = Locks(Path(sys.argv[1]), Disk())
    lock = sys.argv[2] == "lock"
    with locks.exclusive("tokforge pull x", 0) if lock else locks.claim("tokforge run x"):
        print("held", flush=True)
        sys.stdin.read()
"""


@contextmanager
def another_process(folder: Path, what: str) -> Iterator[subprocess.Popen[str]]:
    """A real process that holds the lock or a claim, until it is told to end or is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(folder), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_timeout_names_the_holder(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "x", FastDisk())
    with another_process(tmp_path / "x", "lock") as process:
        asked: list[Holder] = []
        with (
            pytest.raises(Refused, match="the bundle x is being worked on") as caught,
            locks.exclusive("tokforge rm x", 0.1, asked.append),
        ):
            raise AssertionError("two processes hold one lock")
    assert f"`tokforge pull x` (process {process.pid})" in caught.value.message
    assert asked == [Holder("tokforge pull x", process.pid)]
    assert caught.value.exit_code == 7


def test_who_has_ended_is_not_named_any_more(tmp_path: Path) -> None:
    locks = Locks(tmp_path, FastDisk())
    with locks.exclusive("tokforge pull x", 0):
        assert (tmp_path / "holder.json").exists()
    assert not (tmp_path / "holder.json").exists()
    with pytest.raises(ZeroDivisionError), locks.exclusive("tokforge pull x", 0):
        raise ZeroDivisionError
    assert not (tmp_path / "holder.json").exists()


def test_who_waits_gets_the_lock_when_its_holder_ends(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "x", FastDisk())
    with another_process(tmp_path / "x", "lock") as process:

        def end_it(holder: Holder) -> None:
            assert holder.pid == process.pid
            process.communicate("")

        with locks.exclusive("tokforge pull x", 60, end_it):
            assert process.returncode == 0


@pytest.mark.parametrize("what", ["lock", "claim"])
def test_what_a_killed_process_held_stands_in_nobodys_way(tmp_path: Path, what: str) -> None:
    locks = Locks(tmp_path / "x", FastDisk())
    with another_process(tmp_path / "x", what) as process:
        process.kill()
        process.wait()
    with locks.exclusive("tokforge rm x", 0), locks.unclaimed():
        assert not list((tmp_path / "x" / "claims").glob("*"))


def test_several_claims_at_once_each_named(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "x", FastDisk())
    with (
        another_process(tmp_path / "x", "claim") as process,
        locks.claim("tokforge chat x"),
        pytest.raises(Refused, match="the bundle x is in use by") as caught,
        locks.unclaimed(),
    ):
        raise AssertionError("a used bundle passed for unused")
    assert f"`tokforge run x` (process {process.pid})" in caught.value.message
    assert "`tokforge chat x`" in caught.value.message
    with locks.unclaimed():
        assert not list((tmp_path / "x" / "claims").glob("*"))


def test_a_claim_does_not_wait_for_a_pull(tmp_path: Path) -> None:
    locks = Locks(tmp_path / "x", FastDisk())
    with locks.exclusive("tokforge pull x", 0), locks.claim("tokforge run x"):
        assert len(list((tmp_path / "x" / "claims").glob("*.lock"))) == 1


def test_nobody_can_claim_while_a_bundle_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokforge_models.files.locks._GATE_SECONDS", 0.05)
    locks = Locks(tmp_path / "x", FastDisk())
    with (
        locks.exclusive("tokforge rm x", 0),
        locks.unclaimed(),
        pytest.raises(Refused, match="tokforge rm x"),
        locks.claim("tokforge run x"),
    ):
        raise AssertionError("claimed while being removed")


def test_a_full_disk_forbids_neither_to_run_nor_to_remove(tmp_path: Path) -> None:
    Locks(tmp_path / "x", FastDisk())._users()
    with Locks(tmp_path / "x", FastDisk()).claim("tokforge run x"):
        pass
    disk = FaultyDisk(1, no_space, lasting=True)
    for name in ("_make_folder", "_remove"):
        setattr(disk, name, getattr(FastDisk(), name))
    locks = Locks(tmp_path / "x", disk)
    with (
        locks.exclusive("tokforge rm x", 0),
        locks.claim("tokforge run x"),
        pytest.raises(Refused, match="in use by another process"),
        locks.unclaimed(),
    ):
        raise AssertionError("a used bundle passed for unused")
    assert disk.steps > 0


@pytest.mark.parametrize("note", ["", "null", '{"command": 1, "pid": 2}', "[" * 100_000, "{}"])
def test_a_holder_file_that_makes_no_sense_is_somebody(tmp_path: Path, note: str) -> None:
    locks = Locks(tmp_path / "x", FastDisk())
    with another_process(tmp_path / "x", "lock"):
        (tmp_path / "x" / "holder.json").write_text(note)
        with (
            pytest.raises(Refused, match="worked on by another process"),
            locks.exclusive("tokforge rm x", 0),
        ):
            raise AssertionError("two processes hold one lock")


def test_what_forbids_a_claim_is_told_not_the_sweeping_after_it(tmp_path: Path) -> None:
    disk = FaultyDisk(1, forbidden, lasting=True)
    with (
        pytest.raises(MayOnlyRead, match="cannot make the folder"),
        Locks(tmp_path / "x", disk).claim("tokforge run x"),
    ):
        raise AssertionError("claimed")


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("filelock.FileLock.acquire", without)
    with (
        pytest.raises(StorageError, match="has no locks") as caught,
        Locks(tmp_path / "x", FastDisk()).exclusive("tokforge pull x", 0),
    ):
        raise AssertionError("locked")
    assert "TOKFORGE_HOME" in caught.value.hint
