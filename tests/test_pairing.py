"""Conditions: when one set of them holds wherever another does."""

from __future__ import annotations

import itertools

import pytest

from tokforge_models.registry.pairing import Conditions

ANY = Conditions()
LINUX = Conditions(platforms=("linux",))
DESKTOP = Conditions(platforms=("linux", "macos"))
CHIPS = Conditions(chips=("SM8850",))
NO_CHIPS = Conditions(chips=())
PACK = Conditions(if_installed=("pack",))
BOTH = Conditions(if_installed=("pack", "other"))
FASTER = Conditions(if_measured_faster=True)


@pytest.mark.parametrize(
    ("these", "others", "implied"),
    [
        (ANY, ANY, True),
        (LINUX, ANY, True),
        (ANY, LINUX, False),
        (LINUX, DESKTOP, True),
        (DESKTOP, LINUX, False),
        (BOTH, PACK, True),
        (PACK, BOTH, False),
        (CHIPS, NO_CHIPS, False),
        (NO_CHIPS, CHIPS, True),
        (FASTER, ANY, True),
        (ANY, FASTER, False),
        (FASTER, FASTER, True),
        (LINUX, CHIPS, False),
    ],
)
def test_imply(these: Conditions, others: Conditions, implied: bool) -> None:
    assert these.imply(others) is implied


def test_implication_is_transitive() -> None:
    everything = (ANY, LINUX, DESKTOP, CHIPS, NO_CHIPS, PACK, BOTH, FASTER)
    for a, b, c in itertools.product(everything, repeat=3):
        if a.imply(b) and b.imply(c):
            assert a.imply(c)
