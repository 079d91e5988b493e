"""`tokforge check` with the real engine on the embedded pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import tokforge
from demo_pair import needs_mnn
from tokforge_models.cli.app import run

pytestmark = needs_mnn


@pytest.fixture
def pair(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["pull", "demo-chat", "demo-draft"]) == 0
    capsys.readouterr()
    return home


def test_the_document_tells_of_each_mode(pair: Path) -> None:
    ended = tokforge("check", "demo-chat", "--max-tokens", "24", "-d", "3", "--json")
    assert ended.code == 0
    document = ended.document
    assert document["ok"] is True
    assert document["draft"] == "demo-draft"
    modes = {mode["numerics"]: mode for mode in document["modes"]}
    assert list(modes) == ["fast", "exact", "reference"]
    assert modes["exact"]["same"] == modes["exact"]["of"] == 4
    assert modes["exact"]["first_difference"] is None
    assert modes["reference"]["divergence"] == 0.0
    for mode in modes.values():
        assert mode["promise"]
        assert 0.0 < mode["accepted"] <= 1.0
        assert 0.9 <= mode["agreement"] <= 1.0
        assert 0.0 <= mode["divergence"] < 1.0
        different = mode["first_difference"]
        assert (different is None) == (mode["same"] == mode["of"])
        if different:
            assert different["plain"]["id"] != different["paired"]["id"]
            assert different["gap"] >= 0.0


def test_for_people_and_with_drawn_tokens(pair: Path) -> None:
    ended = tokforge("check", "demo-chat", "--max-tokens", "16", "--temperature", "0.8")
    assert ended.code == 0
    assert "4 of 4 paired texts are the plain text: kept" in ended.out
    assert ended.out.count("KL divergence") == 3
    assert ended.out.count("promised: ") == 3
    # Left to auto, some lengths are fixed, so that something is drafted wherever it is checked.
    assert "  0% of drafted" not in ended.out
    assert "wide reading" not in ended.out


def test_without_a_drafter_there_is_nothing_to_check(pair: Path) -> None:
    ended = tokforge("check", "demo-chat", "--draft", "none", "--json")
    assert ended.code == 7
    assert "nothing drafts for demo-chat" in ended.document["error"]["message"]
