"""`tokforge check`: is paired text plain text, and how far is it from the reference?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from tokforge_models.cli import output
from tokforge_models.cli.answers import headline, overrides_of
from tokforge_models.cli.option_groups import Choosing, Running, takes_groups
from tokforge_models.cli.options import Draft, DraftLength, Json, Layers, Target
from tokforge_models.errors import Refused

if TYPE_CHECKING:
    from tokforge_engine import Result, Sampling, Session
    from tokforge_engine.settings import Numerics
    from tokforge_models.cli.pair import Pair
    from tokforge_models.cli.world import Resolved, World
    from tokforge_models.measuring.quality import Text

# Where auto would pick, it might pick nothing, and nothing would be compared.
_LENGTHS: tuple[int | Literal["auto"], ...] = (2, 3, 5, "auto")
_PROMISES: dict[Numerics, str] = {
    "fast": "every token is the target's own choice; not that the text is the plain text: one row "
    "and several round differently, so where two tokens are nearly as likely they may part, and "
    "neither is wrong",
    "exact": "the plain text of this mode, bit for bit, on this machine; not that of the others",
    "reference": "every token is the target's own choice; the plain text is to be expected, for "
    "two tokens would have to be closer than rounding in 32 bits",
}
_DIFFERS = 8


@dataclass(frozen=True, slots=True)
class TokenShown:
    """A token, for people; None for both where the text has ended."""

    id: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a paired text parts from the plain one.

    Attributes:
        prompt: what was asked.
        position: tokens that are the same before it.
        plain: the plain text's token there.
        paired: the paired text's.
        gap: by how much the likeliest logit there exceeds the second.
    """

    prompt: str
    position: int
    plain: TokenShown
    paired: TokenShown
    gap: float


@dataclass(frozen=True, slots=True)
class ModeReport:
    """What was found in one numerics mode.

    Attributes:
        numerics: the mode.
        same: prompts whose paired text is the plain text.
        of: prompts.
        accepted: drafted tokens that were kept, of all.
        agreement: share of the plain texts' tokens that one wide reading of the text finds
            likeliest; None where tokens were drawn.
        divergence: mean KL divergence a token from the reference, in nats.
        first_difference: of the first prompt that has one.
        promise: what the mode promises and what not.
        verdict: what was found, in words.
    """

    numerics: Numerics
    same: int
    of: int
    accepted: float
    agreement: float | None
    divergence: float
    first_difference: Difference | None
    promise: str
    verdict: str


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(takes_groups(check))


def check(
    target: Target,
    layers: Layers,
    running: Running,
    choosing: Choosing,
    draft: Draft = "auto",
    d: DraftLength = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Tokens of each of the four texts.")
    ] = 100,
    json: Json = False,
) -> int:
    """Tell whether paired output is plain output in each numerics mode; exit 8 if exact is not."""
    from tokforge_models.cli.world import World

    sampling = choosing.sampling()
    if sampling.draws and sampling.seed is None:
        sampling = replace(sampling, seed=0)
    world = World.open(layers)
    overrides = overrides_of(running, d, samples=sampling.draws)
    resolved = world.resolve(target, draft=draft, overrides=overrides)
    resolution = resolved.resolution
    if resolution.draft is None and not resolution.lookup:
        raise Refused(
            f"nothing drafts for {resolution.target.id}, so its output is plain output",
            hint=f"tokforge resolve {resolution.target.id} --explain tells why",
        )
    checker = _Checker(world, resolved, max_tokens, sampling, force=running.force, quiet=json)
    reports = checker.reports()
    exact = next(report for report in reports if report.numerics == "exact")
    ok = exact.same == exact.of
    if json:
        output.document(
            {
                "target": resolution.target.id,
                "draft": resolution.draft.id if resolution.draft else None,
                "lookup": resolution.lookup,
                "ok": ok,
                "modes": [asdict(report) for report in reports],
            }
        )
    else:
        output.line(headline(resolution))
        for report in reports:
            _show(report)
    return 0 if ok else _DIFFERS


