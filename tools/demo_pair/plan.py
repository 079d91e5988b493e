"""The sizes of a run: the full one, and a quick one that only shows that the recipe works."""

from __future__ import annotations

from dataclasses import dataclass

from demo_pair.shapes import Shape
from demo_pair.subject import PAIRS
from demo_pair.training import Schedule

SEED = 20_261_201


@dataclass(frozen=True)
class Plan:
    """Everything that decides how long a run takes and what comes out."""

    target: Shape
    draft: Shape
    pairs: int
    one_question_in: int
    row: int
    target_rows: int
    target_schedule: Schedule
    own_wordings_one_in: int
    more_pairs: int
    temperatures: tuple[float, ...]
    slots: int
    draft_rows: int
    draft_schedule: Schedule
    judged: int


FULL = Plan(
    target=Shape(layers=24, width=256, inner=512, heads=4, kv_heads=2),
    draft=Shape(layers=1, width=256, inner=384, heads=4, kv_heads=2),
    pairs=PAIRS,
    one_question_in=1,
    row=128,
    target_rows=32,
    target_schedule=Schedule(cycles=(200, 130), matrix_rate=4e-3, other_rate=4e-3),
    own_wordings_one_in=4,
    more_pairs=PAIRS,
    temperatures=(0.0,),
    slots=160,
    draft_rows=32,
    draft_schedule=Schedule(cycles=(1200,), matrix_rate=4e-3, other_rate=4e-3),
    judged=240,
)
QUICK = Plan(
    target=Shape(layers=3, width=256, inner=256, heads=4, kv_heads=2),
    draft=Shape(layers=1, width=128, inner=128, heads=2, kv_heads=2),
    pairs=20,
    one_question_in=40,
    row=96,
    target_rows=8,
    target_schedule=Schedule(cycles=(40,), matrix_rate=4e-3, other_rate=4e-3, warm_up=5),
    own_wordings_one_in=2,
    more_pairs=0,
    temperatures=(0.0,),
    slots=32,
    draft_rows=8,
    draft_schedule=Schedule(cycles=(40,), matrix_rate=4e-3, other_rate=4e-3, warm_up=5),
    judged=8,
)
