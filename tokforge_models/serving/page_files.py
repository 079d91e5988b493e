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
        etag: names this content.
    """

    content: bytes
    media_type: str
    etag: str

    def response(self, known: str) -> Response:
        """As it is sent; a browser asks again each time, so an update is seen.

        Args:
            known: the request's If-None-Match.
        """
        headers = {"cache-control": "no-cache", "etag": self.etag}
        if self.etag in [each.strip().removeprefix("W/") for each in known.split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def page_files(folder: Path = _FOLDER) -> dict[str, PageFile]:
    """The page's files by the path that they are served at; index.html is at the root."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            at = f"/{path.relative_to(folder).as_posix()}"
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            file = PageFile(content, _TYPES[path.suffix], etag)
            files["/" if at == "/index.html" else at] = file
    return files