class _Checker:
    """Runs all modes, the reference first, since the others are measured against it."""

    def __init__(
        self,
        world: World,
        resolved: Resolved,
        tokens: int,
        sampling: Sampling,
        *,
        force: bool,
        quiet: bool,
    ) -> None:
        self._world = world
        self._resolved = resolved
        self._tokens = tokens
        self._sampling = sampling
        self._force = force
        self._quiet = quiet
        # The plain texts of the reference.
        self._texts: tuple[Text, ...] = ()

    def reports(self) -> list[ModeReport]:
        from tokforge_engine.settings import Numerics
        from tokforge_models.cli.pair import open_pair

        found: dict[Numerics, ModeReport] = {}
        modes: tuple[Numerics, ...] = get_args(Numerics)
        for mode in reversed(modes):
            if not self._quiet:
                output.note(f"running plain and paired, numerics {mode}")
            with open_pair(
                self._world, self._resolved, insist=True, numerics=mode, force=self._force
            ) as pair:
                found[mode] = self._report(mode, pair)
        return [found[mode] for mode in modes]

    def _report(self, mode: Numerics, pair: Pair) -> ModeReport:
        from tokforge_engine.scoring import agreement, first_difference
        from tokforge_models.measuring.quality import PROMPTS, distance, read_texts

        session = pair.session
        plain = [self._answer(pair, prompt, 0) for prompt in PROMPTS]
        lengths = _LENGTHS if pair.d == "auto" else [pair.d] * len(PROMPTS)
        paired = [self._answer(pair, prompt, d) for prompt, d in zip(PROMPTS, lengths, strict=True)]
        partings = [
            first_difference(one.token_ids, other.token_ids)
            for one, other in zip(plain, paired, strict=True)
        ]
        answers = [
            (prompt, result.token_ids) for prompt, result in zip(PROMPTS, plain, strict=True)
        ]
        read = read_texts(session.score, answers)
        self._texts = self._texts or read
        drafted = sum(result.stats.drafted for result in paired)
        same = partings.count(None)
        return ModeReport(
            numerics=mode,
            same=same,
            of=len(partings),
            accepted=sum(result.stats.accepted for result in paired) / drafted if drafted else 0.0,
            agreement=None
            if self._sampling.draws
            else agreement([each for text in read for each in text.places]),
            divergence=distance(session.score, self._texts).divergence,
            first_difference=self._difference(session, partings, plain, paired),
            promise=_PROMISES[mode],
            verdict=_verdict(mode, same, len(partings)),
        )

    def _answer(self, pair: Pair, prompt: str, d: int | Literal["auto"]) -> Result:
        from tokforge_engine import GenerateOptions
        from tokforge_models.measuring.quality import answer

        options = GenerateOptions(max_tokens=self._tokens, d=d, sampling=self._sampling)
        return answer(pair.session.generate, prompt, options)

    def _difference(
        self,
        session: Session,
        partings: Sequence[int | None],
        plain: Sequence[Result],
        paired: Sequence[Result],
    ) -> Difference | None:
        from tokforge_engine.scoring import gap
        from tokforge_models.measuring.quality import PROMPTS

        for number, place in enumerate(partings):
            if place is None:
                continue
            shown, gaps = [], []
            for result in (plain[number], paired[number]):
                if place == len(result.token_ids):
                    shown.append(TokenShown(None, None))
                    continue
                *_, there = session.score(PROMPTS[number], result.token_ids[: place + 1])
                shown.append(TokenShown(there.token, there.text))
                gaps.append(gap(there))
            ours, theirs = shown
            return Difference(PROMPTS[number], place, ours, theirs, gaps[0])
        return None


def _verdict(mode: Numerics, same: int, of: int) -> str:
    found = f"{same} of {of} paired texts are the plain text"
    if mode == "exact":
        return f"{found}: {'kept' if same == of else 'BROKEN'}"
    return found


def _show(report: ModeReport) -> None:
    output.line()
    output.line(f"numerics {report.numerics}")
    output.line(f"  promised: {report.promise}")
    output.line(f"  {report.verdict}")
    output.line(f"  {report.accepted:.0%} of drafted tokens accepted")
    if report.agreement is not None:
        output.line(
            f"  {report.agreement:.1%} of plain tokens are the likeliest in one wide reading"
        )
    output.line(f"  KL divergence from the reference: {report.divergence:.2g} nats a token")
    if (at := report.first_difference) is not None:
        ours, theirs = (
            "the end" if each.id is None else f"{each.text!r} ({each.id})"
            for each in (at.plain, at.paired)
        )
        output.line(
            f"  first difference: token {at.position} after {at.prompt!r}: plain {ours}, "
            f"paired {theirs}; the two likeliest logits are {at.gap:.2g} apart there"
        )
