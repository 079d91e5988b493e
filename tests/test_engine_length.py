from __future__ import annotations

import random

import pytest

from tokforge_engine.length import SCORED, AutoLength, Costs, FixedLength, Round

FLAT = Costs(verify=(1.0,) * 8, draft=0.2, catch_up=0.06)
# The shapes of the forwards of a 0.6B model on two cores: the second token is dear.
STEEP = Costs(verify=(1.0, 1.28, 1.41, 1.7, 2.22, 2.78, 2.9, 3.09), draft=0.08, catch_up=0.03)
DEAR = Costs(verify=STEEP.verify, draft=1.0, catch_up=0.3)


class Clock:
    """Decodes nothing, on a virtual clock: each position is kept with one chance."""

    def __init__(self, costs, chance, seed=0, slower=1.0):
        self.costs = costs
        self.chance = chance
        self.slower = slower
        self.random = random.Random(seed)
        self.seconds = 0.0
        self.tokens = 0
        self.lengths = []
        self.unseen = 0

    def run(self, controller, tokens, prompt=20):
        controller.begin(prompt)
        self.unseen = prompt
        goal = self.tokens + tokens
        while self.tokens < goal:
            if controller.wants_score():
                self.seconds += SCORED * self.costs.catch_up * self.slower
                controller.learn([self.random.random() < self.chance for _ in range(SCORED)])
                self.unseen = self.tokens
            d = controller.pick(goal - self.tokens - 1)
            kept = 0
            while kept < d and self.random.random() < self.chance:
                kept += 1
            draft = d * self.costs.draft + (self.unseen * self.costs.catch_up if d else 0.0)
            verify = self.costs.verify[d] * self.slower
            self.unseen = 1 if d else self.unseen + 1
            self.lengths.append(d)
            self.seconds += draft * self.slower + verify
            self.tokens += kept + 1
            controller.observe(Round(d, kept, draft * self.slower, verify))
        return self.tokens / self.seconds


def fixed(costs, chance, d):
    """Tokens a second of a fixed length, by the formula."""
    kept = sum(chance**place for place in range(d + 1))
    return kept / (costs.verify[d] + d * costs.draft + (costs.catch_up if d else 0.0))


def best(costs, chance):
    return max(fixed(costs, chance, d) for d in range(len(costs.verify)))


def test_a_fixed_length_is_what_there_is_room_for():
    assert [FixedLength(3).pick(most) for most in (0, 2, 3, 9)] == [0, 2, 3, 3]


@pytest.mark.parametrize("chance", [0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
def test_on_a_flat_curve_it_comes_close_to_the_optimum(chance):
    assert Clock(FLAT, chance).run(AutoLength(FLAT), 3000) >= 0.97 * best(FLAT, chance)


@pytest.mark.parametrize("chance", [0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
def test_on_a_steep_curve_it_comes_close_to_the_optimum(chance):
    assert Clock(STEEP, chance).run(AutoLength(STEEP), 3000) >= 0.95 * best(STEEP, chance)


@pytest.mark.parametrize("costs", [STEEP, DEAR])
def test_a_worthless_draft_costs_little_once_it_is_known(costs):
    controller = AutoLength(costs)
    Clock(costs, 0.0).run(controller, 300)
    assert Clock(costs, 0.0, seed=1).run(controller, 1000) >= 0.97


@pytest.mark.parametrize("costs", [STEEP, DEAR])
def test_a_worthless_draft_costs_little_from_the_first_token_on(costs):
    assert Clock(costs, 0.0).run(AutoLength(costs), 128) >= 0.95


def test_a_draft_as_dear_as_its_target_rests_however_good_it_is():
    clock = Clock(DEAR, 0.6)
    assert clock.run(AutoLength(DEAR), 1000) >= 0.97


def test_a_change_of_subject_is_noticed():
    controller = AutoLength(STEEP)
    clock = Clock(STEEP, 0.0)
    clock.run(controller, 500)
    assert clock.lengths[-100:].count(0) >= 95
    clock.chance = 0.95
    clock.run(controller, 2000)
    # The last token has no room for a draft.
    assert 0 not in clock.lengths[-100:-1]


def test_a_machine_that_slows_down_as_a_whole_changes_no_choice():
    quick, slow = Clock(STEEP, 0.8), Clock(STEEP, 0.8, slower=7.0)
    quick.run(AutoLength(STEEP), 2000)
    slow.run(AutoLength(STEEP), 2000)
    half = len(quick.lengths) // 2
    assert sum(quick.lengths[half:]) / half == pytest.approx(sum(slow.lengths[half:]) / half, 0.1)


def test_never_more_than_there_is_room_for():
    controller = AutoLength(FLAT)
    controller.begin(1)
    for most in range(8):
        assert controller.pick(most) <= most
