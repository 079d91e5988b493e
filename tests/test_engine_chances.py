from __future__ import annotations

import random

import pytest

from tokforge_engine.chances import Chances


def test_before_anything_was_seen_it_is_the_prior():
    assert Chances([0.2, 0.5, 0.9], fade=0.99).all() == [0.2, 0.5, 0.9]


def test_each_degree_comes_to_its_own_chance():
    chances = Chances([0.5] * 3, fade=0.999)
    dice = random.Random(1)
    for _ in range(3000):
        sure = dice.randrange(3)
        chances.count(sure, dice.random() < (0.1, 0.5, 0.95)[sure])
    assert chances.all() == pytest.approx([0.1, 0.5, 0.95], abs=0.06)
    assert chances.often() == pytest.approx([1 / 3] * 3, abs=0.05)


def test_what_is_wrong_at_one_degree_is_expected_less_at_all():
    chances = Chances([0.3, 0.9], fade=0.99)
    for _ in range(10):
        chances.count(1, False)
    assert chances.all()[0] < 0.15


def test_old_counts_fade():
    chances = Chances([0.5], fade=0.9)
    for _ in range(100):
        chances.count(0, False)
    for _ in range(40):
        chances.count(0, True)
    assert chances.all()[0] > 0.85


def test_trust_may_be_taken_back():
    chances = Chances([0.5], fade=1.0)
    for _ in range(100):
        chances.count(0, True)
    chances.trust_less(0.0)
    assert chances.all() == [0.5]
