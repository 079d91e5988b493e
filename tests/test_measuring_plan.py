"""Plans: everything once a repetition, ways in turn, no prompt after itself."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Plan, Way, ways_for
from tokforge_models.measuring.workloads import Workload

workloads = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
    lambda sizes: tuple(
        Workload(f"w{number}", tuple(f"{number}.{prompt}" for prompt in range(size)))
        for number, size in enumerate(sizes)
    )
)
plans = st.builds(
    Plan,
    ways=st.integers(0, 4).map(
        lambda most: ways_for(range(1, most + 1), draft=most > 0, lookup=True)
    ),
    workloads=workloads,
    repetitions=st.integers(1, 4),
    tokens=st.just(8),
)


def test_ways() -> None:
    assert ways_for([1, 3], draft=False, lookup=False) == (PLAIN,)
    assert ways_for([1, 3], draft=False, lookup=True) == (PLAIN, LOOKUP)
    every = ways_for([1, 3], draft=True, lookup=True)
    assert every == (PLAIN, Way("model", 1), Way("model", 3), LOOKUP, AUTO)
    assert [way.name for way in every] == ["plain", "d 1", "d 3", "lookup", "auto"]


@given(plans)
def test_everything_runs_once_a_repetition(plan: Plan) -> None:
    steps = list(plan.steps())
    assert len(steps) == len(plan)
    assert set(Counter(steps).values()) == {1}
    assert [step.repetition for step in steps] == sorted(step.repetition for step in steps)
    for step in steps:
        (workload,) = (each for each in plan.workloads if each.name == step.workload)
        assert workload.prompts[step.prompt] == step.text


@given(plans)
def test_no_prompt_follows_itself_where_there_are_two(plan: Plan) -> None:
    steps = list(plan.steps())
    if sum(len(workload.prompts) for workload in plan.workloads) > 1:
        assert all(one.text != other.text for one, other in pairwise(steps))


@given(plans)
def test_each_repetition_begins_with_another_way(plan: Plan) -> None:
    first = {}
    for step in plan.steps():
        first.setdefault(step.repetition, step.way)
    turns = min(plan.repetitions, len(plan.ways))
    assert len({first[turn] for turn in range(turns)}) == turns


@given(plans)
def test_warm_up_is_each_way_once(plan: Plan) -> None:
    assert tuple(step.way for step in plan.warm_up()) == plan.ways
