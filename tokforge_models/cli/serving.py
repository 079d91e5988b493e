"""`tokforge serve`: an OpenAI-compatible server on top of a pair."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
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
            help="Tokens of an answer at most, also where a request names no number.",
        ),
    ] = 4096,
    queue: Annotated[
        int, typer.Option("--queue", min=0, help="Requests that may wait while one runs.")
    ] = 64,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1.0, help="Seconds of a request, waiting included.")
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

    key = None if no_api_key else _key(api_key)
    if key is None and not no_api_key and not _is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines, and there is no key",
            hint=f"--api-key FILE or {KEY_VARIABLE}, or --no-api-key to let everybody in",
        )
    world = World.open(layers)
    resolved = world.resolve(target, draft=draft, overrides=overrides_of(running, d, samples=False))
    insist = draft not in {"auto", "none"}
    sock = listening.listen(host, port)
    metrics = Metrics()

    def load() -> AbstractContextManager[Served]:
        return _serving(
            lambda: open_pair(
                world, resolved, insist=insist, numerics=numerics, force=running.force
            )
        )

    with (
        sock,
        Queue(load, most_waiting=queue, seconds=timeout, on_restart=metrics.restarted) as line,
    ):
        access = Access(key, frozenset(name.lower() for name in allow_host), tuple(cors))
        output.note(f"serving {line.served.name} at {listening.address(sock)}")
        application = app.build(line, metrics, access, max_tokens)
        listening.server(application, line).run(sockets=[sock])


@contextmanager
def _serving(open_pair: Callable[[], AbstractContextManager[Pair]]) -> Iterator[Served]:
    """A loaded pair as the server sees it."""
    from tokforge_models.serving.served import Served

    with open_pair() as pair:
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


def _key(file: Path | None) -> str | None:
    """The key, from a file or the environment: the command line is for everybody to read.

    Raises:
        UsageError: the file holds no key.
        StorageError: it cannot be read.
    """
    if file is None:
        return os.environ.get(KEY_VARIABLE) or None
    from tokforge_models.files.disk import read_small

    try:
        text = read_small(users_path(file), _LONGEST_KEY).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{file} holds no key", expected="UTF-8 text") from None
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror or error}") from None
    key = text.strip()
    if not key or not key.isprintable():
        raise UsageError(f"{file} holds no key", expected="one line of text")
    return key


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
