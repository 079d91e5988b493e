"""The pictures of docs/server.md: `python tests/page_pictures.py docs`, with the demo pair.

The page takes the system's font; the pictures were made with Inter (Debian: fonts-inter).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browser import Page, chromium
from command import tokforge
from page_kit import ANSWERED, MET
from serving_kit import serving

QUESTIONS = ("What is a cat?", "What is a guitar made of?")


def chat(page: Page) -> None:
    """Have a chat."""
    for count, question in enumerate(QUESTIONS, 1):
        page.write(question)
        page.press("Enter")
        page.until(f"{ANSWERED} && document.querySelectorAll('.user').length === {count}")
        assert not page.text("#trouble"), page.text("#trouble")


def main(folder: Path) -> None:
    """Write all pictures into a folder."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        home = Path(temporary)
        env = {
            "TOKFORGE_HOME": str(home / "home"),
            "TOKFORGE_CONFIG_DIR": str(home / "config"),
            "TOKFORGE_API_KEY": "",
        }
        assert tokforge("pull", "demo-chat", "demo-draft", env=env).code == 0
        with (
            serving(env=env) as running,
            chromium(home / "profile") as browser,
            browser.page(running.url) as page,
        ):
            page.until(MET)
            page.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
            chat(page)
            (folder / "page-light.png").write_bytes(page.picture())
            page.click("#mark")
            page.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
            (folder / "page-dark.png").write_bytes(page.picture())
            page.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
            page.size(375, 720, scale=1.5)
            page.run("document.querySelector('#conversation').scrollTo(0, 1e6)")
            (folder / "page-phone.png").write_bytes(page.picture())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
