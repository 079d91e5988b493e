"""Whose word counts about which revision a source has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hub import running
from store_kit import FastDisk, MemoryHub, bundle_of, make_files
from tokforge_models.bundle import Bundle, Source
from tokforge_models.progress import silent
from tokforge_models.pulling.offer import Ask, own_offer
from tokforge_models.pulling.pull import pull
from tokforge_models.sources.network import Network
from tokforge_models.sources.source import openers
from tokforge_models.store.store import Store

FILES = make_files()
OTHER = {**FILES, "llm.mnn": bytes(len(FILES["llm.mnn"]))}
KNOWN = Source("hf", "a/b", "r1")
SAME_REPOSITORY = Source("hf", "a/b", "other")
STRANGER = Source("url", "http://anything")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home", FastDisk())


def revision(
    store: Store, bundle: Bundle, source: Source, commit: str | None, *, foreign: bool = False
) -> str:
    hub = MemoryHub(dict(FILES), commit=commit, foreign=foreign)
    return own_offer(Ask(bundle, store, source, hub, False, silent)).revision


@pytest.mark.parametrize(
    ("source", "commit", "foreign", "told"),
    [
        (KNOWN, None, False, "r1"),
        (KNOWN, "c2", False, "r1"),
        (KNOWN, "c2", True, "served-"),
        (KNOWN, "r1", True, "served-"),
        (SAME_REPOSITORY, "c2", False, "c2"),
        (SAME_REPOSITORY, "r1", False, "r1"),
        (STRANGER, None, False, "served-"),
        (STRANGER, "c2", False, "c2"),
        (STRANGER, "r1", False, "served-"),
        (STRANGER, "c2", True, "served-"),
    ],
)
def test_only_whom_the_registry_names_has_its_revision_unpinned(
    store: Store, source: Source, commit: str | None, foreign: bool, told: str
) -> None:
    bundle = bundle_of(FILES, pinned=False, sources=(KNOWN,))
    assert revision(store, bundle, source, commit, foreign=foreign).startswith(told)


@pytest.mark.parametrize("source", [KNOWN, SAME_REPOSITORY, STRANGER])
@pytest.mark.parametrize("foreign", [False, True])
def test_pins_of_every_required_file_are_as_good_as_a_word(
    store: Store, source: Source, foreign: bool
) -> None:
    bundle = bundle_of(FILES, sources=(KNOWN,))
    assert revision(store, bundle, source, "c2", foreign=foreign) == "r1"
    first, *rest = bundle.files
    half = replace(bundle, files=(replace(first, sha256=None), *rest))
    assert (revision(store, half, source, None, foreign=foreign) == "r1") == (
        source == KNOWN and not foreign
    )


def test_a_stranger_pins_nothing_of_the_registrys_revision(store: Store) -> None:
    bundle = bundle_of(FILES, pinned=False, sources=(KNOWN,))
    strange = pull(bundle, store, source=str(STRANGER), fetchers=MemoryHub(dict(OTHER)).opener())
    assert strange.revision.startswith("served-")
    assert not store.pins.seen("demo", "r1")
    own = pull(bundle, store, fetchers=MemoryHub(dict(FILES)).opener())
    assert (own.revision, store.current("demo")) == ("r1", "r1")


def test_a_hub_that_stands_in_for_the_usual_one_pins_nothing_of_its_commits(store: Store) -> None:
    with running() as hub:
        commit = hub.commit("a/b", dict(OTHER))
        bundle = bundle_of(
            FILES, pinned=False, revision=commit, sources=(Source("hf", "a/b", commit),)
        )
        pulled = pull(bundle, store, fetchers=openers(Network(endpoint=hub.url)))
    assert pulled.revision.startswith("served-")
    assert not store.pins.seen("demo", commit)
