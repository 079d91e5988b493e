"""Searches on disk: round trips, strictness, what makes them worthless, and crashes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokforge_models.device import GIB, Device, Platform
from tokforge_models.errors import RegistryError
from tokforge_models.files.disk import Disk
from tokforge_models.measuring.trials import Decoded, Known, Setup, Tried
from tokforge_models.measuring.tuning_file import Conditions, Search, read_search, write_search
from tuning_kit import DRAFT, SHIPPED, question, search
from tuning_kit import Device as Simulated

CONDITIONS = Conditions(
    device=Device(Platform.LINUX, "AMD EPYC", 16 * GIB, 2),
    target="ab" * 32,
    draft="cd" * 32,
    mnn="3.6.1",
    tokforge="0.1.0",
    texts="ef" * 8,
    lookup=True,
    shipped=Setup(SHIPPED, DRAFT),
)


def rounded(known: Known) -> tuple[Tried, ...]:
    return tuple(replace(each, seconds=round(each.seconds, 6)) for each in known.tried)


@settings(max_examples=25)
@given(st.floats(0.05, 0.95), st.booleans(), st.integers(0, 40), st.integers(0, 9))
def test_a_search_is_read_as_it_was_written(tmp_path_factory, chance, fails, most, seed) -> None:
    device = Simulated(chance=chance, noise=0.1, seed=seed)
    asked = question()
    known = search(asked, device, most=most)
    if fails and known.tried:
        device.broken = lambda trial: "no memory for it"
        known = search(asked, device, before=known.tried, most=1)
    path = tmp_path_factory.mktemp("tuning") / "a" / "b.json"
    write_search(path, Search(CONDITIONS, known))
    found = read_search(path)
    assert found.conditions == CONDITIONS
    assert found.known.tried == rounded(known)


def test_the_longest_search_can_be_read_again(tmp_path: Path) -> None:
    asked = question(threads=(1, 2, 3, 4, 6, 8), budget=1e6)
    device = Simulated(chance=0.7, noise=0.3)
    known = search(asked, device)
    assert len(known.tried) > 120
    # Five workloads instead of two, and settings that are all given.
    wide = [
        replace(each, outcome=Decoded(each.outcome.cells * 2 + each.outcome.cells[:1]))
        if isinstance(each.outcome, Decoded)
        else each
        for each in known.tried
    ]
    write_search(tmp_path / "a.json", Search(CONDITIONS, Known(wide)))
    assert len(read_search(tmp_path / "a.json").known.tried) == len(wide)


def test_a_target_alone_has_a_file_too(tmp_path: Path) -> None:
    conditions = replace(CONDITIONS, draft=None, shipped=Setup(SHIPPED), lookup=False)
    write_search(tmp_path / "a.json", Search(conditions, Known([])))
    assert read_search(tmp_path / "a.json").conditions == conditions


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda file: file.update(schema=2), "schema"),
        (lambda file: file["conditions"].pop("mnn"), "conditions.mnn"),
        (lambda file: file["conditions"].pop("device"), "conditions.device"),
        (lambda file: file["conditions"].update(target="x"), "conditions.target"),
        (lambda file: file["trials"][0].update(judge={}), "trials.0"),
        (lambda file: file["trials"][0].pop("load"), "trials.0"),
        (lambda file: file["trials"][0].update(verify=[0.1]), "trials.0.verify"),
        (lambda file: file["trials"][0]["verify"].__setitem__(0, 0), "trials.0.verify"),
        (lambda file: file["trials"][0].pop("seconds"), "trials.0.seconds"),
        (lambda file: file["trials"][0].update(colour="red"), "trials.0.colour"),
        (lambda file: file["trials"][1]["decode"].pop("way"), "trials.1.decode.way"),
        (lambda file: file["trials"][1]["cells"][0].update(tokens=0), "trials.1.cells.0.tokens"),
        (lambda file: file["trials"][1]["cells"][0].update(seconds=0), "trials.1.cells.0.seconds"),
        (
            lambda file: file["trials"][1]["cells"][0].update(drafted=[1], accepted=[]),
            "trials.1.cells.0.accepted",
        ),
        (lambda file: file["trials"][1].update(failed=""), "trials.1.failed"),
    ],
)
def test_a_file_that_is_none_is_told_by_its_fault(tmp_path: Path, change, key: str) -> None:
    path = tmp_path / "a.json"
    write_search(path, Search(CONDITIONS, search(question(), Simulated(), most=3)))
    file = json.loads(path.read_text())
    change(file)
    path.write_text(json.dumps(file))
    with pytest.raises(RegistryError) as caught:
        read_search(path)
    assert key in [problem.key for problem in caught.value.problems]
    assert "--fresh" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"mnn": "3.7.0"}, "mnn"),
        ({"tokforge": "9"}, "tokforge"),
        ({"texts": "00"}, "texts"),
        ({"target": "00" * 32}, "target"),
        ({"draft": None}, "draft"),
        ({"lookup": False}, "lookup"),
        ({"shipped": Setup(SHIPPED)}, "shipped"),
        ({"device": Device(Platform.LINUX, "Another")}, "device"),
        ({"device": Device(Platform.LINUX, "AMD EPYC", 8 * GIB, 2)}, None),
    ],
)
def test_under_which_conditions_trials_count(change, name: str | None) -> None:
    assert CONDITIONS.difference(replace(CONDITIONS, **change)) == name


class Killed(BaseException):
    """A process that ends here."""


class DyingDisk(Disk):
    """Dies before its n-th step."""

    def __init__(self, left: int) -> None:
        self._left = left

    def _step(self) -> None:
        if not self._left:
            raise Killed
        self._left -= 1

    def _write(self, path, data, *, offset) -> None:
        self._step()
        super()._write(path, data, offset=offset)

    def _sync(self, path) -> None:
        self._step()
        super()._sync(path)

    def _replace(self, source, target) -> None:
        self._step()
        super()._replace(source, target)


@pytest.mark.parametrize("steps", range(4))
def test_a_crash_leaves_the_old_file_or_the_new_one(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "a.json"
    known = search(question(), Simulated(), most=4)
    older = Search(CONDITIONS, Known(known.tried[:3]))
    write_search(path, older)
    if steps == 3:
        write_search(path, Search(CONDITIONS, known), DyingDisk(steps))
    else:
        with pytest.raises(Killed):
            write_search(path, Search(CONDITIONS, known), DyingDisk(steps))
    assert len(read_search(path).known.tried) == (4 if steps == 3 else 3)
