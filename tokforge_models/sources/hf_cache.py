"""Files that Hugging Face's own tools have downloaded already.

Their cache keeps the bytes of `models--<owner>--<name>/snapshots/<commit>/<path>` in
`models--<owner>--<name>/blobs/<name>`, where the name of a large file is its sha256 and that of a
small one git's blob sha1. It is only read here, and nothing in it is believed: whoever takes a
file from it hashes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tokforge_models.errors import Refused
from tokforge_models.files.digests import is_blob_sha1, is_sha256
from tokforge_models.files.disk import is_plain_file, real_path
from tokforge_models.names import fault_in_path, inside, is_revision
from tokforge_models.sources.source import RemoteFile


class HuggingFaceCache:
    """The cache of this user.

    Args:
        root: its folder; None means where huggingface_hub has it (`HF_HUB_CACHE`, `HF_HOME`).
    """

    def __init__(self, root: Path | None = None) -> None:
        if root is None:
            from huggingface_hub import constants

            root = Path(constants.HF_HUB_CACHE)
        self._root = root

    def find(self, name: str | None, size: int) -> Path | None:
        """A file of `size` bytes that was cached under this digest, or None."""
        if not (is_sha256(name) or is_blob_sha1(name)):
            return None
        try:
            candidates = (real_path(blob) for blob in self._root.glob(f"models--*/blobs/{name}"))
            return next((path for path in candidates if _is_file_of(path, size)), None)
        except OSError:
            return None

    def snapshot(self, repository: str, commit: str) -> tuple[RemoteFile, ...]:
        """The files of a commit that are cached, each with the digest that its blob is named by."""
        owner = f"models--{repository.replace('/', '--')}"
        if not is_revision(commit):
            return ()
        try:
            return tuple(_files(inside(self._root, f"{owner}/snapshots/{commit}")))
        except (OSError, Refused):
            return ()


def _files(folder: Path) -> Iterator[RemoteFile]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_symlink() or fault_in_path(name) or not path.is_file():
            continue
        blob, size = path.readlink().name, path.stat().st_size
        if is_sha256(blob):
            yield RemoteFile(name, size, sha256=blob, validator=blob)
        elif is_blob_sha1(blob):
            yield RemoteFile(name, size, validator=blob, blob_sha1=blob)


def _is_file_of(path: Path, size: int) -> bool:
    return is_plain_file(path) and path.stat().st_size == size
