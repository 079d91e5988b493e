"""A real Chromium without a screen, for tests of pages.

Driven by its DevTools protocol over a pair of pipes (`--remote-debugging-pipe`): JSON messages that
end with a NUL, no port, no driver program and no library; the browser ends when the pipes close.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("TOKFORGE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

needs_chromium = pytest.mark.skipif(
    os.name == "nt" or CHROMIUM is None,
    reason="no Chromium: apt-get install chromium, or name one in TOKFORGE_CHROMIUM",
)

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# Chromium speaks at descriptors 3 and 4, whatever numbers the pipes have here.
_LAUNCH = (
    "import os, sys; r, w, *command = sys.argv[1:]; "
    "r, w = os.dup(int(r)), os.dup(int(w)); os.dup2(r, 3); os.dup2(w, 4); "
    "os.set_inheritable(3, True); os.set_inheritable(4, True); "
    "os.execvp(command[0], command)"
)
_SECONDS = 30.0

_KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    " ": (32, " "),
    "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""),
}
_SHIFT = 8

# Everything that a careful page must not do is noted before its own scripts begin.
_WATCH = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""


class Failed(Exception):
    """The page threw, or what was waited for did not come."""


class Browser:
    """A running Chromium.

    Args:
        send: descriptor to write to.
        receive: descriptor to read from.
    """

    def __init__(self, send: int, receive: int) -> None:
        self._send = send
        self._receive = receive
        self._ids = itertools.count(1)
        self._came = threading.Condition()
        self._gone = False
        self._replies: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        held = b""
        while part := os.read(self._receive, 2**16):
            *messages, held = (held + part).split(b"\0")
            with self._came:
                for text in messages:
                    message = json.loads(text)
                    if "id" in message:
                        self._replies[message["id"]] = message
                    else:
                        self.events.append(message)
                self._came.notify_all()
        with self._came:
            self._gone = True
            self._came.notify_all()

    def _await(self, condition: Callable[[], object], what: str) -> None:
        with self._came:
            met = self._came.wait_for(lambda: condition() or self._gone, _SECONDS)
            if not condition():
                raise Failed(f"{what}: {'not in time' if not met else 'Chromium has ended'}")

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and wait for what it returns.

        Raises:
            Failed: it was refused, or took too long.
        """
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        self._await(lambda: number in self._replies, f"{method} {params}")
        reply = self._replies.pop(number)
        if "error" in reply:
            raise Failed(f"{method}: {reply['error']}")
        result: dict[str, Any] = reply["result"]
        return result

    def wait_for(self, session: str, method: str, since: int) -> None:
        """Wait for an event of a kind, after a number of others."""

        def happened() -> bool:
            return any(
                event.get("sessionId") == session and event["method"] == method
                for event in self.events[since:]
            )

        self._await(happened, method)

    @contextlib.contextmanager
    def page(self, url: str, *, width: int = 1280, height: int = 860) -> Iterator[Page]:
        """A page with a storage of its own, until the block ends."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        try:
            target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
            attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            page = Page(self, attached["sessionId"])
            page.size(width, height)
            page.go(url)
            yield page
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """A page and the person before it.

    Args:
        browser: where it is.
        session: the protocol's name for it.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol for this page."""
        return self._browser.call(method, self._session, **params)

    def go(self, url: str) -> None:
        """Open an address, and wait until it has loaded."""
        since = len(self._browser.events)
        self.call("Page.navigate", url=url)
        self._browser.wait_for(self._session, "Page.loadEventFired", since)

    def reload(self) -> None:
        """Load the page again."""
        since = len(self._browser.events)
        self.call("Page.reload")
        self._browser.wait_for(self._session, "Page.loadEventFired", since)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise's when it comes.

        Raises:
            Failed: it threw.
        """
        ended = self.call(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in ended:
            raise Failed(ended["exceptionDetails"]["exception"].get("description", script))
        return ended["result"].get("value")

    def until(self, condition: str) -> Any:
        """Wait until an expression is true; its value. Looked at each time the page is drawn.

        Raises:
            Failed: it did not become true.
        """
        look = f"""new Promise((resolve, reject) => {{
          const late = performance.now() + {_SECONDS * 1000 / 2};
          const look = async () => {{
            const value = await ({condition});
            if (value) resolve(value);
            else if (performance.now() > late) reject(new Error("never: " + {json.dumps(condition)}
              + " in: " + document.body.innerText));
            else requestAnimationFrame(look);
          }};
          look();
        }})"""
        return self.run(look)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key and let it go."""
        code, text = _KEYS[key]
        shared = {
            "key": key,
            "code": "Space" if key == " " else key,
            "windowsVirtualKeyCode": code,
            "modifiers": _SHIFT if shift else 0,
        }
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the middle of what a selector finds first, after it has come into sight.

        Raises:
            Failed: it is not there, or something else is where it should be.
        """
        x, y = self.run(
            f"""(() => {{
              const it = document.querySelector({json.dumps(selector)});
              it.scrollIntoView({{block: "nearest"}});
              const box = it.getBoundingClientRect();
              const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
              const hit = document.elementFromPoint(x, y);
              if (!hit || !(it.contains(hit) || hit.closest("label")?.contains(it)))
                throw new Error("cannot be clicked: " + {json.dumps(selector)});
              return [x, y];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def answer_dialogs(self, *, accept: bool) -> None:
        """Answer every question that the page asks in a window of the browser's own."""
        self.run(f"window.confirm = () => {json.dumps(accept)}")

    def text(self, selector: str) -> str:
        """The words that can be seen in what a selector finds first."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def size(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """Make the screen this large, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def prefer(self, **features: str) -> None:
        """What the person has set in the system, e.g. prefers_color_scheme="dark"."""
        media = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.call("Emulation.setEmulatedMedia", features=media)

    def nodes(self) -> list[dict[str, Any]]:
        """What a reader of the screen is told: the accessibility tree's nodes."""
        tree = self.call("Accessibility.getFullAXTree")["nodes"]
        return [node for node in tree if not node.get("ignored")]

    def complaints(self) -> list[str]:
        """What the browser has logged: errors of scripts, what was not found or was blocked."""
        found = list(self.run("violations"))
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["exception"]["description"])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return found

    def picture(self) -> bytes:
        """What the screen shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Run a Chromium with a new profile until the block ends."""
    assert CHROMIUM is not None
    their_read, our_write = os.pipe()
    our_read, their_write = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", _LAUNCH, str(their_read), str(their_write)),
            *(CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(their_read, their_write),
    )
    os.close(their_read)
    os.close(their_write)
    try:
        yield Browser(our_write, our_read)
    finally:
        os.close(our_write)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
