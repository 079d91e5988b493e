"""Many clients at once: is an answer lost, or does memory grow?

    python benchmarks/serve_load.py [--clients 64] [--seconds 60]

Starts `tokforge serve demo-chat` in a store of its own, with --numerics exact, so that each prompt
has one right answer. One client in eight hangs up in the middle of each answer, one in eight reads
slowly, the others read as fast as it comes. Ends with exit code 1 where an answer was lost or
mixed up, or where the server and its worker hold over 5 % more memory than after the warm-up.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from harness.streams import HungUp, ignore, stream

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from command import tokforge
from serving_kit import serving

PROMPTS = (
    "What is a cat?",
    "Tell me a fact about rivers.",
    "Why is the sky blue?",
    "What do you eat for breakfast?",
    "Tell me about the sea.",
)
MOST_GROWTH = 0.05
WARM_UP = 0.25
SLOW_SECONDS = 0.2


@dataclass
class Load:
    """What all clients share."""

    url: str
    expected: dict[str, str]
    until: float
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, fault: str = "") -> None:
        """One more answer came to this end."""
        with self.lock:
            self.counts[what] += 1
            if fault:
                self.faults.append(fault)


def request(prompt: str) -> dict[str, object]:
    """A greedy one, so that it has one right answer."""
    return {
        "model": "demo-chat",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 40,
    }


def hang_up(_text: str) -> None:
    """Go away with the first part."""
    raise HungUp


def dawdle(_text: str) -> None:
    """Think about each part."""
    time.sleep(SLOW_SECONDS)


def client(number: int, load: Load) -> None:
    """One client, until the time is over."""
    kind = {0: "hung up", 1: "slow"}.get(number % 8, "fast")
    on_text = {"hung up": hang_up, "slow": dawdle, "fast": ignore}[kind]
    turn = number
    while time.monotonic() < load.until:
        prompt = PROMPTS[turn % len(PROMPTS)]
        turn += 1
        try:
            answer = stream(load.url, request(prompt), on_text)
        except HungUp:
            load.count("hung up")
            continue
        except (OSError, http.client.HTTPException) as error:
            load.count("lost", f"{kind}: {type(error).__name__} {error}")
            continue
        if answer.status == 429:
            load.count("sent away")
            time.sleep(1)
        elif answer.error or not answer.finish_reason:
            load.count("lost", f"{kind}: {answer.status} {answer.error}")
        elif answer.text != load.expected[prompt]:
            load.count("mixed up", f"{kind}: {prompt!r}: {answer.text!r}")
        else:
            load.count(kind)


def memory(process: psutil.Process) -> int:
    """Resident bytes of a server and its worker."""
    return sum(each.memory_info().rss for each in (process, *process.children()))


def main() -> int:
    """Serve, load, judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = {"TOKFORGE_HOME": home, "TOKFORGE_API_KEY": ""}
        os.environ.update(env)
        tokforge("pull", "demo-chat", "demo-draft")
        with serving("--numerics", "exact", "-d", "2", env=env) as running:
            return run(running.url, psutil.Process(running.process.pid), given)


def run(url: str, server: psutil.Process, given: argparse.Namespace) -> int:
    """Load a server and print what came of it."""
    expected = {prompt: stream(url, request(prompt)).text for prompt in PROMPTS}
    began = time.monotonic()
    load = Load(url, expected, began + given.seconds)
    threads = [
        threading.Thread(target=client, args=(number, load)) for number in range(given.clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(given.seconds * WARM_UP)
    warm = peak = memory(server)
    while any(thread.is_alive() for thread in threads):
        peak = max(peak, memory(server))
        time.sleep(0.25)
    end = memory(server)
    seconds = time.monotonic() - began
    after = stream(url, request(PROMPTS[0]))
    growth = end / warm - 1
    print(f"{given.clients} clients, {seconds:.0f} s:")
    for what, count in sorted(load.counts.items()):
        print(f"  {what:10} {count}")
    answered = load.counts["fast"] + load.counts["slow"]
    print(f"  answered   {answered / seconds:.1f} a second")
    print(
        f"memory {warm / 1e6:.1f} MB after {given.seconds * WARM_UP:.0f} s, "
        f"{end / 1e6:.1f} at the end ({growth:+.1%}), {peak / 1e6:.1f} at most"
    )
    for fault in load.faults[:10]:
        print(f"  ! {fault}")
    good = not load.faults and answered and after.text == expected[PROMPTS[0]]
    return 0 if good and growth <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
