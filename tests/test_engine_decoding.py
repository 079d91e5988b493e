from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.auto import AutoPolicy
from tokforge_engine.costs import Costs
from tokforge_engine.decoding import Token, decode, prefill
from tokforge_engine.drafting import DraftModel
from tokforge_engine.lookup import Lookup
from tokforge_engine.policy import FixedLength
from tokforge_engine.statistics import Tally
from toy_models import Script, ToyModel, one_hot, table

VOCABULARY = 12


def successor(offset=1):
    return ToyModel(VOCABULARY, one_hot(VOCABULARY, lambda ids: (ids[-1] + offset) % VOCABULARY))


def run(target, drafter, prompt, d=3, policy=None, **options):
    tally = Tally()
    options.setdefault("limit", 20)
    options.setdefault("is_stop", set().__contains__)
    tokens = list(
        decode(
            target,
            policy or FixedLength(drafter, d),
            prompt,
            tally=tally,
            **options,
        )
    )
    return tokens, tally.statistics()


def ids(tokens):
    return [token.id for token in tokens]


def test_plain_decoding_feeds_one_token_a_forward():
    target = successor()
    tokens, statistics = run(target, None, [3], limit=5)
    assert tokens == [Token(4), Token(5), Token(6), Token(7), Token(8)]
    assert target.widths == [1] * 5
    assert statistics.rounds == 4
    assert statistics.drafted == 0


def test_a_draft_equal_to_its_target_is_accepted_whole():
    tokens, statistics = run(successor(), DraftModel(successor(), VOCABULARY), [3], limit=21)
    assert statistics.accepted == statistics.drafted == statistics.draft_forwards == 15
    assert statistics.rounds == 5
    assert statistics.accepted_by_position == (5, 5, 5)
    assert [token.drafted_by for token in tokens[:9]] == [None, *["draft"] * 3, None] + [
        "draft"
    ] * 3 + [None]


def test_a_draft_that_disagrees_is_accepted_less_and_changes_nothing():
    often = ToyModel(
        VOCABULARY,
        one_hot(VOCABULARY, lambda ids: (ids[-1] + (2 if ids[-1] % 4 == 0 else 1)) % VOCABULARY),
    )
    plain, _ = run(successor(), None, [3])
    agreeing, best = run(successor(), DraftModel(successor(), VOCABULARY), [3])
    paired, statistics = run(successor(), DraftModel(often, VOCABULARY), [3])
    assert ids(paired) == ids(agreeing) == ids(plain)
    assert 0 < statistics.accepted < statistics.drafted
    assert statistics.rounds > best.rounds


def test_the_first_drafted_token_is_verified():
    wrong = DraftModel(successor(offset=5), VOCABULARY)
    tokens, statistics = run(successor(), wrong, [3], limit=6)
    assert ids(tokens) == [4, 5, 6, 7, 8, 9]
    assert statistics.accepted == 0
    assert all(token.drafted_by is None for token in tokens)


@pytest.mark.parametrize("stop", range(4, 11))
def test_a_stop_token_anywhere_in_a_block_ends_there(stop):
    target, draft = successor(), successor()
    tokens, statistics = run(
        target, DraftModel(draft, VOCABULARY), [3], is_stop={stop}.__contains__
    )
    assert ids(tokens) == list(range(4, stop + 1))
    assert statistics.emitted == len(tokens)
    assert target.ids == [3, *range(4, stop)]


@pytest.mark.parametrize("limit", range(1, 10))
def test_the_limit_anywhere_in_a_block_ends_there(limit):
    target, draft = successor(), successor()
    tokens, _ = run(target, DraftModel(draft, VOCABULARY), [3], limit=limit)
    assert ids(tokens) == [token % VOCABULARY for token in range(4, 4 + limit)]
    assert target.ids == [3, *ids(tokens)[:-1]]
    assert draft.ids == target.ids[: len(draft.ids)]


def test_ties_go_to_the_lowest_id_in_both_paths():
    def tied(ids):
        return [1.0 if token in {5, 8, 2} else 0.0 for token in range(VOCABULARY)]

    plain, _ = run(ToyModel(VOCABULARY, tied), None, [3], limit=8)
    draft = DraftModel(ToyModel(VOCABULARY, tied), VOCABULARY)
    paired, statistics = run(ToyModel(VOCABULARY, tied), draft, [3], limit=8)
    assert ids(plain) == ids(paired) == [2] * 8
    assert statistics.accepted == statistics.drafted > 0


