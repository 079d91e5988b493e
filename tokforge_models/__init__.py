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
    from tokforge_models.bundle import Bundle, Role, Settings, State
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
    from tokforge_models.exporting import Exported, export_bundle
    from tokforge_models.fingerprint import Fingerprint, fingerprint_of
    from tokforge_models.importing import import_bundle
    from tokforge_models.installed import Installed
    from tokforge_models.integrity import BundleReport, verify
    from tokforge_models.pulling import Pulled, preview, pull
    from tokforge_models.registry import Registry
    from tokforge_models.removal import Removed, remove
    from tokforge_models.resolution import Overrides, Resolution, resolve
    from tokforge_models.store import BundleStatus, Store

_HOMES = {
    "bundle": ("Bundle", "Role", "Settings", "State"),
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
    "exporting": ("Exported", "export_bundle"),
    "fingerprint": ("Fingerprint", "fingerprint_of"),
    "importing": ("import_bundle",),
    "installed": ("Installed",),
    "integrity": ("BundleReport", "verify"),
    "pulling": ("Pulled", "preview", "pull"),
    "registry": ("Registry",),
    "removal": ("Removed", "remove"),
    "resolution": ("Overrides", "Resolution", "resolve"),
    "store": ("BundleStatus", "Store"),
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
