"""`tokforge run|demo`: paired inference with the engine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tokforge_models.cli import output
from tokforge_models.cli.answers import (
    Answer,
    Telling,
    figures,
    headline,
    overrides_of,
    run_document,
)
from tokforge_models.cli.option_groups import Choosing, Running, takes_groups
from tokforge_models.cli.options import (
    Draft,
    DraftLength,
    Json,
    Layers,
    NumericsMode,
    Target,
    Thinking,
)
from tokforge_models.cli.progress import PromptProgress
from tokforge_models.errors import UsageError

if TYPE_CHECKING:
    from tokforge_engine import GenerateOptions, Message, Result, Session

_DEMO_PROMPT = "Write a tiny story about a bear and an oven."
_DEMO_TOKENS = 128
_DEMO_REPEATS = 3
_DEMO_D = 3


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the root command."""
    app.command()(demo)
    app.command()(takes_groups(run))


def run(
    target: Target,
    layers: Layers,
    stop: Annotated[
        list[str],
        typer.Option(
            metavar="TEXT",
            help="Text that ends the answer; may be given again.",
            default_factory=list,
            show_default=False,
        ),
    ],
    running: Running,
    choosing: Choosing,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="Standard input when left out.")
    ] = None,
    draft: Draft = "auto",
    d: DraftLength = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1)] = 512,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="System message.")] = None,
    numerics: NumericsMode = "fast",
    thinking: Thinking = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print counts and times on stderr at the end.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer one prompt with a target and its draft; the text streams to stdout."""
    from tokforge_engine import GenerateOptions, Message
    from tokforge_models.cli.pair import open_pair
    from tokforge_models.cli.world import World

    sampling = choosing.sampling()
    question = _question(prompt)
    world = World.open(layers)
    overrides = overrides_of(running, d, samples=sampling.draws)
    resolved = world.resolve(target, draft=draft, overrides=overrides)
    chat = [*([Message("system", system)] if system else []), Message("user", question)]
    insist = draft not in {"auto", "none"}
    with open_pair(world, resolved, insist=insist, numerics=numerics, force=running.force) as pair:
        if not json:
            output.note(headline(pair.resolution))
        options = GenerateOptions(
            max_tokens=max_tokens,
            d=pair.d,
            stop=tuple(stop),
            enable_thinking=thinking,
            sampling=sampling,
        )
        answer = _stream(pair.session, chat, options, show=not json)
    if json:
        output.document(run_document(answer, pair.resolution))
        return
    if stats:
        output.note(figures(answer.result))


def _question(prompt: str | None) -> str:
    if prompt is None:
        if sys.stdin.isatty():
            output.note("reading the prompt from the terminal; end it with Ctrl+D")
        try:
            prompt = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                "the prompt on standard input is not UTF-8", got=f"a bad byte at {error.start}"
            ) from None
    if not prompt.strip():
        raise UsageError("the prompt is empty", expected="some text")
    return prompt


def _stream(
    session: Session, chat: Sequence[Message] | str, options: GenerateOptions, *, show: bool
) -> Answer:
    """Have a prompt answered; thoughts are shown in a terminal alone, and dimmed."""
    reading = PromptProgress()
    telling = Telling(session.generate(chat, options, on_prefill=reading))
    try:
        for said, _ in telling:
            if show and not said.thought:
                output.stream(said.text)
            elif show and output.colours():
                output.stream(said.text, before=output.THOUGHT, after=output.PLAIN)
    finally:
        reading.close()
    if show:
        output.stream("\n")
    return telling.answer()


def demo(layers: Layers, json: Json = False) -> None:
    """Show the whole job offline, on the pair that travels with the package."""
    from tokforge_engine import GenerateOptions
    from tokforge_models.cli.pair import open_pair
    from tokforge_models.cli.progress import bar
    from tokforge_models.cli.world import World, this_command
    from tokforge_models.pulling.pull import pull
    from tokforge_models.resolution.resolution import Overrides
    from tokforge_models.upkeep.integrity import verify

    def say(text: str) -> None:
        if not json:
            output.line(text)

    world = World.open(layers)
    pair_ids = ("demo-chat", "demo-draft")
    with bar() as progress:
        for id in pair_ids:
            bundle = world.registry.bundles[id]
            pulled = pull(bundle, world.store, progress=progress, command=this_command())
            verb = "fetched" if pulled.bytes_fetched else "already here"
            size = output.size(pulled.bytes_fetched or pulled.bytes_reused)
            say(f"pull     {id}: {size} {verb}")
        for report in verify(
            world.store, pair_ids, bundles=world.registry.bundles, full=True, repair=True
        ):
            say(f"verify   {report.id}: {'ok' if report.ok else report.state}, by sha256")
    # Auto would rightly draft nothing where that does not pay; this is here to show the machinery.
    advised = world.resolve("demo-chat").resolution.settings.d_recommended or _DEMO_D
    resolved = world.resolve("demo-chat", overrides=Overrides(d=advised))
    say(f"resolve  {headline(resolved.resolution)}")
    with open_pair(world, resolved, insist=True) as pair:
        say(f"run      {_DEMO_PROMPT!r}, paired (d {pair.d}) and plain in turn")
        paired_options = GenerateOptions(max_tokens=_DEMO_TOKENS, d=pair.d, drafter="model")
        plain_options = GenerateOptions(max_tokens=_DEMO_TOKENS, d=0)
        paired = [_stream(pair.session, _DEMO_PROMPT, paired_options, show=not json)]
        plain = [_stream(pair.session, _DEMO_PROMPT, plain_options, show=False)]
        for _ in range(_DEMO_REPEATS - 1):
            paired.append(_stream(pair.session, _DEMO_PROMPT, paired_options, show=False))
            plain.append(_stream(pair.session, _DEMO_PROMPT, plain_options, show=False))
    paired_speed, plain_speed = map(_median_speed, (paired, plain))
    ratio = paired_speed / plain_speed if plain_speed else 0.0
    if json:
        output.document(
            {
                "paired": run_document(_typical(paired), pair.resolution),
                "plain": run_document(
                    _typical(plain), world.resolve("demo-chat", draft="none").resolution
                ),
                "ratio": ratio,
            }
        )
        return
    stats = paired[0].result.stats
    say(f"accepted {stats.accepted} of {stats.drafted} drafted tokens, {stats.rounds} rounds")
    say(
        f"speed    paired {paired_speed:.0f} tokens a second, plain {plain_speed:.0f}: "
        f"ratio {ratio:.2f} (medians of {_DEMO_REPEATS}, in turn)"
    )
    say(f"text     {_agreement(paired[0].result, plain[0].result)}")


def _speed(answer: Answer) -> float:
    return answer.result.stats.tokens_per_second


def _median_speed(answers: Sequence[Answer]) -> float:
    from statistics import median

    return median(map(_speed, answers))


def _typical(answers: Sequence[Answer]) -> Answer:
    """The run with the median speed."""
    ordered = sorted(answers, key=_speed)
    return ordered[len(ordered) // 2]


def _agreement(paired: Result, plain: Result) -> str:
    if paired.token_ids == plain.token_ids:
        return "paired and plain are the same, token for token"
    both = zip(paired.token_ids, plain.token_ids, strict=False)
    same = next((at for at, (a, b) in enumerate(both) if a != b), None)
    at = min(len(paired.token_ids), len(plain.token_ids)) if same is None else same
    return (
        f"paired and plain part at token {at}: in this number format one row and several round "
        "differently (docs/engine.md); tokforge run ... --numerics exact makes them the same"
    )
