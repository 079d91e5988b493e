"""Profiles are kept a file a pair, and a crash leaves the old or the new one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profile_kit import FAST
from store_kit import FaultyDisk, interrupted, no_space
from tokforge_models.errors import StorageError
from tokforge_models.store.measurements import Kept, Measurements

ALONE = replace(FAST, draft=None)


def test_nothing_is_there_at_first(tmp_path: Path) -> None:
    assert Measurements(tmp_path / "none").read() == Kept({}, {})


def test_a_pair_and_its_target_alone_are_two(tmp_path: Path) -> None:
    kept = Measurements(tmp_path / "new")
    files = [kept.save(FAST), kept.save(ALONE)]
    assert kept.read().measurements == dict(zip(files, (FAST, ALONE), strict=True))
    newer = replace(FAST, paired=30.0)
    assert kept.save(newer) == files[0]
    assert list(kept.read().measurements.values()).count(newer) == 1
    assert len(kept.read().measurements) == 2


def test_a_file_that_is_none_is_told_and_left(tmp_path: Path) -> None:
    kept = Measurements(tmp_path)
    good = kept.save(FAST)
    bad = good.with_name("zz.json")
    bad.write_text("{", encoding="utf-8")
    found = kept.read()
    assert list(found.measurements) == [good]
    assert list(found.faulty) == [bad]
    assert str(bad) in str(found.faulty[bad].problems[0])
    assert bad.exists()


def test_a_crash_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    old, new = FAST, replace(FAST, paired=60.0)
    for at in range(1, 10):
        path = Measurements(tmp_path).save(old)
        try:
            Measurements(tmp_path, FaultyDisk(at, interrupted)).save(new)
        except KeyboardInterrupt:
            assert Measurements(tmp_path).read().measurements[path] in {old, new}
        else:
            break
    assert at > 3
    assert Measurements(tmp_path).read().measurements == {path: new}


def test_a_full_disk_is_an_error_that_keeps_the_old(tmp_path: Path) -> None:
    path = Measurements(tmp_path).save(FAST)
    with pytest.raises(StorageError):
        Measurements(tmp_path, FaultyDisk(1, no_space)).save(replace(FAST, paired=60.0))
    assert Measurements(tmp_path).read().measurements == {path: FAST}
