"""The one narrow subject of the demo pair: short, plain answers about everyday things.

A question is a kind (what is asked, and the form of its answer) about a topic (one thing or two).
The teacher answers the first wording of it; the target is trained on all of them, so that it does
not hang on one. `python -m demo_pair.subject` lists them all, with what each is used for.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from demo_pair.kinds import KINDS, Kind, naming
from demo_pair.things import DRAFT_ONLY, NEVER_TAUGHT, THINGS

HELD_OUT_ONE_IN = 12
PAIRS = 600
"""Pairs of things that each kind about two is asked about, in the full run."""
_SECOND_IN_STORY = ("thing", "food")


@dataclass(frozen=True)
class Question:
    """A kind about a topic; `wordings[0]` is what the teacher is asked."""

    kind: Kind
    topic: tuple[str, ...]
    wordings: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name in files."""
        return ":".join((self.kind.name, *self.topic))

    @property
    def held_out(self) -> bool:
        """Whether neither model may be trained on any wording of it.

        What no other answer would tell, as a capital, is never held out.
        """
        digest = hashlib.sha256(self.key.encode()).digest()
        chosen = int.from_bytes(digest[:4], "big") % HELD_OUT_ONE_IN == 0
        return chosen and self.kind.inferable


def questions(pairs: int) -> list[Question]:
    """List what the teacher is asked, in a fixed order, with so many pairs a kind of two things."""
    return [*_on_one(THINGS), *_on_two(0, pairs)]


def for_draft(pairs: int, more: int) -> list[Question]:
    """List questions that the teacher was not asked: about other things, and `more` other pairs.

    The target has nothing by heart to say to them, as with the questions that are held out. Its own
    text about them teaches the draft to follow it there.
    """
    return [*_on_one(DRAFT_ONLY), *_on_two(pairs, pairs + more)]


def about_strangers() -> list[Question]:
    """List questions about things that neither model has met in any question."""
    return list(_on_one(NEVER_TAUGHT))


def _on_one(things: dict[str, tuple[str, ...]]) -> Iterator[Question]:
    for kind in KINDS:
        if kind.paired:
            continue
        for noun in itertools.chain.from_iterable(things.get(name, ()) for name in kind.about):
            if noun not in kind.topics_shown():
                yield _ask(kind, (noun,))


def _on_two(start: int, end: int) -> Iterator[Question]:
    for kind in KINDS:
        if kind.paired:
            pairs = _pairs(kind)
            random.Random(kind.name).shuffle(pairs)
            yield from (_ask(kind, pair) for pair in pairs[start:end])


def _pairs(kind: Kind) -> list[tuple[str, str]]:
    if kind.name == "story":
        heroes = [noun for category in kind.about for noun in THINGS[category]]
        finds = [noun for category in _SECOND_IN_STORY for noun in THINGS[category]]
        return list(itertools.product(heroes, finds))
    return [pair for category in kind.about for pair in itertools.permutations(THINGS[category], 2)]


def _ask(kind: Kind, topic: Sequence[str]) -> Question:
    words = naming(topic)
    wordings = tuple(wording.format(**words) for wording in kind.wordings)
    return Question(kind, tuple(topic), wordings)


def _main() -> None:
    for use, asked in (
        ("taught", [q for q in questions(PAIRS) if not q.held_out]),
        ("held out", [q for q in questions(PAIRS) if q.held_out]),
        ("draft only", [q for q in for_draft(PAIRS, PAIRS) if not q.held_out]),
        ("unknown", about_strangers()),
    ):
        for question in asked:
            for wording in question.wordings:
                print(f"{use}\t{question.key}\t{wording}")


if __name__ == "__main__":
    _main()
