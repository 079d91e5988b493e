"""`tokforge chat`: a conversation in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tokforge_models.cli import output
from tokforge_models.cli.answers import (
    Telling,
    draft_length,
    figures,
    headline,
    overrides_of,
)
from tokforge_models.cli.option_groups import Choosing, Running, takes_groups
from tokforge_models.cli.options import (
    Draft,
    DraftLength,
    Layers,
    NumericsMode,
    Target,
    Thinking,
)
from tokforge_models.cli.progress import PromptProgress
from tokforge_models.errors import StorageError, TokforgeError, UsageError
from tokforge_models.names import users_path

if TYPE_CHECKING:
    from tokforge_engine import GenerateOptions, Message, Result, Said
    from tokforge_models.cli.pair import Pair

_HELP = """\
/draft auto|none|lookup|ID  who guesses from now on; ID loads another draft
/d auto|N                   how many tokens are guessed a round
/stats                      figures of the last answer
/reset                      begin a new conversation
/save FILE                  write the conversation to a new file, as JSON
/help                       this list
Ctrl+C stops an answer, Ctrl+D ends the chat."""
_DRAFTED, _LOOKED_UP = "\x1b[32m", "\x1b[36m"


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(takes_groups(chat))


def chat(
    target: Target,
    layers: Layers,
    running: Running,
    choosing: Choosing,
    draft: Draft = "auto",
    d: DraftLength = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1)] = 1024,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="System message.")] = None,
    numerics: NumericsMode = "fast",
    thinking: Thinking = None,
) -> None:
    """Talk with a target and its draft; each turn reads only what is new."""
    from tokforge_engine import GenerateOptions, Message
    from tokforge_models.cli.pair import open_pair
    from tokforge_models.cli.world import World

    sampling = choosing.sampling()
    world = World.open(layers)
    overrides = overrides_of(running, d, samples=sampling.draws)
    beginning = [Message("system", system)] if system else []
    with ExitStack() as stack:

        def load(draft: str) -> Pair:
            resolved = world.resolve(target, draft=draft, overrides=overrides)
            # There may be memory for one pair only.
            stack.close()
            opening = open_pair(
                world,
                resolved,
                insist=draft not in {"auto", "none"},
                numerics=numerics,
                force=running.force,
            )
            pair = stack.enter_context(opening)
            output.note(headline(pair.resolution))
            return pair

        options = GenerateOptions(
            max_tokens=max_tokens, enable_thinking=thinking, sampling=sampling
        )
        talk = Talk(load, draft, options, beginning)
        for line in _lines():
            talk.take(line)


class Talk:
    """A conversation: what was said so far, and how the next answer is made.

    Args:
        load: gives the target with a draft that is named as in ``--draft``, and ends the pair that
            it gave before; where there cannot be such a pair, the one before stays, if its session
            is alive.
        draft: of the first answer, as in ``--draft``.
        options: of the first answer, but for d, which is the pair's; commands change them.
        beginning: messages that every conversation begins with.
    """

    def __init__(
        self,
        load: Callable[[str], Pair],
        draft: str,
        options: GenerateOptions,
        beginning: list[Message],
    ) -> None:
        self._load = load
        self._draft = draft
        self._pair = load(draft)
        self._options = replace(options, d=self._pair.d)
        self._beginning = beginning
        self._messages = list(beginning)
        self._last: Result | None = None

    def take(self, line: str) -> None:
        """Do what a line says: a command, or a message to answer."""
        if not line.strip():
            return
        try:
            if line.startswith("/"):
                self._command(*line[1:].strip().partition(" ")[::2])
            else:
                self._answer(line)
        except TokforgeError as failed:
            output.error(failed.kind, failed.message, failed.hint, as_json=False)

    def _answer(self, text: str) -> None:
        from tokforge_engine import InvalidRequest, Message

        reading = PromptProgress()
        try:
            chat = [*self._messages, Message("user", text)]
            generation = self._pair.session.generate(chat, self._options, on_prefill=reading)
        except InvalidRequest as refused:
            output.error(refused.kind, refused.message, refused.hint, as_json=False)
            return
        telling = Telling(generation)
        try:
            for said, drafted_by in telling:
                self._show(said, drafted_by)
            self._last = generation.result
        except KeyboardInterrupt:
            generation.close()
            output.note("(stopped)")
        except InvalidRequest as refused:
            output.error(refused.kind, refused.message, "/reset", as_json=False)
            return
        finally:
            reading.close()
        output.stream("\n")
        self._messages = [*chat, Message("assistant", telling.raw)]

    def _show(self, said: Said, drafted_by: str | None) -> None:
        colour = output.THOUGHT if said.thought else ""
        if drafted_by is not None:
            colour += _LOOKED_UP if drafted_by == "lookup" else _DRAFTED
        if colour and output.colours():
            output.stream(said.text, before=colour, after=output.PLAIN)
        else:
            output.stream(said.text)

    def _command(self, name: str, rest: str) -> None:
        rest = rest.strip()
        match name:
            case "draft":
                self._choose_drafter(rest)
            case "d":
                self._choose_length(rest)
            case "stats":
                output.note(figures(self._last) if self._last else "nothing was answered yet")
            case "reset":
                self._messages = list(self._beginning)
                output.note("a new conversation")
            case "save":
                self._save(rest)
            case "help":
                output.note(_HELP)
            case _:
                raise UsageError(f"there is no command /{name}", hint="/help")

    def _choose_drafter(self, who: str) -> None:
        if not who:
            raise UsageError("/draft takes who guesses", expected="auto, none, lookup or an id")
        resolution = self._pair.resolution
        loaded = {self._draft, *([resolution.draft.id] if resolution.draft else [])}
        if who == "none":
            self._options = replace(self._options, d=0)
        elif who == "lookup" and resolution.lookup:
            self._options = replace(self._options, drafter="lookup", d=self._some_length())
        else:
            if who not in loaded:
                self._load_draft(who)
            self._options = replace(self._options, drafter="any", d=self._some_length())
        output.note(f"draft {who}")

    def _load_draft(self, who: str) -> None:
        """Load the pair anew with another draft; what was said stays.

        Raises:
            UsageError: it cannot be; the pair is the one from before.
        """
        from tokforge_engine import EngineError

        try:
            self._pair = self._load(who)
        except (TokforgeError, EngineError) as failed:
            if not self._pair.session.alive:
                self._pair = self._load(self._draft)
            raise UsageError(
                f"/draft {who[:40]} cannot be: {failed.message}",
                kept=f"{self._draft} and the conversation",
                hint=failed.hint,
            ) from None
        self._draft = who
        if len(self._messages) > len(self._beginning):
            output.note("the next answer reads the whole conversation again")

    def _some_length(self) -> int | Literal["auto"]:
        """The length in use, or where nothing was drafted, the pair's."""
        d, most = self._options.d, self._pair.session.max_d
        return self._pair.d if d == 0 or (d != "auto" and d > most) else d

    def _choose_length(self, text: str) -> None:
        d = draft_length(text, most=self._pair.session.max_d, word="/d")
        self._options = replace(self._options, d=d)
        output.note(f"d {d}")

    def _save(self, name: str) -> None:
        if not name:
            raise UsageError("/save takes the name of a new file", expected="/save FILE")
        document = [
            {"role": message.role, "content": message.content} for message in self._messages
        ]
        path = users_path(Path(name))
        text = json.dumps(document, ensure_ascii=False, indent=2)
        try:
            path.open("x").close()
        except FileExistsError:
            raise UsageError(f"{name} exists and is kept", hint="/save another name") from None
        except OSError as failed:
            raise StorageError(f"{name} cannot be written ({failed.strerror})") from None
        try:
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as failed:
            # A stump would be kept at the next /save of that name.
            path.unlink(missing_ok=True)
            raise StorageError(f"{name} cannot be written ({failed.strerror})") from None
        output.note(f"saved {len(document)} messages to {name}")


def _lines() -> Iterator[str]:
    """What the user enters, until Ctrl+D; with line editing and history in a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        for raw in sys.stdin.buffer:
            try:
                yield raw.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise UsageError(
                    "a line on standard input is not UTF-8", got=f"a bad byte at {error.start}"
                ) from None
        return
    from prompt_toolkit import PromptSession

    output.note("/help lists the commands; Ctrl+D ends")
    session: PromptSession[str] = PromptSession()
    while True:
        try:
            yield session.prompt("> ")
        except KeyboardInterrupt:
            # The line is dropped, as a shell does it.
            continue
        except EOFError:
            return