def test_a_second_request_equals_the_first():
    target = successor()
    drafter = DraftModel(successor(offset=1), VOCABULARY)
    first, before = run(target, drafter, [3, 7])
    target.rollback(0)
    drafter.keep(0)
    second, after = run(target, drafter, [3, 7])
    assert second == first
    assert (after.rounds, after.accepted) == (before.rounds, before.accepted)


def test_a_request_that_shares_a_beginning_prefills_only_the_rest():
    target = successor()
    run(target, None, [3, 7], limit=3)
    target.widths.clear()
    tokens, _ = run(target, None, [3, 7, 8, 9, 1, 2], limit=2)
    assert ids(tokens) == [3, 4]
    assert target.widths == [2, 1]


@pytest.mark.parametrize(
    ("length", "chunks"), [(1, []), (64, []), (65, [64]), (128, [64]), (129, [64, 64])]
)
def test_a_long_prompt_is_fed_in_chunks_and_decode_feeds_the_rest(length, chunks):
    target = successor()
    prompt = [token % VOCABULARY for token in range(length)]
    assert list(prefill(target, prompt, Tally())) == [64 * n for n in range(1, len(chunks) + 1)]
    assert target.widths == chunks
    tokens, _ = run(target, None, prompt, limit=1)
    assert ids(tokens) == [length % VOCABULARY]
    assert target.ids == prompt


@pytest.mark.parametrize("taken", range(1, 10))
def test_an_abandoned_generator_rolls_back(taken):
    target, draft = successor(), successor()
    tokens = decode(
        target,
        FixedLength(DraftModel(draft, VOCABULARY), 3),
        [3],
        limit=50,
        is_stop=set().__contains__,
        tally=Tally(),
    )
    got = ids(itertools.islice(tokens, taken))
    tokens.close()
    assert target.ids == [3, *got[:-1]]
    assert draft.ids == target.ids[: len(draft.ids)]


def test_never_drafts_what_the_limit_would_throw_away():
    target = successor()
    _, statistics = run(target, DraftModel(successor(), VOCABULARY), [3], d=6, limit=4)
    assert statistics.drafted == 2
    assert target.widths == [1, 3]


automata = st.integers(2, 6).flatmap(
    lambda vocabulary: st.tuples(
        st.just(vocabulary),
        *[
            st.lists(
                st.lists(st.integers(0, 2), min_size=vocabulary, max_size=vocabulary),
                min_size=1,
                max_size=vocabulary**2,
            )
        ]
        * 2,
    )
)


@given(data=st.data(), automata=automata)
def test_paired_equals_plain_whatever_the_models(data, automata):
    vocabulary, target_rows, draft_rows = automata
    tokens = st.integers(0, vocabulary - 1)
    prompt = data.draw(st.lists(tokens, min_size=1, max_size=5))
    stop_ids = data.draw(st.sets(tokens, max_size=1))
    limit = data.draw(st.integers(1, 25))
    d = data.draw(st.integers(0, 6))
    draft_context = data.draw(st.none() | st.integers(1, 30))

    plain, _ = run(
        ToyModel(vocabulary, table(vocabulary, target_rows)),
        None,
        prompt,
        limit=limit,
        is_stop=stop_ids.__contains__,
    )
    target = ToyModel(vocabulary, table(vocabulary, target_rows))
    draft = ToyModel(vocabulary, table(vocabulary, draft_rows), draft_context)
    drafter = DraftModel(draft, vocabulary)
    paired, statistics = run(
        target, drafter, prompt, d=d, limit=limit, is_stop=stop_ids.__contains__
    )

    assert ids(paired) == ids(plain)
    assert target.ids == [*prompt, *ids(paired)[:-1]]
    assert draft.ids == target.ids[: len(draft.ids)]
    assert len(target.widths) == statistics.rounds + 1
    assert sum(target.widths) == len(prompt) + statistics.rounds + statistics.drafted
    assert statistics.emitted == len(paired)
    drafted = [token for token in paired if token.drafted_by]
    handed_out_late = statistics.accepted + statistics.rounds + 1 - statistics.emitted
    assert 0 <= handed_out_late <= d
    assert statistics.accepted - handed_out_late <= len(drafted) <= statistics.accepted
    for kept, proposed in zip(
        statistics.accepted_by_position, statistics.drafted_by_position, strict=True
    ):
        assert kept <= proposed


