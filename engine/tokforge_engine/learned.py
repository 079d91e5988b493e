"""What was learned about a pair's drafters, and how it outlives a session.

The file, written as a whole after an answer and renamed into place:

    {"schema": 3, "speedups": {"any": 1.4, "model": 1.3, "lookup": 1.1},
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
from typing import Any, Literal, get_args

from tokforge_engine.chances import Chances
from tokforge_engine.lookup import MATCHES
from tokforge_engine.regular_file import read_regular

_SCHEMA = 3
_MAX_BYTES = 100_000
# Before anything is known: a draft is right about as often as it believes itself, which is its
# likeliest token's mean probability at each degree (benchmarks/draft_sureness.py); an earlier
# passage goes on as before the likelier the longer it matched.
_MODEL_PRIORS = (0.05, 0.12, 0.22, 0.34, 0.48, 0.63, 0.77, 0.96)
_LOOKUP_PRIORS = tuple(1.0 - 0.8 * (2 / match) ** 0.6 for match in MATCHES)
# Where a text repeats itself changes faster than how good a draft is.
_MODEL_FADE, _LOOKUP_FADE = 0.99, 0.97
_MOST_SPEEDUP = 16.0

Drafters = Literal["any", "model", "lookup"]
"""Who may guess for a request, as in `GenerateOptions.drafter`."""


class Learned:
    """Chances of both drafters, and how fast tokens come with those that may guess.

    Attributes:
        model: chances of the draft model's guesses.
        lookup: chances of what is looked up.
        speedup: tokens a second lately, times the time of a plain step; at least 1.
    """

    def __init__(self, model: Chances | None = None, lookup: Chances | None = None) -> None:
        self.model = model or Chances(_MODEL_PRIORS, _MODEL_FADE)
        self.lookup = lookup or Chances(_LOOKUP_PRIORS, _LOOKUP_FADE)
        self.speedup = 1.0


class PairLearned:
    """What is known of a pair: one row of chances a drafter, one speed for each set of drafters."""

    def __init__(self) -> None:
        self._any = Learned()
        self._by_drafters: dict[Drafters, Learned] = {"any": self._any}

    def of(self, drafters: Drafters) -> Learned:
        """What is known where these may guess; the chances are the same objects for all."""
        if drafters not in self._by_drafters:
            self._by_drafters[drafters] = Learned(self._any.model, self._any.lookup)
        return self._by_drafters[drafters]

    @classmethod
    def read(cls, path: Path) -> PairLearned:
        """What a file holds; nothing learned where it is no such file."""
        try:
            document = json.loads(read_regular(path, _MAX_BYTES))
            if document["schema"] == _SCHEMA:
                return cls._from(document)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            pass
        return cls()

    @classmethod
    def _from(cls, document: dict[str, Any]) -> PairLearned:
        pair = cls()
        for name, chances in (("model", pair._any.model), ("lookup", pair._any.lookup)):
            chances.restore(document[name]["tried"], document[name]["kept"])
        speedups = dict(document["speedups"])
        for drafters in get_args(Drafters):
            if drafters in speedups:
                speedup = float(speedups[drafters])
                if not 1.0 <= speedup <= _MOST_SPEEDUP:
                    raise ValueError(f"a speedup of {speedup}")
                pair.of(drafters).speedup = speedup
        return pair

    def write(self, path: Path) -> None:
        """Replace the file at `path`.

        Raises:
            OSError: it cannot be written; the old one stays.
        """
        document = {
            "schema": _SCHEMA,
            "speedups": {
                drafters: min(learned.speedup, _MOST_SPEEDUP)
                for drafters, learned in self._by_drafters.items()
            },
            **{
                name: {"tried": chances.tried, "kept": chances.kept}
                for name, chances in (("model", self._any.model), ("lookup", self._any.lookup))
            },
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
