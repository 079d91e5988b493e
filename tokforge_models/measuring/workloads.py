"""What is decoded in a bench: prompts by kind of text, as they ship with this package.

`workloads.json` maps the name of each workload to its prompts; ``{document}`` in a prompt stands
for the text of `document.txt`, about 2,000 tokens for the vocabularies of today's models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from tokforge_models.errors import UsageError

QUICK = ("prose", "code", "copy and edit")


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of text.

    Attributes:
        name: for people and files.
        prompts: what is asked, one text each.
    """

    name: str
    prompts: tuple[str, ...]


def all_workloads() -> tuple[Workload, ...]:
    """Every workload of the package, in the order of its file."""
    here = files("tokforge_models.measuring")
    document = (here / "document.txt").read_text(encoding="utf-8").strip()
    prompts = json.loads((here / "workloads.json").read_text(encoding="utf-8"))
    return tuple(
        Workload(name, tuple(text.replace("{document}", document) for text in texts))
        for name, texts in prompts.items()
    )


def chosen(names: Sequence[str], *, quick: bool = False) -> tuple[Workload, ...]:
    """The workloads of these names; all where none is named, and of `quick` ones a few.

    Raises:
        UsageError: there is no workload of a name.
    """
    known = {workload.name: workload for workload in all_workloads()}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"no workload is called {unknown[0][:40]!r}", expected="one of " + ", ".join(known)
        )
    picked = [known[name] for name in dict.fromkeys(names or (QUICK if quick else tuple(known)))]
    if quick:
        return tuple(replace(workload, prompts=workload.prompts[:1]) for workload in picked)
    return tuple(picked)
