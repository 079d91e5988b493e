"""A ready bundle, as the store shows it to resolution and to the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tokforge_models.bundle import Settings


@dataclass(frozen=True, slots=True)
class Installed:
    """One bundle in state ready.

    Attributes:
        id: the registry id, or the id it was imported as.
        revision: the revision in use.
        path: directory that can be handed to MNN as it is.
        content: hexadecimal digest over paths, sizes and sha256 of the required files; two
            bundles with equal content digests are the same model.
        settings: what the bundle's own config.json says; the weakest layer.
    """

    id: str
    revision: str
    path: Path
    content: str
    settings: Settings = field(default_factory=Settings)
