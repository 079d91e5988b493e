"""Bundles of MNN chat models: registry, draft resolution, verified transfer, store.

The names below are the public API; `tokforge_engine` runs what they resolve. They are loaded when
they are first used, so that importing this package costs nothing.

>>> from tokforge_models import Registry, resolve, probe_device
>>> resolve("qwen3-14b", registry=Registry.load(), device=probe_device()).target.id
'qwen3-14b'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokforge_models.bundle import Bundle, Role, Settings, Source, State
    from tokforge_models.device import Device, Platform
    from tokforge_models.device_probe import probe_device
    from tokforge_models.errors import (
        FetchError,
        IntegrityError,
        Refused,
        RegistryError,
        StorageError,
        TokforgeError,
        UnknownBundle,
        UsageError,
    )
    from tokforge_models.installed import Installed
    from tokforge_models.model_files.fingerprint import Fingerprint, fingerprint_of
    from tokforge_models.pulling.pull import Pulled, preview, pull
    from tokforge_models.registry.registry import Registry
    from tokforge_models.resolution.measurement import Measurement
    from tokforge_models.resolution.resolution import Overrides, Resolution, resolve
    from tokforge_models.store.measurements import Measurements
    from tokforge_models.store.store import BundleStatus, Store
    from tokforge_models.upkeep.exporting import Exported, export_bundle
    from tokforge_models.upkeep.importing import import_bundle
    from tokforge_models.upkeep.integrity import BundleReport, verify
    from tokforge_models.upkeep.removal import Removed, remove

_HOMES = {
    "bundle": ("Bundle", "Role", "Settings", "Source", "State"),
    "device": ("Device", "Platform"),
    "device_probe": ("probe_device",),
    "errors": (
        "FetchError",
        "IntegrityError",
        "Refused",
        "RegistryError",
        "StorageError",
        "TokforgeError",
        "UnknownBundle",
        "UsageError",
    ),
    "upkeep.exporting": ("Exported", "export_bundle"),
    "model_files.fingerprint": ("Fingerprint", "fingerprint_of"),
    "upkeep.importing": ("import_bundle",),
    "installed": ("Installed",),
    "upkeep.integrity": ("BundleReport", "verify"),
    "pulling.pull": ("Pulled", "preview", "pull"),
    "registry.registry": ("Registry",),
    "upkeep.removal": ("Removed", "remove"),
    "resolution.measurement": ("Measurement",),
    "resolution.resolution": ("Overrides", "Resolution", "resolve"),
    "store.measurements": ("Measurements",),
    "store.store": ("BundleStatus", "Store"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Bundle",
    "BundleReport",
    "BundleStatus",
    "Device",
    "Exported",
    "FetchError",
    "Fingerprint",
    "Installed",
    "IntegrityError",
    "Measurement",
    "Measurements",
    "Overrides",
    "Platform",
    "Pulled",
    "Refused",
    "Registry",
    "RegistryError",
    "Removed",
    "Resolution",
    "Role",
    "Settings",
    "Source",
    "State",
    "StorageError",
    "Store",
    "TokforgeError",
    "UnknownBundle",
    "UsageError",
    "export_bundle",
    "fingerprint_of",
    "import_bundle",
    "preview",
    "probe_device",
    "pull",
    "remove",
    "resolve",
    "verify",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
