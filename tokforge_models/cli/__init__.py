"""The `tokforge` command: thin commands over the public API.

Nothing heavy is imported here or by `app`, so that `tokforge --help` answers at once; each command
imports what it needs when it runs.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `tokforge` script."""
    try:
        from tokforge_models.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Before the command began or while it said its last words.
        code = 130
    sys.exit(code)
