"""Which profiles a bench leaves: none that a second bench might contradict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measuring_kit import EXAMPLE, reports
from tokforge_models.bundle import Settings
from tokforge_models.measuring.keeping import Judged, judge, verdict
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Way
from tokforge_models.measuring.report import Model, PairReport, Report, Row
from tokforge_models.resolution.measurement import (
    MeasuredBy,
    read_measurement,
    write_measurement,
)

D2, D4 = Way("model", 2), Way("model", 4)
DRAFT = Model("b", "cd" * 32, Settings(threads=1, sampler="greedy"))
STEADY = (1.0, 1.01, 0.99, 1.0)


def times(ratio: float, spread: tuple[float, ...] = STEADY) -> tuple[float, ...]:
    return tuple(ratio * each for each in spread)


def pair(draft: Model | None = DRAFT, **ways: dict[Way, tuple[float, ...]]) -> PairReport:
    """Rows of workloads, each with times plain by way; plain is 40 tokens a second."""
    rows = tuple(
        Row(
            workload,
            way,
            prompt_tokens=20,
            speeds=tuple(40.0 * each for each in ratios),
            ratios=ratios,
            prefill_speeds=(),
            first_token_seconds=(),
            drafted=(),
            accepted=(),
            same=1,
            of=1,
        )
        for workload, of_ways in ways.items()
        for way, ratios in {PLAIN: (1.0,) * 4, **of_ways}.items()
    )
    return PairReport(draft, True, rows, (), None, None)


def report(*pairs: PairReport) -> Report:
    return replace(EXAMPLE, pairs=pairs)


def judged(*pairs: PairReport) -> tuple[Judged, ...]:
    return judge(report(*pairs))


@pytest.mark.parametrize(
    ("ratios", "found"),
    [
        (times(1.3), "faster"),
        (times(0.8), "slower"),
        (times(1.0), "same"),
        (times(1.01), "same"),
        (times(1.1, (1.0, 1.4, 0.7, 1.0)), None),
        (times(1.0, (1.0, 1.4, 0.7, 1.0)), None),
        ((1.5,), None),
        ((), None),
    ],
)
def test_a_verdict_is_what_another_run_would_find(ratios, found) -> None:
    assert verdict(ratios) == found


def test_a_gain_is_kept_with_what_it_ran_with() -> None:
    alone, paired = judged(pair(prose={AUTO: times(1.5), D2: times(1.2)}))
    profile = paired.profile
    assert profile is not None
    assert (profile.target, profile.draft) == ("ab" * 32, "cd" * 32)
    assert (profile.by, profile.mnn, profile.d) == (MeasuredBy.BENCH, "3.6.1", "auto")
    assert profile.plain == pytest.approx(40.0)
    assert profile.ratio == pytest.approx(1.5)
    assert profile.shows_gain
    # What a bench samples with says nothing about other runs.
    assert profile.draft_settings == Settings(threads=1)
    assert alone.profile is not None
    assert alone.profile.draft is None
    assert alone.profile.ratio == 1.0


def test_a_loss_is_kept_too() -> None:
    _, paired = judged(pair(prose={AUTO: times(0.9)}))
    assert paired.profile is not None
    assert paired.profile.shows_loss
    assert "0.90 times" in paired.why


def test_what_is_hidden_in_noise_is_not_kept() -> None:
    _, paired = judged(pair(prose={AUTO: times(1.05, (1.0, 1.4, 0.7, 1.0))}))
    assert paired.profile is None
    assert "more --repetitions help" in paired.why
    # However noisy, twice the speed is a gain.
    _, paired = judged(pair(prose={AUTO: times(2.5, (1.0, 1.2, 0.9, 1.1))}))
    assert paired.profile is not None


def test_a_fixed_length_must_surely_be_faster_than_auto() -> None:
    def d(**ways) -> object:
        profile = judged(pair(**ways))[1].profile
        assert profile is not None
        return profile.d

    assert d(prose={AUTO: times(1.3), D2: times(1.6), D4: times(1.8)}) == 4
    assert d(prose={AUTO: times(1.3), D2: times(1.31)}) == "auto"
    assert d(prose={AUTO: times(2.0), D2: times(2.2, (1.0, 1.4, 0.8, 1.0))}) == "auto"
    # Without auto, the fastest.
    assert d(prose={D2: times(1.6), D4: times(1.2)}) == 2
    # All workloads count.
    both = {AUTO: times(1.5), D4: times(2.0)}
    assert d(prose=both, code={AUTO: times(1.5), D4: times(1.0)}) == "auto"


def test_a_way_that_lacks_a_workload_or_a_repetition_does_not_win() -> None:
    _, paired = judged(pair(prose={AUTO: times(1.5), D4: times(9.0)}, code={AUTO: times(1.5)}))
    assert paired.profile is not None
    assert paired.profile.d == "auto"
    short = {AUTO: times(1.5), D4: times(9.0)[:3]}
    _, paired = judged(pair(prose={AUTO: times(1.5), D4: times(9.0)}, code=short))
    assert paired.profile is not None
    assert paired.profile.d == "auto"


@pytest.mark.parametrize(
    ("prose", "copy", "lookup"),
    [
        (0.9, 1.4, True),
        (1.2, 1.2, True),
        (0.9, 0.95, False),
        (1.0, 1.0, None),
    ],
)
def test_lookup_is_worth_it_where_a_workload_gains(prose, copy, lookup) -> None:
    ways = {name: {LOOKUP: times(ratio)} for name, ratio in (("prose", prose), ("copy", copy))}
    (alone,) = judged(pair(None, **ways))
    assert alone.profile is not None
    assert alone.profile.lookup is lookup
    gain = (prose * copy) ** 0.5 if lookup and prose * copy > 1 else 1.0
    assert alone.profile.ratio == pytest.approx(gain)
    assert alone.profile.d == ("auto" if lookup else None)
    _, paired = judged(pair(**{name: {**of, AUTO: times(1.5)} for name, of in ways.items()}))
    assert paired.profile is not None
    assert paired.profile.lookup is lookup


def test_of_several_pairs_each_is_judged_and_the_target_once() -> None:
    other = replace(DRAFT, id="c", content="ef" * 32)
    found = judged(pair(prose={AUTO: times(1.5)}), pair(other, prose={AUTO: times(0.5)}))
    assert [each.draft for each in found] == [None, "b", "c"]


def test_nothing_is_kept_of_what_is_unknown() -> None:
    good = pair(prose={AUTO: times(1.5)})
    stopped = replace(report(good), complete=False)
    nameless = replace(report(good), target=replace(EXAMPLE.target, content=None))
    for one in (stopped, nameless, report()):
        assert [each.profile for each in judge(one)] == [None]
    _, paired = judged(pair(replace(DRAFT, content=None), prose={AUTO: times(1.5)}))
    assert paired.profile is None


@given(reports)
def test_any_report_leaves_profiles_that_can_be_written_and_read(tmp_path_factory, one) -> None:
    path = tmp_path_factory.getbasetemp() / "kept.json"
    for each in judge(one):
        assert each.why
        if each.profile:
            assert one.complete
            path.write_bytes(write_measurement(each.profile))
            read = read_measurement(path)
            assert read.ratio == pytest.approx(each.profile.ratio, rel=1e-2)


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=6))
def test_a_verdict_agrees_with_the_median(ratios) -> None:
    middle = sorted(ratios)[len(ratios) // 2]
    lower = sorted(ratios)[(len(ratios) - 1) // 2]
    match verdict(ratios):
        case "faster":
            assert middle > 1
        case "slower":
            assert lower < 1
