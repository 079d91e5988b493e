"""What is good, worth knowing or broken, of machines that are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profile_kit import FAST
from tokforge_models.bundle import Role, State
from tokforge_models.device import GIB, Device, Platform
from tokforge_models.doctor.facts import EXTRAS, Facts, Home, Mnn, Profile, Python
from tokforge_models.doctor.findings import Finding, Kind, Level, findings, standing
from tokforge_models.errors import Problem
from tokforge_models.store.store import BundleStatus

HERE = Device(Platform.LINUX, "a chip", round(15.6 * GIB), 2)
READY = BundleStatus("chat", Role.CHAT, State.READY, "r1", 9_000_000, 0, Path("chat"))
PAIR = Profile(
    Path("pair.json"),
    replace(FAST, device=HERE, plain=45.0, paired=41.2),
    "chat",
    "draft",
)
GOOD = Facts(
    python=Python("CPython 3.11.7", (3, 11), True),
    tokforge="0.1.0",
    mnn=Mnn("3.6.1", True, None, {"cpu": "here", "opencl": "missing", "vulkan": "unknown"}),
    device=HERE,
    free_memory=8 * GIB,
    packages={name: "1.0" for packages in EXTRAS.values() for name in packages},
    layers=(Path("registry.yaml"), Path("mine.yaml")),
    registry_problems=(),
    home=Home(Path("home"), True, None, 60_000_000_000, False, ()),
    store_faults=(),
    bundles=(READY,),
    profiles=(PAIR,),
    faulty_profiles=(),
    network={"HF_ENDPOINT": "https://hub.example", "HF_TOKEN": "is set"},
)
FAULT = Problem("mine.yaml", 3, "bundles.x", "a text", "nothing")


def about(subject: str, facts: Facts) -> list[Finding]:
    return [each for each in findings(facts) if each.subject == subject]


def test_a_good_machine_has_nothing_to_do() -> None:
    assert {each.level for each in findings(GOOD)} == {Level.OK}
    assert not any(each.next for each in findings(GOOD))
    said = {each.subject: each.text for each in findings(GOOD)}
    assert said["backends"] == "here: cpu; missing: opencl; unknown: vulkan"
    assert said["memory"] == "15.6 GiB, sold as 16 GB; 8.0 GiB free"
    assert said["device"] == "linux, a chip, 2 cores"
    assert said["profile"] == (
        "chat with draft: 0.92 times (41.2 tokens a second, plain 45.0), by bench on 2026-12-01"
    )


@pytest.mark.parametrize(
    ("change", "subject", "kind", "words"),
    [
        ({"mnn": Mnn(None, True, None, {})}, "MNN", Kind.ENGINE, "no model can run"),
        (
            {"mnn": Mnn("3.6.1", True, "importing it ends the process (SIGILL)", {})},
            "MNN", Kind.ENGINE, "SIGILL",
        ),
        (
            {"mnn": Mnn("3.6.1", True, None, {"cpu": "unknown"})},
            "backends", Kind.ENGINE, "unknown: cpu",
        ),
        (
            {"home": replace(GOOD.home, write_fault="Permission denied")},
            "home", Kind.STORAGE, "Permission denied",
        ),
        (
            {"home": replace(GOOD.home, unreadable=(Path("home/x"),))},
            "home", Kind.STORAGE, "cannot be read: ",
        ),
        ({"store_faults": ("pins.json is not valid",)}, "store", Kind.INTEGRITY, "pins.json"),
        ({"registry_problems": (FAULT, FAULT)}, "registry", Kind.REGISTRY, "(and 1 more)"),
        (
            {"bundles": (replace(READY, state=State.DAMAGED, problems=("llm.mnn is missing",)),)},
            "chat", Kind.INTEGRITY, "llm.mnn is missing",
        ),
    ],
)  # fmt: skip
def test_a_problem_has_a_kind_and_a_next_step(change, subject, kind, words) -> None:
    broken = [each for each in findings(replace(GOOD, **change)) if each.level is Level.PROBLEM]
    assert [(each.subject, each.kind) for each in broken] == [(subject, kind)]
    assert words in broken[0].text
    assert broken[0].next


@pytest.mark.parametrize(
    ("change", "subject", "words", "remedy"),
    [
        ({"python": Python("CPython 3.15.0", (3, 15), True)}, "python", "3.11 to 3.14", ""),
        ({"python": Python("CPython 3.12.0", (3, 12), False)}, "python", "32 bits", ""),
        ({"mnn": Mnn(None, False, None, {})}, "MNN", "no wheel for this system", ""),
        ({"device": Device(Platform.LINUX)}, "memory", "cannot be told", ""),
        ({"home": replace(GOOD.home, is_open=True)}, "home", "every user", "chmod o-w"),
        (
            {"home": replace(GOOD.home, free_bytes=300_000_000)},
            "disk", "0.3 GB free: too little", "tokforge prune",
        ),
        (
            {"bundles": (replace(READY, state=State.PARTIAL, partial_bytes=5_000_000),)},
            "chat", "5.0 MB of it are here", "tokforge pull chat",
        ),
        (
            {"bundles": (replace(READY, partial_bytes=5_000_000),)},
            "chat", "5.0 MB are left", "tokforge prune --partials",
        ),
        (
            {"bundles": (replace(READY, problems=("llm.mnn was touched",)),)},
            "chat", "llm.mnn was touched", "tokforge verify chat",
        ),
        (
            {"faulty_profiles": ((Path("x.json"), FAULT),)},
            "profile", "left out: mine.yaml:3", "remove x.json",
        ),
        (
            {"packages": {}},
            "[plot]",
            "no `tokforge bench --plot`, `tokforge tune --plot`",
            "pip install 'tokforge-models[plot]'",
        ),
        (
            {"packages": {k: v for k, v in GOOD.packages.items() if k != "llguidance"}},
            "[serve]", "by a JSON schema", "pip install 'tokforge-models[serve]'",
        ),
        ({"network": {"HF_HUB_OFFLINE": "1"}}, "network", "not asked", "unset HF_HUB_OFFLINE"),
        (
            {"network": {"HF_ENDPOINT": "http://hub.example"}},
            "network", "not an encrypted address", "set HF_ENDPOINT",
        ),
    ],
)  # fmt: skip
def test_a_note_breaks_nothing(change, subject, words, remedy) -> None:
    facts = replace(GOOD, **change)
    notes = [each for each in about(subject, facts) if each.level is Level.NOTE]
    assert len(notes) == 1
    assert words in notes[0].text
    assert notes[0].next.startswith(remedy)
    assert not any(each.level is Level.PROBLEM for each in findings(facts))


def test_a_target_alone_is_told_with_what_lookup_gains() -> None:
    alone = replace(PAIR.measurement, draft=None, paired=54.0)
    for lookup, said in (
        (False, "chat alone: 45.0 tokens a second, by bench on 2026-12-01"),
        (
            True,
            "chat alone: 45.0 tokens a second, 1.20 times (54.0) with drafts from the context, "
            "by bench on 2026-12-01",
        ),
    ):
        profile = Profile(Path("x"), replace(alone, lookup=lookup), "chat", None)
        (told,) = about("profile", replace(GOOD, profiles=(profile,)))
        assert told.text == said


def test_an_empty_store_has_a_first_step() -> None:
    (first,) = about("bundles", replace(GOOD, bundles=()))
    assert (first.level, first.next) == (Level.OK, "tokforge demo")


@pytest.mark.parametrize(
    ("profile", "device", "mnn", "why"),
    [
        (PAIR, HERE, "3.6.1", None),
        (PAIR, HERE, None, None),
        (PAIR, HERE, "3.7.0", "measured with MNN 3.6.1, this is 3.7.0: measure again"),
        (
            PAIR,
            Device(Platform.LINUX, "another"),
            "3.6.1",
            "measured on another device: a chip, linux",
        ),
        (
            replace(PAIR, target=None),
            HERE,
            "3.6.1",
            "no installed bundle has the content of its target",
        ),
        (
            replace(PAIR, draft=None),
            HERE,
            "3.6.1",
            "no installed bundle has the content of its draft",
        ),
        (
            replace(PAIR, measurement=replace(PAIR.measurement, draft=None), draft=None),
            HERE,
            "3.6.1",
            None,
        ),
    ],
)
def test_whether_a_profile_counts_here_and_now(profile, device, mnn, why) -> None:
    assert standing(profile, device, mnn) == why


def test_a_profile_that_does_not_count_says_why_and_what_next() -> None:
    (old,) = about("profile", replace(GOOD, mnn=replace(GOOD.mnn, version="3.7.0")))
    assert old.level is Level.NOTE
    assert "this is 3.7.0" in old.text
    assert old.next == "tokforge bench chat --save"
    (gone,) = about("profile", replace(GOOD, profiles=(replace(PAIR, target=None),)))
    assert "a target (aaaaaaaa) with draft" in gone.text
    assert gone.next.startswith("remove pair.json")
