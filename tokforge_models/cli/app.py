"""The command tree, and the one place where an exception becomes a sentence and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated

import typer

from tokforge_engine.errors import EngineError
from tokforge_models.cli import output
from tokforge_models.errors import TokforgeError

INTERRUPTED = 130

# Commands by the module they are in, in the order that the help shows.
COMMANDS = {
    "running": ("demo", "run"),
    "chat": ("chat",),
    "check": ("check",),
    "bench": ("bench",),
    "tune": ("tune",),
    "serving": ("serve",),
    "pairing": ("resolve",),
    "doctor": ("doctor",),
    "pulling": ("pull",),
    "bundles": ("ls", "show", "verify", "import", "export", "rm"),
    "upkeep": ("lock", "update", "prune"),
    "registry_commands": ("registry",),
}


def command_tree(words: Sequence[str] = ()) -> typer.Typer:
    """The root command, with all that can be asked of it.

    Args:
        words: a command line. If it begins with a command, only the module of that one is
            imported: a third of the time that a short command takes.
    """
    asked = [module for module, names in COMMANDS.items() if words and words[0] in names]
    return _tree(tuple(asked or COMMANDS))


@cache
def _tree(modules: tuple[str, ...]) -> typer.Typer:
    app = typer.Typer(
        name="tokforge",
        help="Bundles of MNN chat models: verified downloads, draft pairings with their reasons, "
        "and paired inference.",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for module in modules:
        import_module(f"tokforge_models.cli.{module}").add_to(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        output.line(f"tokforge-models {version('tokforge-models')}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code (the table is in docs/commands.md)."""
    output.open_missing_streams()
    words = list(argv)
    as_json = "--json" in words[: words.index("--") if "--" in words else None]
    try:
        code = command_tree(words)(args=words, prog_name="tokforge", standalone_mode=False)
        if code == INTERRUPTED:
            output.error("interrupted", "stopped; what was verified is kept", "", as_json=as_json)
        return code if isinstance(code, int) else 0
    except output.ReaderGone:
        # `tokforge ls | head -1`
        output.silence()
        return 0
    except output.Interrupted:
        output.note("tokforge: stopped")
        return INTERRUPTED
    except SystemExit as left:
        # Typer's own printer of the help says by exit code 1 that its reader has gone.
        output.silence()
        return 0 if {"--help", "-h"} & set(words) or not words else int(left.code or 0)
    except (TokforgeError, EngineError) as failed:
        output.error(failed.kind, failed.message, failed.hint, as_json=as_json)
        return failed.exit_code
    except typer.TyperException as failed:
        command = getattr(getattr(failed, "ctx", None), "command_path", "tokforge")
        said = getattr(failed, "format_message", failed.__str__)()
        output.error("usage", said, f"{command} --help", as_json=as_json)
        return 2
    except OSError as failed:
        where = f" at {failed.filename}" if failed.filename else ""
        reason = failed.strerror or str(failed)
        output.error("storage", f"{reason}{where}", "", as_json=as_json)
        return 6
