"""The one place where a name from outside becomes a path.

Names arrive from servers, manifests, registries and users. Whatever would be unsafe or ambiguous
on any platform that a bundle may travel to (Linux, Android, macOS, Windows) is refused on all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tokforge_models.errors import Refused

MAX_PART_BYTES = 255
MAX_PATH_BYTES = 1024
_BUNDLE_ID = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?")
_REVISION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE
)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\]')
# The store's own folder inside a bundle.
_OURS = ".tokforge"


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
    if _FORBIDDEN.search(part):
        return "has a character that is not allowed in file names everywhere"
    try:
        encoded = part.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if len(encoded) > MAX_PART_BYTES:
        return f"has a part longer than {MAX_PART_BYTES} bytes"
    if part.endswith((" ", ".")) or part.startswith(" "):
        return "begins or ends a part with a space or dot"
    if _RESERVED.fullmatch(part):
        return "uses a name that Windows reserves"
    if part.casefold() == _OURS:
        return "uses the store's own folder"
    return None


def fault_in_paths(paths: Iterable[str]) -> str | None:
    """Say why `paths` may not live in one folder, or None if they may.

    Beyond each path's own faults: two that differ only in case, one that is a folder of another.
    """
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        if fault := fault_in_path(path):
            return f"{path[:80]!r} {fault}"
        folded = path.casefold()
        if folded in seen:
            return f"{path!r} and {seen[folded]!r} are the same name where case does not count"
        seen[folded] = path
        parts = folded.split("/")
        for depth in range(1, len(parts)):
            folders.setdefault("/".join(parts[:depth]), path)
    for folded, path in seen.items():
        if folded in folders:
            return f"{path!r} is both a file and the folder of {folders[folded]!r}"
    return None


def is_bundle_id(text: str) -> bool:
    """Whether `text` can be a bundle's id: lower case, safe as a directory name everywhere."""
    return _BUNDLE_ID.fullmatch(text) is not None and _fault_in_part(text) is None


def is_revision(text: str) -> bool:
    """Whether `text` can be a revision: a commit or label that is safe as a directory name."""
    return _REVISION.fullmatch(text) is not None and _fault_in_part(text) is None


def inside(folder: Path, path: str) -> Path:
    """Join a relative POSIX `path` to `folder` after checking it.

    Raises:
        Refused: the name is not safe; the message says why.
    """
    if fault := fault_in_path(path):
        raise Refused(f"the file name {path[:80]!r} {fault}", expected="a relative path")
    return folder.joinpath(*path.split("/"))
