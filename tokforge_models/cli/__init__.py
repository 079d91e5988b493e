"""The `tokforge` command: thin commands over the public API.

Nothing heavy is imported here or by `app`, so that `tokforge --help` answers at once; each command
imports what it needs when it runs.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Entry point of the `tokforge` script."""
    try:
        # Modules come to stay: while they load there is nothing to collect.
        gc.disable()
        from tokforge_models.cli.app import run

        gc.enable()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Before the command began or while it said its last words.
        code = 130
    # What is frozen is not searched for cycles when the interpreter ends, which takes 0.1 s.
    gc.freeze()
    sys.exit(code)
