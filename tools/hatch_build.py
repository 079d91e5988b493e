"""Put the root's registry.yaml into the wheel."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RegistryInWheel(BuildHookInterface):  # type: ignore[type-arg]
    """Add registry.yaml beside the modules, in real wheels only.

    A static force-include would also copy it into an editable install, where it would go stale.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; `version` is standard or editable."""
        if version == "standard":
            build_data["force_include"]["registry.yaml"] = "tokforge_models/registry.yaml"
