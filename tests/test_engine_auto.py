from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from tokforge_engine.auto import AutoPolicy
from tokforge_engine.costs import Costs
from tokforge_engine.learned import Learned
from tokforge_engine.lookup import Lookup
from tokforge_engine.policy import FixedLength
from virtual_pair import DEAR, FLAT, STEEP, VirtualPair, best

# What a trained draft shows: mostly sure, and right the more often the surer it is.
CHANCES = (0.3, 0.4, 0.5, 0.65, 0.78, 0.88, 0.95, 0.99)
OFTEN = (1, 1, 1, 1, 1, 1, 2, 4)
SEEDS = range(4)


def auto(pair, learned=None):
    return AutoPolicy(pair.costs, pair, None, learned, clock=pair.clock)


def speed(costs, chance, tokens=3000):
    pairs = [VirtualPair(costs, [chance], seed=seed) for seed in SEEDS]
    return mean(pair.run(auto(pair), tokens) for pair in pairs)


@pytest.mark.parametrize("costs", [FLAT, STEEP], ids=["flat", "steep"])
@pytest.mark.parametrize("chance", [0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
def test_it_comes_close_to_the_best_fixed_length(costs, chance):
    assert speed(costs, chance) >= 0.97 * best(costs, chance)


def with_confidence(costs, make, *, scale=1.0, shows=True):
    chances = [chance * scale for chance in CHANCES]
    pairs = [VirtualPair(costs, chances, OFTEN, seed=seed, shows=shows) for seed in SEEDS]
    return mean(pair.run(make(pair), 2000) for pair in pairs)


@pytest.mark.parametrize("costs", [FLAT, STEEP], ids=["flat", "steep"])
@pytest.mark.parametrize("scale", [1.0, 0.9])
def test_with_confidence_it_is_faster_than_any_fixed_length(costs, scale):
    lengths = [
        with_confidence(costs, lambda pair, d=d: FixedLength(pair, d), scale=scale)
        for d in range(7)
    ]
    assert with_confidence(costs, auto, scale=scale) >= max(lengths)
    assert with_confidence(costs, auto, scale=scale) >= with_confidence(
        costs, auto, scale=scale, shows=False
    )


@pytest.mark.parametrize("costs", [STEEP, DEAR], ids=["steep", "dear"])
def test_a_worthless_draft_costs_little(costs):
    pair = VirtualPair(costs, [0.0])
    policy = auto(pair)
    assert pair.run(policy, 128) >= 0.95
    assert pair.run(policy, 1000) >= 0.97


def test_a_draft_as_dear_as_its_target_never_runs():
    pair = VirtualPair(DEAR, [0.99])
    assert pair.run(auto(pair), 1000) == pytest.approx(1.0)


@pytest.mark.parametrize("chance", [0.0, 0.95])
def test_what_was_learned_serves_the_next_session(chance):
    cold, warm = [], []
    for seed in range(12):
        pair = VirtualPair(FLAT, [chance], seed=seed)
        learned = Learned()
        cold.append(pair.run(auto(pair, learned), 64))
        pair.run(auto(pair, learned), 500)
        warm.append(pair.run(auto(pair, learned), 64))
    assert mean(warm) > 1.01 * mean(cold)


def test_a_change_of_subject_is_noticed():
    pair = VirtualPair(STEEP, [0.0])
    policy = auto(pair)
    pair.run(policy, 500)
    assert pair.lengths[-100:].count(0) >= 95
    pair.chances = [0.95]
    pair.run(policy, 2000)
    # The last token has no room for a draft.
    assert 0 not in pair.lengths[-100:-1]


def test_a_machine_that_slows_down_as_a_whole_changes_no_choice():
    lengths = []
    for slower in (1.0, 7.0):
        pair = VirtualPair(STEEP, [0.8], slower=slower)
        pair.run(auto(pair), 2000)
        lengths.append(mean(pair.lengths[200:]))
    assert lengths[0] == pytest.approx(lengths[1], 0.1)


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("wrong", [0.75, 1.3])
def test_a_width_that_was_measured_badly_at_load_costs_little(width, wrong):
    measured = [
        seconds * (wrong if n == width else 1.0) for n, seconds in enumerate(STEEP.verify, 1)
    ]
    speeds = []
    for seed in SEEDS:
        pair = VirtualPair(STEEP, [0.8], seed=seed)
        costs = replace(STEEP, verify=tuple(measured))
        speeds.append(pair.run(AutoPolicy(costs, pair, None, clock=pair.clock), 2000))
    assert mean(speeds) >= 0.93 * best(STEEP, 0.8)


def test_never_more_than_there_is_room_for():
    pair = VirtualPair(FLAT, [1.0])
    policy = auto(pair)
    pair.run(policy, 200)
    for most in range(8):
        assert len(policy.draft([0] * 30, most).tokens) <= most
        policy.keep(0)


def lookup_speed(text, *, model=None, costs=STEEP):
    """Tokens for the time of a plain step, where the text is known beforehand."""
    policy = AutoPolicy(costs, model, Lookup(), clock=lambda: 0.0)
    policy.begin(text[:20])
    place, seconds, by = 21, 0.0, set()
    while place < len(text):
        draft = policy.draft(text[:place], len(text) - place - 1)
        by.add(draft.by)
        d = len(draft.tokens)
        seconds += costs.verify[d]
        policy.verified(d, costs.verify[d])
        kept = 0
        while kept < d and draft.tokens[kept] == text[place + kept]:
            kept += 1
        policy.keep(place + kept)
        place += kept + 1
    return (len(text) - 21) / seconds, by


def test_a_text_that_repeats_itself_is_looked_up():
    text = [*range(100, 160)] * 10
    fast, by = lookup_speed(text)
    assert by == {None, "lookup"}
    assert fast > 2.0


def test_a_text_without_repetitions_is_decoded_plainly():
    assert lookup_speed([*range(600)]) == (1.0, {None})


def test_matches_that_mislead_are_soon_ignored():
    # Each pair of tokens comes again and again, with another successor each time.
    text = [token for number in range(300) for token in (1, 2, 1000 + number)]
    fast, _ = lookup_speed(text)
    assert fast >= 0.95


def test_beside_a_worthless_model_lookup_still_drafts():
    text = [*range(100, 160)] * 10
    model = VirtualPair(DEAR, [0.0])
    fast, by = lookup_speed(text, model=model, costs=DEAR)
    assert by == {None, "lookup"}
    assert fast > 2.0


def test_where_nothing_can_be_verified_nothing_is_drafted():
    policy = AutoPolicy(Costs(verify=(1.0,)), None, Lookup())
    assert policy.draft([1, 2, 3, 1, 2], 9).tokens == ()
