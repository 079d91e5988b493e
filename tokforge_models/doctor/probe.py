"""Looks at the machine, and changes nothing. What cannot be seen is a fact too, never an error.

MNN is tried in a process of its own, since importing it prints to standard output, and on a machine
that it was not built for it may die.
"""

from __future__ import annotations

import os
import platform
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from tokforge_models.device import Platform
from tokforge_models.device_probe import installed_mnn, probe_device, this_platform
from tokforge_models.doctor.facts import EXTRAS, Facts, Home, Mnn, Profile, Python
from tokforge_models.errors import Problem, RegistryError, StorageError, TokforgeError
from tokforge_models.files.disk import is_there
from tokforge_models.registry.registry import Registry, files_in_force
from tokforge_models.store.measurements import Measurements
from tokforge_models.store.store import BundleStatus, Store

_IMPORT_SECONDS = 60.0
_MOST_ENTRIES = 20_000
_MOST_TOLD = 5
_ADDRESSES = ("HF_ENDPOINT", "MODELSCOPE_ENDPOINT")
_SECRETS = ("HF_TOKEN", "MODELSCOPE_API_TOKEN")
_PLAIN = ("HF_HUB_OFFLINE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NO_PROXY", "no_proxy")


def probe(
    layers: Sequence[Path],
    *,
    ask_backends: Callable[[], Mapping[str, str]],
    free_memory: Callable[[], int | None],
) -> Facts:
    """All facts.

    Args:
        layers: registry files over those that are always in force.
        ask_backends: which of MNN's backends are here.
        free_memory: bytes that a new process may take.

    Raises:
        UsageError: the store's home cannot be a path here.
    """
    store = Store()
    files, problems = _registry(layers)
    faults: list[str] = []
    bundles = _bundles(store, faults)
    kept = Measurements(store.home).read()
    ids = _ids(store, faults)
    return Facts(
        python=Python(
            f"{platform.python_implementation()} {platform.python_version()}",
            (sys.version_info.major, sys.version_info.minor),
            sys.maxsize > 1 << 32,
        ),
        tokforge=_version("tokforge-models") or "not installed",
        mnn=_mnn(ask_backends),
        device=probe_device(),
        free_memory=free_memory(),
        packages={
            name: found
            for packages in EXTRAS.values()
            for name in packages
            if (found := _version(name)) is not None
        },
        layers=files,
        registry_problems=problems,
        home=_home(store),
        store_faults=tuple(dict.fromkeys(faults)),
        bundles=bundles,
        profiles=tuple(
            Profile(path, one, ids.get(one.target), ids.get(one.draft or ""))
            for path, one in kept.measurements.items()
        ),
        faulty_profiles=tuple((path, error.problems[0]) for path, error in kept.faulty.items()),
        network=network_settings(os.environ, getproxies()),
    )


def import_fault(code: str = "import MNN.llm") -> str | None:
    """Why a program of Python does not end well in a process of its own, or None where it does.

    Args:
        code: the program.
    """
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_IMPORT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"importing it did not end within {_IMPORT_SECONDS:.0f} s"
    except OSError as error:
        return f"no process could be started: {error.strerror or error}"
    if ended.returncode == 0:
        return None
    if ended.returncode < 0:
        number = -ended.returncode
        names = {one.value: one.name for one in signal.Signals}
        return f"importing it ends the process ({names.get(number, f'signal {number}')})"
    said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1][:300] if said else f"importing it ends with exit code {ended.returncode}"


def network_settings(
    environment: Mapping[str, str], proxies: Mapping[str, str]
) -> Mapping[str, str]:
    """What decides how downloads go, by name; of a secret, only that it is set.

    Args:
        environment: variables of the process.
        proxies: the address of the proxy for each scheme.
    """
    return {
        **{name: address(environment[name]) for name in _ADDRESSES if environment.get(name)},
        **{
            f"{kind} proxy": address(text) for kind, text in sorted(proxies.items()) if kind != "no"
        },
        **{name: environment[name] for name in _PLAIN if environment.get(name)},
        **{name: "is set" for name in _SECRETS if environment.get(name)},
    }


def address(text: str) -> str:
    """Scheme, host and port of an address, since the rest of it may be a secret.

    >>> address("http://me:secret@proxy.example:3128/path?key=secret")
    'http://proxy.example:3128'
    """
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        return "is set, and is no address"
    if not host:
        return "is set, and is no address"
    host = f"[{host}]" if ":" in host else host
    return f"{f'{scheme}://' if scheme else ''}{host}{f':{port}' if port else ''}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _mnn(ask_backends: Callable[[], Mapping[str, str]]) -> Mnn:
    here = this_platform()
    arm = platform.machine().lower() in {"arm64", "aarch64"}
    has_wheel = here not in {Platform.ANDROID, Platform.IOS} and not (
        here is Platform.WINDOWS and arm
    )
    found = installed_mnn()
    fault = import_fault() if found else None
    return Mnn(found, has_wheel, fault, ask_backends() if found and fault is None else {})


def _registry(layers: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    files = (*files_in_force(), *layers)
    try:
        Registry.load(layers)
    except RegistryError as error:
        return files, error.problems
    return files, ()


def _bundles(store: Store, faults: list[str]) -> tuple[BundleStatus, ...]:
    try:
        return store.statuses()
    except (TokforgeError, OSError) as error:
        faults.append(str(error))
        return ()


def _ids(store: Store, faults: list[str]) -> dict[str, str]:
    """Ids of the installed bundles by content."""
    try:
        return {bundle.content: id for id, bundle in store.installed().items()}
    except (TokforgeError, OSError) as error:
        faults.append(str(error))
        return {}


def _home(store: Store) -> Home:
    home = store.home
    there = home
    while not is_there(there) and there != there.parent:
        there = there.parent
    try:
        free: int | None = store.disk.free(home)
    except StorageError:
        free = None
    return Home(
        path=home,
        exists=is_there(home),
        write_fault=_write_fault(there),
        free_bytes=free,
        is_open=_is_open(home),
        unreadable=tuple(islice(_unreadable(home), _MOST_TOLD)),
    )


def _write_fault(folder: Path) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _is_open(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return os.name == "posix" and bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def _unreadable(home: Path) -> Iterator[Path]:
    """Folders and files that this user may not read."""
    folders: list[Path] = []
    walk = os.walk(home, onerror=lambda error: folders.append(Path(error.filename)))
    files = (Path(folder, name) for folder, _, names in walk for name in names)
    for path in islice(files, _MOST_ENTRIES):
        if not path.is_symlink() and not os.access(path, os.R_OK):
            yield path
    yield from folders if is_there(home) else ()
