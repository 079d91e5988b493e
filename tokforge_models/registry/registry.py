"""The registry: which bundles exist, where they come from, and which draft goes with which target.

Layers, weakest first: the file that travels with this package, ``<config dir>/registry.yaml``,
then the files that a command names. A later layer may add bundles and puts its rules in front of
all earlier ones; it replaces a bundle only by saying ``replace: true``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tokforge_models.bundle import Bundle, Role
from tokforge_models.errors import Problem, RegistryError, UnknownBundle
from tokforge_models.files.disk import is_there
from tokforge_models.registry.lint import check, name_key
from tokforge_models.registry.pairing import Rule, Statement
from tokforge_models.registry.schema import Layer, read_layer

FILE_NAME = "registry.yaml"
CONFIG_DIR_VARIABLE = "TOKFORGE_CONFIG_DIR"
WEIGHT_FILE = "llm.mnn.weight"


def builtin_registry_path() -> Path:
    """The file that travels with this package.

    A wheel carries it beside the modules; an editable install leaves it at the root of the tree.
    """
    package = Path(__file__).parent.parent
    inside = package / FILE_NAME
    return inside if inside.is_file() else package.parent / FILE_NAME


def default_config_dir() -> Path:
    """The user's configuration folder: $TOKFORGE_CONFIG_DIR, else the platform's."""
    if chosen := os.environ.get(CONFIG_DIR_VARIABLE):
        return Path(chosen)
    from platformdirs import user_config_path

    return user_config_path("tokforge", appauthor=False)


def files_in_force(config_dir: Path | None = None) -> tuple[Path, ...]:
    """The layers that every command reads, weakest first: the built-in file and the user's.

    Args:
        config_dir: folder of the user's ``registry.yaml``, which need not exist; None means
            `default_config_dir`.
    """
    user = (default_config_dir() if config_dir is None else config_dir) / FILE_NAME
    return (builtin_registry_path(), *((user,) if is_there(user) else ()))


@dataclass(frozen=True, slots=True)
class Registry:
    """All layers, merged and checked.

    Attributes:
        bundles: id -> entry.
        rules: pairing rules; the first that applies decides.
        statements: id -> what rules and pins rest on.
        files: the layers' files, weakest first.
    """

    bundles: Mapping[str, Bundle]
    rules: tuple[Rule, ...]
    statements: Mapping[str, Statement]
    files: tuple[Path, ...]
    _names: Mapping[str, str] = field(repr=False)

    @classmethod
    def load(cls, layers: Sequence[Path] = (), *, config_dir: Path | None = None) -> Registry:
        """Read the built-in registry, the user's, and `layers`, and check them together.

        Args:
            layers: further files, strongest last.
            config_dir: folder of the user's ``registry.yaml``, which need not exist; None means
                `default_config_dir`.

        Raises:
            RegistryError: with every problem of every layer.
        """
        return cls._of((*files_in_force(config_dir), *layers))

    @classmethod
    def _of(cls, files: Iterable[Path]) -> Registry:
        paths = tuple(files)
        layers = [read_layer(path) for path in paths]
        check(layers)
        if problems := [problem for layer in layers for problem in layer.problems.found]:
            raise RegistryError(problems)
        bundles = {bundle.id: bundle for layer in layers for _, bundle in layer.bundles}
        return cls(
            bundles=bundles,
            rules=tuple(rule for layer in reversed(layers) for _, rule in layer.rules),
            statements={word.text: s for layer in layers for word, s in layer.statements},
            files=paths,
            _names=_names(layers, bundles),
        )

    def find(self, name: str) -> Bundle:
        """The bundle of that id, display name, alias or repository.

        Case and punctuation do not count: ``Qwen3 8B (MNN)`` and ``qwen3_8b-mnn`` are the same.

        Raises:
            UnknownBundle: with the nearest names as a hint.
        """
        key = name_key(name)
        if key in self._names:
            return self.bundles[self._names[key]]
        near = difflib.get_close_matches(key[:200], self._names, n=6, cutoff=0.6)
        ids = list(dict.fromkeys(self._names[match] for match in near))[:3]
        meant = f"did you mean {' or '.join(ids)}? " if ids else ""
        raise UnknownBundle(
            f"no bundle is called {name[:80]!r}", hint=f"{meant}tokforge ls shows all bundles"
        )

    def by_weight_sha256(self, digest: str) -> Bundle | None:
        """The bundle whose weight file has this SHA-256, or None. This is how a folder of unknown
        origin is recognised.
        """
        for bundle in self.bundles.values():
            for file in bundle.files:
                if file.path == WEIGHT_FILE and file.sha256 == digest.lower():
                    return bundle
        return None


def unlisted(name: str) -> Bundle:
    """The entry of a chat model that no registry knows: nothing is said of it, no rule names it."""
    return Bundle(id=name, name=name, role=Role.CHAT, family="")


def lint(path: Path) -> tuple[Problem, ...]:
    """All problems of one registry file, read as a layer over the built-in registry."""
    builtin = builtin_registry_path()
    try:
        alone = path.samefile(builtin)
    except OSError:
        alone = False
    layers = [read_layer(file) for file in ([path] if alone else [builtin, path])]
    check(layers)
    return tuple(layers[-1].problems.found)


def _names(layers: Iterable[Layer], bundles: Mapping[str, Bundle]) -> dict[str, str]:
    names: dict[str, str] = {}
    for bundle in bundles.values():
        for source in bundle.sources:
            if source.kind in {"hf", "modelscope"}:
                names.setdefault(name_key(source.location), bundle.id)
    for layer in layers:
        names |= {name_key(word.text): owner for owner, word in layer.aliases}
    return names | {name_key(name): name for name in bundles}
