"""What was learned about a pair's drafters, and how it outlives a session.

The file, written as a whole after an answer and renamed into place:

    {"schema": 1, "speedup": 1.4,
     "model":  {"tried": [8 counts], "kept": [8 counts]},
     "lookup": {"tried": [6 counts], "kept": [6 counts]}}

Costs are not in it: they are measured at each load. A file that is missing, unreadable or of
another schema is as good as none.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from tokforge_engine.chances import Chances
from tokforge_engine.drafting import CONFIDENCES
from tokforge_engine.lookup import MATCHES
from tokforge_engine.regular_file import read_regular

_SCHEMA = 1
_MAX_BYTES = 100_000
# Before anything is known: a draft is right about as often as it believes itself, an earlier
# passage goes on as before the likelier the longer it matched.
_MODEL_PRIORS = tuple(
    (low + high) / 2 for low, high in zip((0.05, *CONFIDENCES), (*CONFIDENCES, 1.0), strict=True)
)
_LOOKUP_PRIORS = tuple(1.0 - 0.8 * (2 / match) ** 0.6 for match in MATCHES)
# Where a text repeats itself changes faster than how good a draft is.
_MODEL_FADE, _LOOKUP_FADE = 0.99, 0.97
_MOST_SPEEDUP = 16.0


class Learned:
    """Chances of both drafters, and how fast tokens come with them.

    Attributes:
        model: chances of the draft model's guesses.
        lookup: chances of what is looked up.
        speedup: tokens a second lately, times the time of a plain step; at least 1.
    """

    def __init__(self) -> None:
        self.model = Chances(_MODEL_PRIORS, _MODEL_FADE)
        self.lookup = Chances(_LOOKUP_PRIORS, _LOOKUP_FADE)
        self.speedup = 1.0

    @classmethod
    def read(cls, path: Path) -> Learned:
        """What a file holds; nothing learned where it is no such file."""
        try:
            document = json.loads(read_regular(path, _MAX_BYTES))
            if document["schema"] == _SCHEMA:
                return cls._of(document)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            pass
        return cls()

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Learned:
        learned = cls()
        for name, chances in (("model", learned.model), ("lookup", learned.lookup)):
            chances.restore(document[name]["tried"], document[name]["kept"])
        speedup = float(document["speedup"])
        if not 1.0 <= speedup <= _MOST_SPEEDUP:
            raise ValueError(f"a speedup of {speedup}")
        learned.speedup = speedup
        return learned

    def write(self, path: Path) -> None:
        """Replace the file at `path`.

        Raises:
            OSError: it cannot be written; the old one stays.
        """
        document = {
            "schema": _SCHEMA,
            "speedup": min(self.speedup, _MOST_SPEEDUP),
            "model": {"tried": self.model.tried, "kept": self.model.kept},
            "lookup": {"tried": self.lookup.tried, "kept": self.lookup.kept},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            new.write_text(json.dumps(document), encoding="utf-8")
            new.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
