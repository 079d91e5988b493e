"""The chat page: the files of one folder, read once; nothing that a client says becomes a path."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

_FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page.

    Attributes:
        content: its bytes.
        media_type: by its name's ending.
    """

    content: bytes
    media_type: str

    def response(self) -> Response:
        """As it is sent; a browser asks again each time, so an update is seen."""
        etag = f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'
        headers = {"cache-control": "no-cache", "etag": etag}
        return Response(self.content, headers=headers, media_type=self.media_type)


def page_files(folder: Path = _FOLDER) -> dict[str, PageFile]:
    """The page's files by the path that they are served at; index.html is at the root."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            at = f"/{path.relative_to(folder).as_posix()}"
            files["/" if at == "/index.html" else at] = PageFile(
                path.read_bytes(), _TYPES[path.suffix]
            )
    return files
