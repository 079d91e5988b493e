"""Trials made with sessions: stand-ins with faults and little memory, and the embedded pair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from demo_pair import DRAFT, TARGET, needs_mnn
from measuring_kit import VirtualSession
from tokforge_engine import (
    EngineCrashed,
    EngineUnavailable,
    ModelSpec,
    RuntimeSettings,
    Session,
    TooLittleMemory,
)
from tokforge_engine.costs import Costs
from tokforge_engine.generation import Scored
from tokforge_models.bundle import Settings
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Way
from tokforge_models.measuring.searching import next_trial
from tokforge_models.measuring.trials import (
    Candidate,
    Decode,
    Decoded,
    Failed,
    Judge,
    Judged,
    Known,
    Load,
    Loaded,
    Question,
    Setup,
)
from tokforge_models.measuring.trying import Portion, Trier, portion
from tokforge_models.measuring.verdict import decide
from tokforge_models.measuring.workloads import Workload, chosen
from tuning_kit import DRAFT as DRAFT_SETTINGS
from tuning_kit import REFERENCE, SHIPPED, STEEP, question
from virtual_pair import VirtualPair

WORKLOADS = (Workload("prose", ("a", "b")), Workload("code", ("c",)))
ASKED = question()
PAIR = ASKED.shipped
COSTS = replace(STEEP, verify=tuple(seconds / 1000 for seconds in STEEP.verify))


class StandIn(VirtualSession):
    """A session on a virtual clock."""

    alive = True

    def __init__(self, setup: Setup, fault: Exception | None) -> None:
        super().__init__(VirtualPair(STEEP, [0.8]))
        self.costs: Costs | None = COSTS
        self._fault = fault
        self._chance = 0.4 if setup.target.memory == "normal" else 0.5

    def generate(self, prompt, options):
        if self._fault:
            raise self._fault
        return super().generate(prompt, options)

    def score(self, prompt, token_ids, among=None):
        return tuple(Scored(token, "", (0, 1), (-0.5, -self._chance)) for token in token_ids)


class Machine:
    """Loads stand-ins, as many at a time as there is room for."""

    def __init__(self, room: int = 99, faults: dict[Setup, Exception] | None = None) -> None:
        self.open: list[Setup] = []
        self.loaded: list[Setup] = []
        self.sessions: list[StandIn] = []
        self._room = room
        self._faults = faults or {}

    @contextmanager
    def load(self, setup: Setup) -> Iterator[Session]:
        if len(self.open) >= self._room:
            raise TooLittleMemory("the models need more memory than is free")
        self.loaded.append(setup)
        self.open.append(setup)
        self.sessions.append(StandIn(setup, self._faults.get(setup)))
        try:
            yield self.sessions[-1]  # type: ignore[misc]
        finally:
            self.open.remove(setup)


def trier(machine: Machine, known: Known | None = None) -> Trier:
    return Trier(ASKED, machine.load, WORKLOADS, known or Known([]))


def other(threads: int) -> Setup:
    return Setup(replace(SHIPPED, threads=threads), DRAFT_SETTINGS)


def test_each_kind_of_trial_finds_what_it_is_for() -> None:
    machine = Machine()
    with trier(machine) as made:
        assert made.try_it(Load(PAIR)).outcome == Loaded(COSTS)
        reference = made.try_it(Judge(REFERENCE)).outcome
        shipped = made.try_it(Judge(SHIPPED)).outcome
        assert isinstance(reference, Judged)
        assert isinstance(shipped, Judged)
        assert reference.divergence == 0.0 < shipped.divergence
        assert reference.digest != shipped.digest
        found = made.try_it(Decode(ASKED.probe, 0)).outcome
        assert isinstance(found, Decoded)
        assert [cell.workload for cell in found.cells] == ["prose", "code"]
        prose, code = found.cells
        assert prose.tokens == 2 * code.tokens
        assert len(prose.drafted) == len(prose.accepted) == 7
        assert prose.speed > 0
        other = made.try_it(Decode(Candidate(PAIR, Way("model", 3)), 0)).outcome
        assert isinstance(other, Decoded)
        assert not any(cell.drafted for cell in other.cells)
    assert machine.open == []


def test_costs_are_measured_anew_in_each_repetition() -> None:
    machine = Machine()
    with trier(machine) as made:
        made.try_it(Load(PAIR, 0))
        made.try_it(Load(other(2), 0))
        made.try_it(Load(PAIR, 1))
        assert machine.loaded == [PAIR, other(2), PAIR]
        assert machine.open == [other(2), PAIR]


def test_the_reference_is_loaded_once_for_its_own_trial() -> None:
    machine = Machine()
    with trier(machine) as made:
        made.try_it(Judge(REFERENCE))
        assert machine.loaded.count(Setup(REFERENCE)) == 1
        made.try_it(Judge(SHIPPED))
        assert machine.loaded.count(Setup(REFERENCE)) == 1


def test_ways_share_a_session_and_each_is_warmed_up_once() -> None:
    machine = Machine()
    with trier(machine) as made:
        made.try_it(Load(PAIR))
        for turn in range(2):
            for candidate in (ASKED.base, ASKED.plain, Candidate(ASKED.plain.setup, LOOKUP)):
                assert isinstance(made.try_it(Decode(candidate, turn)).outcome, Decoded)
    assert machine.loaded == [PAIR]
    (session,) = machine.sessions
    # Three prompts, three ways, twice; and a short one each.
    assert len(session.asked) == 3 * 3 * 2 + 3
    assert sum(options.max_tokens == 16 for _, options in session.asked) == 3


def test_where_memory_is_short_one_setup_makes_room_for_the_next() -> None:
    machine = Machine(room=1)
    with trier(machine) as made:
        made.try_it(Load(PAIR))
        for threads in (2, 3, 2):
            outcome = made.try_it(Decode(Candidate(other(threads), AUTO), 0)).outcome
            assert isinstance(outcome, Decoded)
        assert isinstance(made.try_it(Judge(REFERENCE)).outcome, Judged)
    assert [setup.target.threads for setup in machine.loaded[:4]] == [1, 2, 3, 2]
    assert machine.open == []


def test_only_so_many_sessions_stay() -> None:
    machine = Machine()
    with trier(machine) as made:
        made.try_it(Load(PAIR))
        for threads in range(2, 9):
            made.try_it(Decode(Candidate(other(threads), AUTO), 0))
        assert len(machine.open) == 4


def test_a_worker_that_dies_is_an_outcome_and_the_next_one_works() -> None:
    machine = Machine(faults={other(2): EngineCrashed("it died\nof SIGSEGV")})
    with trier(machine) as made:
        made.try_it(Load(PAIR))
        failed = made.try_it(Decode(Candidate(other(2), AUTO), 0)).outcome
        assert failed == Failed("it died of SIGSEGV")
        assert machine.open == []
        assert isinstance(made.try_it(Decode(ASKED.base, 0)).outcome, Decoded)


def test_a_model_larger_than_memory_is_an_outcome() -> None:
    with trier(Machine(room=0)) as made:
        outcome = made.try_it(Load(PAIR)).outcome
    assert outcome == Failed("the models need more memory than is free")


def test_without_mnn_there_is_no_trial() -> None:
    machine = Machine(faults={PAIR: EngineUnavailable("no MNN")})
    with trier(machine) as made:
        made.try_it(Load(PAIR))
        with pytest.raises(EngineUnavailable):
            made.try_it(Decode(ASKED.base, 0))


def test_a_search_goes_on_with_as_much_text_as_it_began() -> None:
    machine = Machine()
    with trier(machine) as made:
        known = Known([made.try_it(Load(PAIR))])
        first = made.try_it(Decode(ASKED.base, 0)).outcome
    with trier(machine, known) as made:
        second = made.try_it(Decode(ASKED.base, 0)).outcome
    assert isinstance(first, Decoded)
    assert isinstance(second, Decoded)
    assert [cell.tokens for cell in first.cells] == [cell.tokens for cell in second.cells]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (0.001, Portion(2, 64)),
        (0.002, Portion(2, 33)),
        (0.004, Portion(2, 17)),
        (0.005, Portion(1, 27)),
        (0.01, Portion(1, 16)),
        (0.02, Portion(1, 16)),
        (0.1, Portion(1, 16)),
    ],
)
def test_how_much_is_decoded(second: float, expected: Portion) -> None:
    workloads = [Workload(name, ("a", "b")) for name in "abcde"]
    assert portion(second, workloads) == expected


# The engine itself.

REAL = Settings(backend="cpu", threads=1, precision="low", memory="low")
ON_THE_EMBEDDED_PAIR = Question(
    shipped=Setup(REAL, REAL),
    lookup=True,
    reference=replace(REAL, precision="high", memory="normal"),
    formats=(replace(REAL, dynamic_option=2), replace(REAL, precision="normal")),
    threads=(1, 2),
    limit=None,
    budget=8.0,
)


@contextmanager
def load_embedded(setup: Setup) -> Iterator[Session]:
    def spec(path: Path, settings: Settings) -> ModelSpec:
        return ModelSpec(path, RuntimeSettings(**settings.given()))  # type: ignore[arg-type]

    draft = spec(DRAFT, setup.draft) if setup.draft else None
    with Session(spec(TARGET, setup.target), draft, lookup=True) as session:
        yield session


def search_embedded(asked: Question) -> Known:
    known = Known([])
    with Trier(asked, load_embedded, chosen(["prose", "code"]), known) as made:
        while (trial := next_trial(asked, known)) is not None:
            known = Known((*known.tried, made.try_it(trial)))
    return known


@needs_mnn
def test_the_embedded_pair_is_searched() -> None:
    known = search_embedded(ON_THE_EMBEDDED_PAIR)
    assert not [each for each in known.tried if isinstance(each.outcome, Failed)]
    assert {type(each.trial) for each in known.tried} == {Judge, Load, Decode}
    verdict = decide(ON_THE_EMBEDDED_PAIR, known)
    assert verdict.before is not None


@needs_mnn
@pytest.mark.slow
def test_the_embedded_pair_is_searched_to_its_end() -> None:
    asked = replace(ON_THE_EMBEDDED_PAIR, budget=60.0)
    verdict = decide(asked, search_embedded(asked))
    assert verdict.complete
    assert verdict.chosen is not None
    assert verdict.chosen.ratio >= 1.0
    assert set(verdict.best) == {"alone", "paired"}
    assert verdict.plain is not None
    assert verdict.plain.candidate.way == PLAIN
    assert verdict.divergence is not None
    assert verdict.limit is not None
    assert verdict.divergence <= verdict.limit