class Whims:
    """A policy that takes a drafter and a length as it is told, round by round."""

    def __init__(self, whims, drafters):
        self._whims = itertools.cycle(whims)
        self._drafters = drafters
        self.drafts = []

    def begin(self, prompt):
        pass

    def draft(self, context, most):
        which, d = next(self._whims)
        self.drafts.append(FixedLength(self._drafters[which], d).draft(context, most))
        return self.drafts[-1]

    def verified(self, d, seconds):
        assert d == len(self.drafts[-1].tokens)

    def keep(self, length):
        for drafter in self._drafters:
            drafter.keep(length)


@given(
    whims=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=1, max_size=8),
    agrees=st.integers(1, 5),
)
def test_two_drafters_in_any_turn_change_no_token(whims, agrees):
    def step(ids):
        return (ids[-1] + (1 if ids[-1] % agrees else 2)) % VOCABULARY

    target, draft = successor(), ToyModel(VOCABULARY, one_hot(VOCABULARY, step))
    policy = Whims(whims, [DraftModel(draft, VOCABULARY), Lookup()])
    tokens, statistics = run(target, None, [3] * 20, policy=policy, limit=40)
    assert ids(tokens) == [token % VOCABULARY for token in range(4, 44)]
    assert target.ids == [*[3] * 20, *ids(tokens)[:-1]]
    assert draft.ids == target.ids[: len(draft.ids)]
    assert len(policy.drafts) == statistics.rounds
    assert sum(len(draft.tokens) for draft in policy.drafts) == statistics.drafted
    assert sum(count.drafted for count in statistics.drafters) == statistics.drafted
    for count in statistics.drafters:
        by = sum(token.drafted_by == count.name for token in tokens)
        assert count.accepted - 6 <= by <= count.accepted


@given(
    data=st.data(),
    automata=automata,
    costs=st.builds(
        Costs,
        verify=st.lists(st.floats(0.5, 3), min_size=5, max_size=5).map(tuple),
        draft=st.floats(0.01, 1.0),
        catch_up=st.floats(0.001, 0.5),
    ),
    has_lookup=st.booleans(),
)
def test_lengths_and_drafters_picked_on_the_way_change_no_token(data, automata, costs, has_lookup):
    vocabulary, target_rows, draft_rows = automata
    prompt = data.draw(st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=40))
    draft_context = data.draw(st.none() | st.integers(1, 60))
    target = ToyModel(vocabulary, table(vocabulary, target_rows))
    plain, _ = run(target, None, prompt, limit=60)
    draft = ToyModel(vocabulary, table(vocabulary, draft_rows), draft_context)
    drafter = DraftModel(draft, vocabulary, scores=draft_context is None)
    policy = AutoPolicy(costs, drafter, Lookup() if has_lookup else None)
    for _ in range(2):
        target.rollback(0)
        policy.keep(0)
        tokens, statistics = run(target, None, prompt, policy=policy, limit=60)
        assert ids(tokens) == ids(plain)
        assert target.ids == [*prompt, *ids(tokens)[:-1]]
        assert draft.ids == target.ids[: len(draft.ids)]
        assert statistics.emitted == 60
        by_model = sum(each.drafted for each in statistics.drafters if each.name == "draft")
        assert by_model <= statistics.draft_forwards <= len(draft.widths)


class GivenUpError(Exception):
    pass


