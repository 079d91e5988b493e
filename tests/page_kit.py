"""What tests of the page share: a person's steps, and how a page tells where it is."""

from __future__ import annotations

import threading

ANSWERED = "document.querySelector('.model:last-child:not([aria-busy])')"
MET = "document.querySelector('#pairing dd')"
RICH = """# A title

Some **bold**, *soft* and `short` words, and https://example.org/a-place.

- one
  - two

> said

```python
print("a line of code that is much longer than any screen of a phone could ever show at once")
```

| a | b |
|---|---|
| a long cell of words in a table | another long cell of words in it | and one more to be sure |
"""


class Turnstile:
    """A gate that lets one piece through each time it is set."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(0)

    def wait(self) -> None:
        self._free.acquire()

    def set(self) -> None:
        self._free.release()


def faults(page):
    """What the browser complains of, except answers of the server that are errors."""
    return [each for each in page.complaints() if not each.startswith("Failed to load resource")]


def say(page, text):
    """Send a message, and wait for its answer."""
    page.run("document.querySelector('#question').focus()")
    page.write(text)
    page.press("Enter")
    page.until(f"{ANSWERED} && document.querySelectorAll('.user').length")


def turns(page):
    return page.run(
        "[...document.querySelectorAll('#turns > *')]"
        ".map((turn) => turn.querySelector('.words, .prose').innerText)"
    )


def asked(model, which=-1):
    """The texts of a request's messages."""
    return [message.content for message in model.asked[which][0]]
