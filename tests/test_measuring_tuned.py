"""A tune as a document and as a table."""

from __future__ import annotations

import json

from test_measuring_tuning_file import CONDITIONS
from tokforge_models.measuring.trials import Setup
from tokforge_models.measuring.tuned import Tuned, as_document, headline, tables
from tokforge_models.measuring.tuning_file import Conditions
from tokforge_models.measuring.verdict import decide
from tuning_kit import SHIPPED, Device, question, search


def tuned_by(device: Device, *, most: int = 10_000, **changes: object) -> Tuned:
    asked = question(**changes)
    known = search(asked, device, most=most)
    draft = "small" if asked.shipped.draft else None
    conditions: Conditions = CONDITIONS
    return Tuned("demo", draft, asked, conditions, known, decide(asked, known))


def test_the_document_has_all_that_was_found() -> None:
    tuned = tuned_by(Device(chance=0.8, target_speed=lambda s: 1.5 if s.threads == 2 else 1.0))
    document = json.loads(json.dumps(as_document(tuned)))
    assert document["verdict"] == tuned.verdict.words
    chosen = document["chosen"]
    assert chosen["target"]["threads"] == 2
    assert chosen["way"] == {"drafter": "model", "d": chosen["way"]["d"]}
    assert chosen["what"].startswith("d ")
    assert chosen["ratio"] > 1.4
    assert chosen["divergence"] == 0.02
    assert document["before"]["ratio"] == 1.0
    assert document["plain"]["way"] == {"drafter": "none", "d": 0}
    assert set(document["best"]) == {"paired", "alone"}
    assert len(document["trials"]) == len(tuned.known.tried)
    assert chosen in document["standings"]
    assert document["refused"] == []
    assert all(each["what"] and each["why"] for each in document["skipped"])


def test_the_table_shows_the_chosen_one_first_and_what_is_shipped() -> None:
    tuned = tuned_by(Device(chance=0.8))
    (table,) = tables(tuned)
    marks = [row[-1] for row in table.rows]
    assert marks[0].startswith("chosen")
    assert any(mark.startswith("as shipped") for mark in marks)
    assert any("best plain" in mark for mark in marks)
    assert any(line.startswith("verdict") for line in headline(tuned))


def test_a_refused_format_is_told() -> None:
    device = Device(
        divergence=lambda s: 0.0 if s.memory == "normal" else 0.02 if not s.dynamic_option else 0.2
    )
    lines = headline(tuned_by(device))
    (told,) = [line for line in lines if line.startswith("refused")]
    assert "dynamic option 2: 0.2000 nats" in told


def test_what_hardly_began_has_no_table() -> None:
    tuned = tuned_by(Device(), most=1, shipped=Setup(SHIPPED))
    assert tables(tuned) == ()
    document = as_document(tuned)
    assert document["chosen"] is None
    assert document["complete"] is False
    assert any("there is more to try" in line for line in headline(tuned))