@st.composite
def policies(draw, vocabulary, draft):
    """A policy of any kind, with the draft, with lookup, with both or with neither."""
    drafter = DraftModel(draft, vocabulary, scores=draft.context_length is None)
    drafters = draw(st.sampled_from([(), (drafter,), (Lookup(),), (drafter, Lookup())]))
    kind = draw(st.sampled_from(["fixed", "auto", "whims"]))
    if kind == "auto" and drafters:
        costs = Costs(
            verify=tuple(draw(st.lists(st.floats(0.5, 3), min_size=5, max_size=5))),
            draft=draw(st.floats(0.01, 1.0)),
            catch_up=draw(st.floats(0.001, 0.5)),
        )
        model = drafter if drafter in drafters else None
        lookup = next((each for each in drafters if isinstance(each, Lookup)), None)
        return AutoPolicy(costs, model, lookup), drafter, 4
    if kind == "whims" and drafters:
        turns = st.tuples(st.integers(0, len(drafters) - 1), st.integers(0, 6))
        return Whims(draw(st.lists(turns, min_size=1, max_size=8)), drafters), drafter, 6
    d = draw(st.integers(0, 6))
    return FixedLength(drafters[0] if drafters else None, d), drafter, d


@given(data=st.data(), automata=automata)
def test_any_policy_over_any_requests_is_plain_decoding(data, automata):
    vocabulary, target_rows, draft_rows = automata
    tokens = st.integers(0, vocabulary - 1)
    draft_context = data.draw(st.none() | st.integers(1, 90))
    draft = ToyModel(vocabulary, table(vocabulary, draft_rows), draft_context)
    policy, drafter, most = data.draw(policies(vocabulary, draft))
    target = ToyModel(vocabulary, table(vocabulary, target_rows))
    context = []
    for _ in range(data.draw(st.integers(1, 4))):
        # A request goes on from what was said, or begins anew; a long prompt takes chunks.
        prompt = data.draw(st.sampled_from([context, []])) + data.draw(
            st.lists(tokens, min_size=1, max_size=5) | st.just([0, 1] * 50)
        )
        stop = data.draw(st.sets(tokens, max_size=vocabulary - 1)).__contains__
        limit = data.draw(st.integers(1, 25))
        plain, _ = run(
            ToyModel(vocabulary, table(vocabulary, target_rows)),
            None,
            prompt,
            limit=limit,
            is_stop=stop,
        )
        same = next(
            (n for n, (a, b) in enumerate(zip(target.ids, prompt, strict=False)) if a != b),
            min(len(target.ids), len(prompt)),
        )
        target.rollback(min(same, len(prompt) - 1))
        policy.keep(same)
        tally = Tally()
        chunks = list(prefill(target, prompt, tally))
        assert all(chunk < len(prompt) for chunk in chunks)
        taken = data.draw(st.none() | st.integers(1, 25))
        gives_up = data.draw(st.booleans())

        def on_read(_done, _total, gives_up=gives_up):
            if gives_up:
                raise GivenUpError

        drafter.on_read = on_read
        stream = decode(target, policy, prompt, limit=limit, is_stop=stop, tally=tally)
        got = []
        try:
            got.extend(itertools.islice(stream, taken))
        except GivenUpError:
            assert gives_up
        stream.close()
        whole = ids(got) == ids(plain)
        assert ids(got) == ids(plain)[: len(got)]
        assert whole or gives_up or (taken is not None and len(got) == taken)
        statistics = tally.statistics()
        assert statistics.emitted == len(got)
        assert len(statistics.drafted_by_position) <= most
        assert sum(each.drafted for each in statistics.drafters) == statistics.drafted
        assert sum(each.accepted for each in statistics.drafters) == statistics.accepted
        assert sum(statistics.accepted_by_position) == statistics.accepted
        assert sum(statistics.drafted_by_position) == statistics.drafted
        assert target.ids == [*prompt, *ids(got)][: max(len(prompt), len(prompt) + len(got) - 1)]
        assert draft.ids == target.ids[: len(draft.ids)]
        context = [*prompt, *ids(got)]


@given(
    script=st.lists(st.integers(0, VOCABULARY - 1), max_size=30),
    d=st.integers(0, 5),
    taken=st.integers(1, 30),
)
def test_any_drafter_abandoned_anywhere_leaves_both_caches_true(script, d, taken):
    target = successor()
    drafter = Script(script, start=2)
    tokens = decode(
        target,
        FixedLength(drafter, d),
        [3, 4],
        limit=30,
        is_stop=set().__contains__,
        tally=Tally(),
    )
    got = ids(itertools.islice(tokens, taken))
    tokens.close()
    assert got == [token % VOCABULARY for token in range(5, 5 + taken)]
    assert target.ids == [3, 4, *got[:-1]]
    assert drafter.kept[-1] == len(target.ids)
