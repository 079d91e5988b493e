"""A loaded pair that answers requests, inside the worker process."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tokforge_engine.auto import AutoPolicy
from tokforge_engine.choice import greedy
from tokforge_engine.constraint import Constraint, Vocabulary
from tokforge_engine.conversation import Conversation, reusable, same_length
from tokforge_engine.costs import Costs, measure_costs
from tokforge_engine.decoding import Token, decode, prefill
from tokforge_engine.detokenizing import Detokenizer
from tokforge_engine.drafting import SCORED, DraftModel, likeliest
from tokforge_engine.errors import Incompatible, InvalidRequest
from tokforge_engine.generation import FinishReason, GenerateOptions, Result
from tokforge_engine.learned import PairLearned
from tokforge_engine.likelihood import Recorder
from tokforge_engine.lookup import Lookup
from tokforge_engine.messages import (
    Begun,
    Cancelled,
    Finished,
    Generate,
    Load,
    LoadModel,
    Phase,
    Prefilled,
    Score,
    Scores,
)
from tokforge_engine.mnn_model import MnnModel, first_difference
from tokforge_engine.model import PREFILL_CHUNK
from tokforge_engine.pieces import Pieces, Send
from tokforge_engine.policy import FixedLength, Policy
from tokforge_engine.sampler import Sampler
from tokforge_engine.sampling import MAX_SEED, Sampling
from tokforge_engine.scoring import scored_token
from tokforge_engine.statistics import Tally
from tokforge_engine.thinking import opens_thought

if TYPE_CHECKING:
    from tokforge_engine.choice import Choose


class Pair:
    """A loaded target and its drafters.

    Args:
        load: what to load.
        scratch: a directory for what MNN writes.
        send: takes reports.

    Raises:
        EngineError: as `MnnModel`; Incompatible where the vocabularies differ.
    """

    def __init__(self, load: Load, scratch: Path, send: Send) -> None:
        self._send = send
        self._exact = load.numerics == "exact"
        self._target = self._load(
            load.target,
            scratch,
            widths=load.max_d + 1 if load.draft or load.lookup else 1,
            exact=self._exact,
        )
        self._lookup = Lookup() if load.lookup else None
        self._draft: DraftModel | None = None
        draft = None
        if load.draft is not None:
            draft = self._load(load.draft, scratch)
            send(Phase(f"comparing the vocabularies of {load.target.label} and its draft"))
            self._compare(load.target.label, load.draft.label, draft)
            self._draft = DraftModel(
                draft, self._target.vocabulary, load.draft.label, scores=draft.prepare(SCORED)
            )
        self._costs: Costs | None = None
        if load.max_d and (draft is not None or load.lookup):
            send(Phase(f"measuring {load.target.label} and its draft"))
            self._costs = measure_costs(self._target, draft, load.max_d)
        self._learned_file = load.learned
        self._learned = PairLearned.read(load.learned) if load.learned else PairLearned()
        self._autos: dict[str, AutoPolicy] = {}
        self._label = load.target.label
        self._vocabulary: Vocabulary | None = None
        self._conversation = Conversation()
        # Where forwards of prompts began that are in the cache.
        self._starts: list[int] = []

    @property
    def costs(self) -> Costs | None:
        """Of forwards, as measured at load; None where nothing can be guessed."""
        return self._costs

    def _load(
        self, model: LoadModel, scratch: Path, *, widths: int = 1, exact: bool = False
    ) -> MnnModel:
        self._send(Phase(f"loading {model.label} from {model.bundle.path}"))
        return MnnModel(
            model.bundle,
            model.settings,
            scratch,
            widths=widths,
            exact=exact,
            context_length=model.context_length,
        )

    def _compare(self, target_label: str, draft_label: str, draft: MnnModel) -> None:
        token = first_difference(self._target, draft)
        if token is not None:
            raise Incompatible(
                f"{draft_label} cannot draft for {target_label}: token {token} is "
                f"{_shown(self._target.token_bytes(token))} to the target and "
                f"{_shown(draft.token_bytes(token))} to the draft",
                hint="tokforge resolve TARGET --explain names the draft that fits",
            )

    def answer(self, order: Generate, cancelled: Callable[[], bool]) -> None:
        """Answer one request, with `Prefilled`s, `Part`s and at the end `Finished` or `Cancelled`.

        Args:
            order: the request.
            cancelled: whether it is no longer wanted.

        Raises:
            InvalidRequest: the prompt is empty or leaves no room for an answer.
            EngineError: a model failed.
        """
        try:
            self._answer(order, cancelled)
        except _GivenUp:
            self._send(Cancelled(order.request))

    def _answer(self, order: Generate, cancelled: Callable[[], bool]) -> None:
        self._send(Phase(f"generating with {self._label}"))
        target, options = self._target, order.options
        rendered = self._rendered(order)
        self._send(Begun(order.request, opens_thought(rendered)))
        prompt = self._conversation.prompt(rendered, target.encode)
        limit = self._room(len(prompt), options)
        sampling = _seeded(options.sampling)
        choose, recorder = self._choices(options, sampling, prompt)
        tally = Tally()
        self._go_back(prompt, tally)
        self._conversation.asked(rendered, prompt)
        self._read(order, prompt, tally, cancelled)
        is_stop = _never if options.ignore_stop_tokens else target.is_stop
        tokens = decode(
            target,
            self._policy(options),
            prompt,
            limit=limit,
            is_stop=is_stop,
            tally=tally,
            choose=choose,
        )
        text = Detokenizer(target.token_bytes, options.stop)
        recorded = recorder.recorded if recorder else ()
        pieces = Pieces(order.request, self._send, tally, text, recorded)
        ids: list[int] = []
        try:
            finish_reason = _said(tokens, ids, pieces, is_stop, cancelled)
        finally:
            tokens.close()
            said = b"".join(map(target.token_bytes, ids))
            self._conversation.answered(said.decode(errors="replace"), ids)
        pieces.finish()
        result = Result(
            text=pieces.text,
            token_ids=tuple(ids),
            finish_reason=finish_reason,
            prompt_tokens=len(prompt),
            completion_tokens=len(ids),
            stats=tally.statistics(),
            seed=sampling.seed if sampling.draws else None,
        )
        if self._learned_file is not None and options.d == "auto":
            # It is a help, not a duty; and after the last report this process may be ended.
            with contextlib.suppress(OSError):
                self._learned.write(self._learned_file)
        self._send(Finished(order.request, result))

    def _read(
        self, order: Generate, prompt: Sequence[int], tally: Tally, cancelled: Callable[[], bool]
    ) -> None:
        """Read all of a prompt but its last chunk."""
        for done in prefill(self._target, prompt, tally):
            self._send(Prefilled(order.request, done, len(prompt)))
            if cancelled():
                raise _GivenUp
        if self._draft is not None:
            self._draft.on_read = partial(self._draft_reads, self._draft.name, cancelled)

    def _draft_reads(self, name: str, cancelled: Callable[[], bool], done: int, total: int) -> None:
        if cancelled():
            raise _GivenUp
        # Also a sign of life, since nothing is generated meanwhile.
        self._send(Phase(f"reading the prompt with {name}, {done:,} of {total:,} tokens"))

    def score(self, order: Score) -> None:
        """Read a chat and an answer from an empty cache, and send `Scores`.

        Raises:
            InvalidRequest: they are longer than the context.
            EngineError: an id is outside the vocabulary, or the model failed.
        """
        self._send(Phase(f"scoring with {self._label}"))
        target = self._target
        prompt = self._conversation.prompt(target.render(order.messages), target.encode)
        self._room(len(prompt) + len(order.token_ids), GenerateOptions())
        self._conversation, self._starts = Conversation(), []
        target.rollback(0)
        for drafter in (self._draft, self._lookup):
            if drafter is not None:
                drafter.keep(0)
        for _ in prefill(target, prompt, Tally()):
            pass
        rows = [target.extend(prompt[target.length :])[0].copy()]
        fed = order.token_ids[:-1]
        for start in range(0, len(fed), target.widest):
            rows += [row.copy() for row in target.verify(fed[start : start + target.widest])]
        target.rollback(0)
        among = order.among or (None,) * len(order.token_ids)
        scored = tuple(
            scored_token(token, target.token_bytes(token), row, ids)
            for token, row, ids in zip(order.token_ids, rows, among, strict=True)
        )
        self._send(Scores(order.request, scored))

    def _rendered(self, order: Generate) -> str:
        options = order.options
        if options.raw:
            return "".join(message.content for message in order.messages)
        return self._target.render(
            order.messages, thinking=options.enable_thinking, tools=options.tools
        )

    def _choices(
        self, options: GenerateOptions, sampling: Sampling, prompt: Sequence[int]
    ) -> tuple[Choose, Recorder | None]:
        """How the target chooses, and what records its choices; the draft is told to guess so."""
        sampler = None
        if not sampling.is_plain_greedy:
            sampler = Sampler(sampling, prompt, self._target.vocabulary)
        if self._draft is not None:
            self._draft.choose = sampler.guess if sampler else likeliest
        choose = self._constrained(options, sampler or greedy)
        if options.logprobs is None:
            return choose, None
        recorder = Recorder(choose, options.logprobs, self._target.token_bytes)
        return recorder, recorder

    def _constrained(self, options: GenerateOptions, choose: Choose) -> Choose:
        if options.grammar is None:
            return choose
        if self._vocabulary is None:
            target = self._target
            ids = range(target.vocabulary)
            self._vocabulary = Vocabulary(
                [target.token_bytes(id) for id in ids],
                [id for id in ids if target.is_stop(id)],
                lambda text: target.encode(text, True),
            )
        return Constraint(self._vocabulary, options.grammar, choose)

    def _go_back(self, prompt: list[int], tally: Tally) -> None:
        """Forget what does not serve this prompt."""
        cached = self._conversation.ids[: self._target.length]
        start = reusable(cached, prompt, None if self._exact else self._starts)
        tally.prompt(reused=start, prefilled=len(prompt) - start, forgotten=len(cached) - start)
        self._target.rollback(start)
        for drafter in (self._draft, self._lookup):
            if drafter is not None:
                drafter.keep(same_length(cached, prompt))
        self._starts = [
            *(old for old in self._starts if old < start),
            *range(start, len(prompt), PREFILL_CHUNK),
        ]

    def _policy(self, options: GenerateOptions) -> Policy:
        draft = self._draft if options.drafter != "lookup" else None
        lookup = self._lookup if options.drafter != "model" else None
        if options.d != "auto":
            return FixedLength(draft or lookup, options.d)
        if self._costs is None or (draft is None and lookup is None):
            return FixedLength()
        if options.drafter not in self._autos:
            self._autos[options.drafter] = AutoPolicy(
                self._costs, draft, lookup, self._learned.of(options.drafter)
            )
        return self._autos[options.drafter]

    def _room(self, prompt_tokens: int, options: GenerateOptions) -> int:
        context_length = self._target.context_length
        if context_length is None:
            return options.max_tokens
        if prompt_tokens >= context_length:
            raise InvalidRequest(
                f"the prompt is too long for {self._label}: expected at most "
                f"{context_length - 1} tokens, got {prompt_tokens}"
            )
        return min(options.max_tokens, context_length - prompt_tokens)


class _GivenUp(Exception):
    """The request is no longer wanted."""


def _said(
    tokens: Iterable[Token],
    ids: list[int],
    pieces: Pieces,
    is_stop: Callable[[int], bool],
    cancelled: Callable[[], bool],
) -> FinishReason:
    """Hand tokens on until they end, which is at the length's limit unless something ends them.

    Args:
        tokens: as they come.
        ids: takes those of the answer.
        pieces: takes the tokens.
        is_stop: whether an id ends the text; that one is not part of it.
        cancelled: whether the answer is no longer wanted.
    """
    for token in tokens:
        if cancelled():
            raise _GivenUp
        if is_stop(token.id):
            return "stop"
        ids.append(token.id)
        pieces.add(token)
        if pieces.stopped:
            return "stop"
    return "length"


def _seeded(sampling: Sampling) -> Sampling:
    if sampling.draws and sampling.seed is None:
        return replace(sampling, seed=secrets.randbelow(MAX_SEED))
    return sampling


def _never(_token: int) -> bool:
    return False


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))
