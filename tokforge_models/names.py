"""The one place where a name from outside becomes a path.

Names arrive from servers, manifests, registries and users. Whatever would be unsafe or ambiguous
on any platform that a bundle may travel to (Linux, Android, macOS, Windows) is refused on all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from tokforge_models.errors import Refused, UsageError

MAX_PART_BYTES = 255
MAX_PATH_BYTES = 1024
_BUNDLE_ID = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?")
_REVISION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\..*)?", re.IGNORECASE
)
_FORBIDDEN = re.compile(r'[<>:"|?*\\]')
# Control, format (zero-width, direction), surrogates, and line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# NTFS answers to such an alias of a longer name: TOKFOR~1 would be the store's own folder.
_SHORT_ALIAS = re.compile(r"[^~]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")
# The store's own folder inside a bundle, and its own files beside the revisions.
_OURS = ".tokforge"
_BESIDE_REVISIONS = re.compile(r"current(?:\..*)?")


def fault_in_path(path: str) -> str | None:
    """Say why `path` may not be a file's relative POSIX path, or None if it may.

    >>> fault_in_path("llm.mnn.weight") is None
    True
    >>> fault_in_path("../../etc/passwd")
    'climbs out of its folder'
    """
    if not path:
        return "is empty"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if path.startswith(("/", "\\")):
        return "is absolute"
    if re.match(r"[A-Za-z]:", path):
        return "names a drive"
    for part in path.split("/"):
        if fault := _fault_in_part(part):
            return fault
    return None


def _fault_in_part(part: str) -> str | None:
    if part in {"", "."}:
        return "has an empty part"
    if part == "..":
        return "climbs out of its folder"
    if any(unicodedata.category(character) in _INVISIBLE for character in part):
        return "has a character that cannot be seen"
    if _FORBIDDEN.search(part):
        return "has a character that is not allowed in file names everywhere"
    if len(part.encode()) > MAX_PART_BYTES:
        return f"has a part longer than {MAX_PART_BYTES} bytes"
    if part.endswith((" ", ".")) or part.startswith(" "):
        return "begins or ends a part with a space or dot"
    if _RESERVED.fullmatch(part):
        return "uses a name that Windows reserves"
    if _SHORT_ALIAS.fullmatch(part):
        return "looks like a short alias of another name"
    if _folded(part) == _OURS:
        return "uses the store's own folder"
    return None


def _folded(name: str) -> str:
    """What file systems that ignore case and composition take `name` for."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def fault_in_paths(paths: Iterable[str]) -> str | None:
    """Say why `paths` may not live in one folder, or None if they may.

    Beyond each path's own faults: two that differ only in case or composition, files or folders
    alike, and one that is a folder of another.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        if fault := fault_in_path(path):
            return f"{path[:80]!r} {fault}"
        folded = _folded(path)
        if folded in files:
            return f"{path!r} and {files[folded]!r} are the same name where case does not count"
        files[folded] = path
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if (other := folders.setdefault(_folded(folder), folder)) != folder:
                return f"{folder!r} and {other!r} are the same folder where case does not count"
    for folded, path in files.items():
        if folded in folders:
            return f"{path!r} is both a file and a folder"
    return None


def is_bundle_id(text: str) -> bool:
    """Whether `text` can be a bundle's id: lower case, safe as a directory name everywhere."""
    return _BUNDLE_ID.fullmatch(text) is not None and _fault_in_part(text) is None


def is_revision(text: str) -> bool:
    """Whether `text` can be a revision: a commit or label that is safe as a directory name.

    ``current`` is not one: the store keeps a file of that name beside the revisions.
    """
    return (
        _REVISION.fullmatch(text) is not None
        and _BESIDE_REVISIONS.fullmatch(text.casefold()) is None
        and _fault_in_part(text) is None
    )


def inside(folder: Path, path: str) -> Path:
    """Join a relative POSIX `path` to `folder` after checking it.

    Raises:
        Refused: the name is not safe; the message says why.
    """
    if fault := fault_in_path(path):
        raise Refused(f"the file name {path[:80]!r} {fault}", expected="a relative path")
    return folder.joinpath(*path.split("/"))


def users_path(path: Path, base: Path = Path()) -> Path:
    """The absolute path of what a person wrote; ``~`` and ``~name`` are homes.

    Args:
        path: what was written.
        base: the folder that a relative one is relative to.

    Raises:
        UsageError: nobody has that name here, or the system knows no such path.
    """
    try:
        return (base / path.expanduser()).absolute()
    except (RuntimeError, ValueError, OSError) as error:
        raise UsageError(
            f"{str(path)[:80]!r} cannot be a path here: {error}",
            hint="write the whole path",
        ) from error
