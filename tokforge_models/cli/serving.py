"""`tokforge serve`: an OpenAI-compatible server on top of a pair."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokforge_models.cli import output
from tokforge_models.cli.answers import headline, overrides_of
from tokforge_models.cli.option_groups import Running, takes_groups
from tokforge_models.cli.options import Draft, DraftLength, Layers, NumericsMode, Target
from tokforge_models.errors import Refused, StorageError, UsageError
from tokforge_models.names import users_path

if TYPE_CHECKING:
    from tokforge_models.cli.pair import Pair
    from tokforge_models.serving.served import Served

KEY_VARIABLE = "TOKFORGE_API_KEY"

_NEEDED = ("starlette", "uvicorn", "pydantic", "prometheus_client")
_LONGEST_KEY = 4096
_NAME = r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?"


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(takes_groups(serve))


def serve(
    target: Target,
    layers: Layers,
    running: Running,
    allow_host: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Answer to this host name too, besides localhost and addresses.",
            default_factory=list,
            show_default=False,
        ),
    ],
    cors: Annotated[
        list[str],
        typer.Option(
            metavar="ORIGIN",
            help="Let pages of this origin read answers, e.g. https://app.example.",
            default_factory=list,
            show_default=False,
        ),
    ],
    draft: Draft = "auto",
    d: DraftLength = None,
    numerics: NumericsMode = "fast",
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8080,
    api_key: Annotated[
        Path | None,
        typer.Option(
            "--api-key",
            metavar="FILE",
            help=f"A file with the key that clients must know; {KEY_VARIABLE} has it otherwise.",
        ),
    ] = None,
    no_api_key: Annotated[
        bool, typer.Option("--no-api-key", help="Let everybody in, also from other machines.")
    ] = False,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens",
            min=1,
            max=1_000_000,
            help="Tokens of an answer at most, also where a request names no number.",
        ),
    ] = 4096,
    queue: Annotated[
        int, typer.Option("--queue", min=0, help="Requests that may wait while one runs.")
    ] = 64,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", min=1.0, max=86_400.0, help="Seconds of a request, waiting included."
        ),
    ] = 600.0,
) -> None:
    """Serve a target and its draft to clients of the OpenAI API, until Ctrl+C or SIGTERM."""
    _check_extra()
    from tokforge_models.cli.pair import open_pair
    from tokforge_models.cli.world import World
    from tokforge_models.serving import app, listening
    from tokforge_models.serving.metrics import Metrics
    from tokforge_models.serving.queue import Queue
    from tokforge_models.serving.security import Access

    access = Access(
        _key(api_key, open_to_all=no_api_key, host=host),
        frozenset(_host_name(name) for name in allow_host),
        tuple(_origin(origin) for origin in cors),
    )
    world = World.open(layers)
    resolved = world.resolve(target, draft=draft, overrides=overrides_of(running, d, samples=False))
    insist = draft not in {"auto", "none"}
    sock = listening.listen(host, port)
    metrics = Metrics()

    def load() -> AbstractContextManager[Served]:
        return _serving(
            open_pair(world, resolved, insist=insist, numerics=numerics, force=running.force)
        )

    with (
        sock,
        Queue(load, most_waiting=queue, seconds=timeout, on_restart=metrics.restarted) as line,
    ):
        output.note(f"serving {line.served.name} at {listening.address(sock)}")
        application = app.build(line, metrics, access, max_tokens)
        listening.server(application, line).run(sockets=[sock])


@contextmanager
def _serving(opening: AbstractContextManager[Pair]) -> Iterator[Served]:
    """A loaded pair as the server sees it."""
    from tokforge_models.serving.served import Served

    with opening as pair:
        resolution = pair.resolution
        output.note(headline(resolution))
        yield Served(
            model=pair.session,
            name=resolution.target.id,
            draft=resolution.draft.id if resolution.draft else None,
            lookup=resolution.lookup,
            reason=resolution.reason,
            rule=resolution.rule,
            notes=resolution.notes,
            d=pair.d,
        )


def _check_extra() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(
            f"the server needs what is not installed: {', '.join(missing)}",
            hint="pip install 'tokforge-models[serve]'",
        )


def _key(file: Path | None, *, open_to_all: bool, host: str) -> str | None:
    """The key that clients must know; None lets everybody in.

    It comes from a file or the environment: the command line is for everybody to read.

    Raises:
        UsageError: there is none where there must be one, or it is no key.
        StorageError: the file cannot be read.
    """
    if open_to_all:
        if file is not None:
            raise UsageError("--api-key and --no-api-key exclude each other", expected="one")
        return None
    if file is not None:
        return _checked_key(_text_of(file), str(file))
    if text := os.environ.get(KEY_VARIABLE):
        return _checked_key(text, KEY_VARIABLE)
    if _is_loopback(host):
        return None
    raise UsageError(
        f"{host or 'every address'} can be reached from other machines, and there is no key",
        hint=f"--api-key FILE or {KEY_VARIABLE}, or --no-api-key to let everybody in",
    )


def _text_of(file: Path) -> str:
    from tokforge_models.files.disk import read_small

    path = users_path(file)
    try:
        text = read_small(path, _LONGEST_KEY).decode()
        others = os.name == "posix" and path.stat().st_mode & 0o077
    except UnicodeDecodeError:
        raise UsageError(f"{file} holds no key", expected="UTF-8 text") from None
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror or error}") from None
    if others:
        output.note(f"other users can read the key (try: chmod 600 {shlex.quote(str(file))})")
    return text


def _checked_key(text: str, where: str) -> str:
    key = text.strip()
    if not key or not key.isprintable():
        raise UsageError(f"{where} holds no key", expected="one line of text")
    return key


def _host_name(text: str) -> str:
    """A host name as a Host header has it.

    Raises:
        UsageError: it is none.
    """
    if re.fullmatch(_NAME, name := text.lower().removesuffix(".")):
        return name
    raise UsageError("--allow-host takes a host name without a port", got=repr(text[:80]))


def _origin(text: str) -> str:
    """A web origin as an Origin header has it.

    Raises:
        UsageError: it is none.
    """
    if re.fullmatch(rf"\*|https?://(?:{_NAME}|\[[0-9a-f:]+\])(?::[0-9]{{1,5}})?", text.lower()):
        return text.lower()
    raise UsageError(
        "--cors takes an origin", expected="https://NAME or https://NAME:PORT", got=repr(text[:80])
    )


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
