"""The command tree, and the one place where an exception becomes a sentence and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tokforge_engine.errors import EngineError
from tokforge_models.cli import (
    bundles,
    chat,
    check,
    output,
    pairing,
    pulling,
    registry_commands,
    running,
    upkeep,
)
from tokforge_models.errors import TokforgeError

INTERRUPTED = 130

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


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        output.line(f"tokforge-models {version('tokforge-models')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


running.add_to(app)
chat.add_to(app)
check.add_to(app)
pairing.add_to(app)
pulling.add_to(app)
bundles.add_to(app)
upkeep.add_to(app)
registry_commands.add_to(app)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code (the table is in docs/commands.md)."""
    output.open_missing_streams()
    words = list(argv)
    as_json = "--json" in words[: words.index("--") if "--" in words else None]
    try:
        code = app(args=words, prog_name="tokforge", standalone_mode=False)
        if code == INTERRUPTED:
            output.error("interrupted", "stopped; what was verified is kept", "", as_json=as_json)
        return code if isinstance(code, int) else 0
    except output.ReaderGone:
        # `tokforge ls | head -1`
        output.silence()
        return 0
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
