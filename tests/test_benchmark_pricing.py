"""The prices that the benchmarks compare by."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from harness.models import Forward
from harness.pricing import Prices, Run


def run(*forwards, outside=0.0):
    seconds = sum(forward.seconds for forward in forwards) + outside
    return Run(9, tuple(forwards), seconds, drafted=0, accepted=0)


def test_each_kind_of_forward_costs_its_median():
    # One busy moment: 50 seconds for what takes 1.
    plain = run(*[Forward("target", 1, seconds) for seconds in (1.0, 1.0, 50.0, 1.0)], outside=0.5)
    wide = run(Forward("target", 3, 2.0), Forward("target", 1, 1.0))
    prices = Prices([plain, wide])
    assert prices.seconds(plain) == pytest.approx(4.5)
    assert prices.total([plain, wide]) == pytest.approx(7.5)


def test_a_draft_that_catches_up_costs_a_token_and_so_much_for_each_more():
    drafts = [Forward("draft", n, seconds) for n, seconds in ((1, 1.0), (2, 1.4), (11, 3.0))]
    prices = Prices([run(Forward("target", 1, 5.0), *drafts)])
    assert prices.draft(1) == 1.0
    assert prices.draft(2) == 1.4
    assert prices.draft(21) == pytest.approx(5.0)


def test_lengths_are_what_was_verified():
    assert run(
        Forward("target", 1, 1.0), Forward("draft", 1, 1.0), Forward("target", 4, 1.0)
    ).lengths == [0, 3]
