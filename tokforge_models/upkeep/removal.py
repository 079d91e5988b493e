"""Take a bundle out of the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokforge_models.errors import UnknownBundle
from tokforge_models.store.store import Store

_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal came to.

    Attributes:
        id: the bundle.
        bytes_freed: bytes on disk that nobody else holds; a file that is hard-linked from
            elsewhere frees none.
    """

    id: str
    bytes_freed: int


def remove(
    store: Store, id: str, *, command: str | None = None, timeout: float = _PATIENCE_SECONDS
) -> Removed:
    """Remove a bundle whatever its state, with all its revisions and partials.

    `current` goes first: whatever interrupts this leaves a partial bundle, never a damaged one.

    Raises:
        UnknownBundle: nothing of it is here.
        Refused: a running command uses it or works on it; the message names that command.
        StorageError: something may not be removed.
    """
    folder = store.folder(id)
    if not folder.exists() and not folder.is_symlink():
        raise UnknownBundle(f"{id} is not in the store", hint="tokforge ls")
    with (
        store.lock(id, command or f"tokforge rm {id}", timeout),
        store.locks(id).unclaimed(),
    ):
        freed = bytes_on_disk(folder)
        store.disk.remove(folder / "current")
        store.disk.remove_tree(folder)
    return Removed(id, freed)


def bytes_on_disk(path: Path) -> int:
    """Bytes that the removal of a file, or of a folder with all below it, would free.

    What somebody removes meanwhile would free none.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(bytes_on_disk(child) for child in path.iterdir())
        seen = path.lstat()
    except FileNotFoundError:
        return 0
    # A partial is as long as the file will be, but holds only what was written.
    held = min(seen.st_size, getattr(seen, "st_blocks", seen.st_size) * 512)
    return held if seen.st_nlink == 1 else 0
