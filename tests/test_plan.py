"""Every decision of a pull, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.bundle import FileRole
from tokforge_models.pulling.plan import (
    Found,
    Place,
    Verb,
    Wanted,
    decide,
    missing_bytes,
    plan_pull,
)
from tokforge_models.store.manifest import Entry, Stamp
from tokforge_models.store.pins import UNPINNED, Pin

A, B = "a" * 64, "b" * 64
STAMP = Stamp(2500, 1, 1)


def wanted(
    size: int = 2500, sha256: str | None = None, validator: str | None = "v", pin: Pin = UNPINNED
) -> Wanted:
    return Wanted("w", FileRole.REQUIRED, size, sha256, validator, pin)


def whole(sha256: str = A, size: int = 2500) -> Found:
    return Found(Place.FINAL, size, Entry("w", FileRole.REQUIRED, size, sha256, (A, A, A), STAMP))


def partial(
    *have: int, size: int = 2500, validator: str | None = "v", shared: bool = False
) -> Found:
    return Found(
        Place.PART, size, segments=dict.fromkeys(have, A), validator=validator, shared=shared
    )


@pytest.mark.parametrize(
    ("file", "found", "verb", "missing", "disk"),
    [
        (wanted(), None, Verb.FETCH, 2500, 2500),
        (wanted(), whole(), Verb.KEEP, 0, 0),
        (wanted(pin=Pin(2500, A)), whole(), Verb.KEEP, 0, 0),
        (wanted(pin=Pin(None, A)), whole(), Verb.KEEP, 0, 0),
        (wanted(sha256=A), whole(), Verb.KEEP, 0, 0),
        (wanted(pin=Pin(2500, B)), whole(), Verb.FETCH, 2500, 2500),
        (wanted(sha256=B), whole(), Verb.FETCH, 2500, 2500),
        (wanted(size=2600), whole(), Verb.FETCH, 2600, 2600),
        (wanted(), partial(0, 1), Verb.RESUME, 500, 500),
        (wanted(), partial(2), Verb.RESUME, 2000, 2000),
        (wanted(), partial(0, 1, 2), Verb.RESUME, 0, 0),
        (wanted(), partial(0, 1, shared=True), Verb.RESUME, 500, 2500),
        (wanted(), replace(partial(0), held=2500), Verb.RESUME, 1500, 0),
        (wanted(), replace(partial(0), held=1200), Verb.RESUME, 1500, 1300),
        (wanted(), replace(partial(0, shared=True), held=2500), Verb.RESUME, 1500, 2500),
        (wanted(), partial(), Verb.FETCH, 2500, 2500),
        (wanted(), partial(0, size=2400), Verb.FETCH, 2500, 2500),
        (wanted(), partial(0, validator="w"), Verb.FETCH, 2500, 2500),
        (wanted(validator=None), partial(0, validator=None), Verb.FETCH, 2500, 2500),
        (wanted(pin=Pin(2500, A)), partial(0, validator="w"), Verb.RESUME, 1500, 1500),
        (wanted(pin=Pin(2500)), partial(0, validator="w"), Verb.FETCH, 2500, 2500),
        (wanted(pin=Pin(2499)), whole(), Verb.REFUSE, 0, 0),
        (wanted(sha256=A, pin=Pin(2500, B)), whole(B), Verb.REFUSE, 0, 0),
        (wanted(sha256=A, pin=Pin(2500, B)), None, Verb.REFUSE, 0, 0),
        (wanted(size=0), None, Verb.FETCH, 0, 0),
    ],
)
def test_decisions(file: Wanted, found: Found | None, verb: Verb, missing: int, disk: int) -> None:
    action = decide(file, found, 1000)
    assert (action.verb, action.missing_bytes, action.disk_bytes) == (verb, missing, disk)
    assert action.reason


def test_a_plan_adds_up_and_names_what_it_refuses() -> None:
    files = [
        Wanted("a", FileRole.REQUIRED, 1500),
        Wanted("b", FileRole.REQUIRED, 700, pin=Pin(701)),
        Wanted("c", FileRole.REQUIRED, 300),
    ]
    plan = plan_pull(
        id="demo", source="url:x", revision="r1", wanted=files, found={}, segment_bytes=1000
    )
    assert plan.missing_bytes == plan.disk_bytes == 1800
    assert [action.wanted.path for action in plan.refused] == ["b"]
    assert plan.refused[0].reason == "expected 701 bytes, the source has 700"


@given(st.integers(0, 5000), st.integers(1, 700), st.sets(st.integers(0, 20)))
def test_missing_bytes_are_those_of_no_segment(size: int, length: int, have: set[int]) -> None:
    here = {at for at in range(size) if at // length in have}
    assert missing_bytes(size, dict.fromkeys(have, A), length) == size - len(here)
