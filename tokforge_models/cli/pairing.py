"""`tokforge resolve`: which draft, which settings, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokforge_models.cli import output
from tokforge_models.cli.options import (
    Chip,
    DeviceFile,
    Draft,
    Json,
    Layers,
    PlatformName,
    RamGb,
    Target,
)

if TYPE_CHECKING:
    from tokforge_models.resolution.resolution import Resolution


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the root command."""
    app.command()(resolve)


def resolve(
    target: Target,
    layers: Layers,
    draft: Draft = "auto",
    explain: Annotated[bool, typer.Option("--explain", help="Show every rule and why.")] = False,
    device: DeviceFile = None,
    platform: PlatformName = None,
    chip: Chip = None,
    ram_gb: RamGb = None,
    json: Json = False,
) -> None:
    """Tell which draft a target runs with on this device or another, and why."""
    from tokforge_models.cli.world import World, describe_device

    world = World.open(layers, describe_device(device, platform, chip, ram_gb))
    resolution = world.resolve(target, draft=draft).resolution
    if json:
        output.document(as_document(resolution))
        return
    output.line(f"target  {resolution.target.id}")
    output.line(f"draft   {resolution.draft.id if resolution.draft else 'none'}")
    output.line(f"lookup  {'allowed' if resolution.lookup else 'off'}")
    output.line(f"reason  {resolution.reason}")
    output.line(f"rule    {resolution.rule or 'no rule'}")
    for note in resolution.notes:
        output.line(f"note    {note}")
    if explain:
        _explain(resolution)


def _explain(resolution: Resolution) -> None:
    settings = resolution.settings
    if resolution.statement:
        output.line(f"from    {resolution.statement.title}, {resolution.statement.where}")
    output.line()
    advice = f", recommended {settings.d_recommended}" if settings.d_recommended else ""
    output.line(f"settings (d {settings.d}{advice})")
    for name, of_model in (("target", settings.target), ("draft", settings.draft)):
        if of_model:
            listed = ", ".join(f"{key} {value}" for key, value in of_model.given().items())
            output.line(f"  {name:7} {listed}")
    output.line()
    output.line("rules, in order")
    for step in resolution.trace:
        output.line(f"  {'*' if step.applied else ' '} {step.rule}: {step.why}")


def as_document(resolution: Resolution) -> dict[str, Any]:
    """The document of ``resolve --json``."""
    settings = resolution.settings
    return {
        "target": resolution.target.id,
        "draft": resolution.draft.id if resolution.draft else None,
        "lookup": resolution.lookup,
        "reason": resolution.reason,
        "rule": resolution.rule,
        "settings": {
            "target": asdict(settings.target),
            "draft": asdict(settings.draft) if settings.draft else None,
            "d": settings.d,
        },
        "trace": [asdict(step) for step in resolution.trace],
        "from": resolution.statement.id if resolution.statement else None,
        "notes": list(resolution.notes),
    }
