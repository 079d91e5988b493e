"""Benches that nobody waits for: a session on a virtual clock, samples, reports to order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hypothesis import strategies as st

from tokforge_engine.auto import AutoPolicy
from tokforge_engine.decoding import Token
from tokforge_engine.errors import InvalidRequest
from tokforge_engine.generation import Piece, Result
from tokforge_engine.policy import FixedLength
from tokforge_engine.statistics import Statistics
from tokforge_models.bundle import Settings
from tokforge_models.device import GIB, Device, Platform
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Step, Way
from tokforge_models.measuring.report import (
    Model,
    PairReport,
    Report,
    RoundCost,
    Row,
    Sample,
    Skipped,
)

PROMPT_TOKENS = 40
EXAMPLE = Report(
    measured_at=datetime(2026, 12, 1, tzinfo=UTC),
    tokforge="0.1.0",
    mnn="3.6.1",
    device=Device(Platform.LINUX, "AMD EPYC", 16 * GIB, 2),
    target=Model("a", "ab" * 32, Settings()),
    tokens=96,
    repetitions=3,
    complete=True,
    pairs=(),
)


def statistics(
    emitted: int,
    *,
    rounds: int = 1,
    prefilled: int = PROMPT_TOKENS,
    prefill: float = 0.5,
    draft: float = 0.0,
    verify: float = 1.0,
    drafted: tuple[int, ...] = (),
    accepted: tuple[int, ...] = (),
) -> Statistics:
    """Counts and seconds, with nothing spent elsewhere."""
    return Statistics(
        rounds=rounds,
        drafted=sum(drafted),
        accepted=sum(accepted),
        draft_forwards=sum(drafted),
        drafters=(),
        accepted_by_position=accepted,
        drafted_by_position=drafted,
        reused=PROMPT_TOKENS - prefilled,
        prefilled=prefilled,
        forgotten=0,
        emitted=emitted,
        prefill_seconds=prefill,
        draft_seconds=draft,
        verify_seconds=verify,
        rollback_seconds=0.0,
        other_seconds=0.0,
    )


def sample(way: Way, speed: float, *, workload="prose", prompt=0, repetition=0, ids=(1, 2, 3)):
    """A text of 11 tokens at so many tokens a second."""
    return Sample(
        Step(repetition, workload, prompt, "", way),
        token_ids=ids,
        prompt_tokens=PROMPT_TOKENS,
        first_token_seconds=0.6,
        stats=statistics(11, verify=10 / speed),
    )


class VirtualSession:
    """Answers as `tokforge_engine.Session` does, of a virtual pair that slows down as it is told.

    Args:
        pair: target, draft and clock.
        slowing: by how much each second of the virtual clock slows what follows.
        longest: characters of the longest prompt that fits.
    """

    def __init__(self, pair, *, slowing: float = 0.0, longest: int | None = None) -> None:
        self.pair = pair
        self.asked: list[tuple[str, object]] = []
        self._slowing = slowing
        self._longest = longest
        self._usual = pair.slower

    def generate(self, prompt, options):
        return _Answer(self._answer(prompt, options))

    def _answer(self, prompt, options) -> Iterator[object]:
        pair = self.pair
        self.asked.append((prompt, options))
        if self._longest is not None and len(prompt) > self._longest:
            raise InvalidRequest("the prompt is too long for virtual")
        pair.slower = self._usual * (1 + self._slowing * pair.now)
        policy = (
            AutoPolicy(pair.costs, pair, None, None, clock=pair.clock)
            if options.d == "auto"
            else FixedLength(pair, options.d)
        )
        pair.now += 0.5
        yield Piece((), (Token(1, None),))
        began = pair.now
        pair.run(policy, options.max_tokens)
        verify = sum(pair.costs.verify[d] for d in pair.lengths) * pair.slower
        places = range(max(pair.lengths, default=0))
        yield Result(
            text="",
            token_ids=tuple(prompt.encode()),
            finish_reason="length",
            prompt_tokens=PROMPT_TOKENS,
            completion_tokens=len(prompt),
            stats=statistics(
                options.max_tokens,
                rounds=len(pair.lengths),
                draft=pair.now - began - verify,
                verify=verify,
                drafted=tuple(sum(d > place for d in pair.lengths) for place in places),
                accepted=tuple(sum(kept > place for kept in pair.kept) for place in places),
            ),
        )


class _Answer(Iterator[Piece]):
    def __init__(self, parts) -> None:
        self._parts = parts

    def __next__(self) -> Piece:
        part = next(self._parts)
        if isinstance(part, Result):
            self.result = part
            raise StopIteration
        return part


WAYS = (PLAIN, Way("model", 2), Way("model", 4), LOOKUP, AUTO)
figures = st.floats(0.001, 1e6)
_lists = st.lists(figures, max_size=6).map(tuple)
_counts = st.lists(st.integers(0, 10_000), max_size=7).map(tuple)
_ids = st.text("abcdefgh-0123456789", min_size=1, max_size=12)
rows = st.builds(
    Row,
    workload=st.sampled_from(["prose", "code", "copy and edit"]),
    way=st.sampled_from(WAYS),
    prompt_tokens=st.integers(1, 5000),
    speeds=_lists,
    ratios=_lists,
    prefill_speeds=_lists,
    first_token_seconds=_lists,
    drafted=_counts,
    accepted=_counts,
    same=st.integers(0, 9),
    of=st.integers(9, 20),
)
models = st.builds(
    Model,
    id=_ids.filter(lambda id: not id.strip("-0123456789").isspace() and id[0] in "abcdefgh"),
    content=st.none() | st.just("ab" * 32),
    settings=st.builds(Settings, threads=st.none() | st.integers(1, 64)),
)
pairs = st.builds(
    PairReport,
    draft=st.none() | models,
    lookup=st.booleans(),
    rows=st.lists(rows, max_size=6, unique_by=lambda row: (row.workload, row.way)).map(tuple),
    costs=st.lists(
        st.builds(RoundCost, d=st.integers(0, 7), verify_seconds=figures, draft_seconds=figures),
        max_size=4,
    ).map(tuple),
    drift=st.none() | st.floats(-0.9, 3.0),
    peak_bytes=st.none() | st.integers(1, 1 << 40),
)
reports = st.builds(
    Report,
    measured_at=st.datetimes(datetime(2026, 1, 1), timezones=st.just(UTC)),
    tokforge=st.just("0.1.0"),
    mnn=st.just("3.6.1"),
    device=st.just(Device(Platform.ANDROID, "SM8850", 8 * GIB, 8)),
    target=models,
    tokens=st.integers(1, 512),
    repetitions=st.integers(1, 9),
    complete=st.booleans(),
    pairs=st.lists(pairs, max_size=2).map(tuple),
    skipped=st.lists(st.just(Skipped("long prompt", "it does not fit")), max_size=1).map(tuple),
)
