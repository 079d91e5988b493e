"""`tokforge doctor`: what this machine can do, what is wrong with it, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from tokforge_models.cli import output
from tokforge_models.cli.options import Json, Layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokforge_models.doctor.facts import Facts
    from tokforge_models.doctor.findings import Finding


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(doctor)


def doctor(layers: Layers, json: Json = False) -> int:
    """Tell what this machine can do and what is wrong with it; changes nothing."""
    from tokforge_engine.backends import backends
    from tokforge_engine.free_memory import free_bytes
    from tokforge_models.doctor.findings import Level, findings
    from tokforge_models.doctor.probe import probe

    facts = probe(layers, ask_backends=backends, free_memory=free_bytes)
    found = findings(facts)
    broken = [each for each in found if each.level is Level.PROBLEM]
    if json:
        output.document(as_document(facts, found))
    else:
        _show(found)
    return exit_code(broken[0]) if broken else 0


def exit_code(problem: Finding) -> int:
    """What a command that meets this problem ends with."""
    from tokforge_engine import EngineError
    from tokforge_models.errors import IntegrityError, RegistryError, StorageError

    errors = (EngineError, StorageError, IntegrityError, RegistryError)
    return {error.kind: error.exit_code for error in errors}[str(problem.kind)]


def as_document(facts: Facts, found: Sequence[Finding]) -> dict[str, Any]:
    """The document of ``doctor --json``."""
    from tokforge_models.doctor.findings import Level, standing
    from tokforge_models.resolution.measurement import device_document

    return {
        "ok": not any(each.level is Level.PROBLEM for each in found),
        "findings": [asdict(each) for each in found],
        "python": facts.python.version,
        "tokforge": facts.tokforge,
        "mnn": facts.mnn.version,
        "backends": dict(facts.mnn.backends),
        "device": device_document(facts.device),
        "free_memory_bytes": facts.free_memory,
        "home": facts.home.path,
        "free_disk_bytes": facts.home.free_bytes,
        "registry": list(facts.layers),
        "bundles": {bundle.id: bundle.state for bundle in facts.bundles},
        "profiles": [
            {
                "file": each.path,
                "target": each.target,
                "draft": each.draft,
                "alone": each.measurement.draft is None,
                "ratio": each.measurement.ratio,
                "plain": each.measurement.plain,
                "paired": each.measurement.paired,
                "by": each.measurement.by,
                "measured_at": each.measurement.measured_at.isoformat(),
                "mnn": each.measurement.mnn,
                "expired": standing(each, facts.device, facts.mnn.version),
            }
            for each in facts.profiles
        ],
        "network": dict(facts.network),
    }


def _show(found: Sequence[Finding]) -> None:
    from tokforge_models.doctor.findings import Level

    width = max(len(each.subject) for each in found)
    for each in found:
        output.line(f"{each.level:8} {each.subject:{width}}  {each.text}")
        if each.next:
            output.line(f"{'':8} {'':{width}}  try: {each.next}")
    counts = {level: sum(each.level is level for each in found) for level in Level}
    problems, notes = counts[Level.PROBLEM], counts[Level.NOTE]
    output.line()
    output.line(
        f"{problems} problem{'s' if problems != 1 else ''}, {notes} note{'s' if notes != 1 else ''}"
    )
