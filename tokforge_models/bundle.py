"""What a bundle is: the plain values that registry, resolution and store share.

A bundle is a directory of files that MNN loads. These values describe one; they do no I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Literal, cast

from tokforge_models.names import is_bundle_id, is_revision

SourceKind = Literal["hf", "modelscope", "url", "path", "package"]

MAX_D = 15
"""The longest draft; the engine's own limit is the same."""

_SOURCE = re.compile(r"(hf|modelscope|url|path|package):(\S.*)", re.DOTALL)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
# Nothing that could be taken for a user, a password or a query; each would end in messages.
_URL = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#\\]*)?"
)


class Role(StrEnum):
    """What a bundle is for."""

    CHAT = "chat"
    DRAFT = "draft"


class FileRole(StrEnum):
    """Whether MNN needs the file (required) or people may like to read it (reference)."""

    REQUIRED = "required"
    REFERENCE = "reference"


class State(StrEnum):
    """State of a bundle in the store. Only `READY` counts as installed."""

    ABSENT = "absent"
    PARTIAL = "partial"
    READY = "ready"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of a bundle, as the registry knows it.

    Attributes:
        path: POSIX path relative to the bundle's directory.
        role: required or reference.
        size: exact bytes, or None where nobody published them.
        sha256: lower-case hexadecimal digest, or None where nobody published it.
        about_bytes: approximate size for display; never a pin.
    """

    path: str
    role: FileRole = FileRole.REQUIRED
    size: int | None = None
    sha256: str | None = None
    about_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a bundle can be had.

    Written ``kind:location``, or for a repository ``kind:location@revision``; the revision is the
    commit on that host. ``package:`` is relative to this package's ``embedded`` folder.
    """

    kind: SourceKind
    location: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> Source:
        """Read what is written; only a repository has a revision, so elsewhere `@` is a letter.

        Raises:
            ValueError: it is none; the message says what was expected.
        """
        match = _SOURCE.fullmatch(text)
        if match is None:
            raise ValueError("hf:, modelscope:, url:, path: or package:, and a location")
        kind, location = cast("SourceKind", match[1]), match[2]
        revision = None
        if kind in {"hf", "modelscope"} and "@" in location:
            location, _, revision = location.rpartition("@")
            if not is_revision(revision):
                raise ValueError("a revision that can be a folder's name after the @")
        if kind in {"hf", "modelscope"} and not _REPOSITORY.fullmatch(location):
            raise ValueError(f"{kind}:owner/name")
        if kind == "url" and not _URL.fullmatch(location):
            raise ValueError("url:http(s)://host/path without user, password or query")
        if kind == "package" and not is_bundle_id(location):
            raise ValueError("package: and the name of a folder in this package")
        return cls(kind, location, revision)

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision else ""
        return f"{self.kind}:{self.location}{at}"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a device must have. None means no condition.

    Attributes:
        platforms: names as in `tokforge_models.device.Platform`.
        min_ram_gb: as phones are sold (GiB); a device passes with 0.85 of it.
    """

    platforms: tuple[str, ...] | None = None
    min_ram_gb: float | None = None


BACKENDS = ("cpu", "opencl", "vulkan", "metal", "cuda", "hexagon")
LEVELS = ("low", "normal", "high")
MAX_THREADS = 64
MAX_DYNAMIC_OPTION = 9


@dataclass(frozen=True, slots=True)
class Settings:
    """Runtime settings of one model. None means: whatever is weaker decides.

    Attributes:
        backend: one of `BACKENDS`.
        threads: 1 to `MAX_THREADS`.
        precision, memory, power: one of `LEVELS`.
        sampler: the name of one, as its publisher recommends it; what a run samples with, its
            flags alone say.
        dynamic_option: MNN's variant of quantising activations, 0 to `MAX_DYNAMIC_OPTION`.
    """

    backend: str | None = None
    threads: int | None = None
    precision: str | None = None
    memory: str | None = None
    power: str | None = None
    sampler: str | None = None
    dynamic_option: int | None = None

    def over(self, weaker: Settings) -> Settings:
        """Fill what is None here from `weaker`."""
        missing = {
            field.name: getattr(weaker, field.name)
            for field in fields(self)
            if getattr(self, field.name) is None
        }
        return replace(self, **missing)

    def given(self) -> dict[str, str | int]:
        """What is not None, by name."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class Bundle:
    """One registry entry.

    Attributes:
        id: lower-case name that is also a directory name.
        name: what people read.
        family: models that were released as one family, and share a vocabulary.
        aliases: other names people type.
        base_model: the repository of the weights this was converted from.
        sources: in order of preference; empty where there is no public address.
        revision: label of this content; the commit where a hub has one; None if not yet known.
        files: known files; empty where no list was published (then roles follow from
            config.json and llm_config.json).
        published_for: platforms that its publisher names; None where they name none.
        context_length: tokens, or None where unknown.
        settings: what the publisher recommends for this model.
        d: draft length that its publisher recommends when this bundle is the draft.
        pins_from: where sizes and digests were read.
        defined_in: the registry file of this entry.
    """

    id: str
    name: str
    role: Role
    family: str
    aliases: tuple[str, ...] = ()
    base_model: str | None = None
    license: str | None = None
    sources: tuple[Source, ...] = ()
    revision: str | None = None
    files: tuple[BundleFile, ...] = ()
    needs: Needs = Needs()
    published_for: tuple[str, ...] | None = None
    context_length: int | None = None
    settings: Settings = Settings()
    d: int | None = None
    pins_from: str | None = None
    defined_in: str = ""
