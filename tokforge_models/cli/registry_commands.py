"""`tokforge registry lint|path`: for authors of registry files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokforge_models.cli import output
from tokforge_models.cli.options import Json, Layers
from tokforge_models.errors import RegistryError

registry_app = typer.Typer(
    help="Check registry files; tell which are in force.", no_args_is_help=True
)


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the root command."""
    app.add_typer(registry_app, name="registry")


@registry_app.command()
def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[FILE...]",
            help="Registry files; without any, all that are in force.",
            default_factory=list,
        ),
    ],
    json: Json = False,
) -> None:
    """Name every fault of registry files, each with its line and key."""
    from tokforge_models.registry import registry

    found = {path: registry.lint(path) for path in files or registry.files_in_force()}
    if json:
        output.document(
            {
                "ok": not any(found.values()),
                "files": [
                    {
                        "path": str(path),
                        "problems": [
                            {"line": p.line, "key": p.key, "expected": p.expected, "got": p.got}
                            for p in problems
                        ],
                    }
                    for path, problems in found.items()
                ],
            }
        )
    else:
        for path, problems in found.items():
            for problem in problems:
                output.line(str(problem))
            if not problems:
                output.line(f"{path}: ok")
    if any(found.values()):
        raise typer.Exit(RegistryError.exit_code)


@registry_app.command()
def path(layers: Layers, json: Json = False) -> None:
    """List the registry files in force, weakest first."""
    from tokforge_models.registry import registry

    files = [str(file) for file in (*registry.files_in_force(), *layers)]
    if json:
        output.document(files)
    else:
        for file in files:
            output.line(file)
