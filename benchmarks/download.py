"""How fast, how frugal and how small a download is, beside `hf download`, on a loopback server.

    python benchmarks/download.py [--rounds 5] [--kills 20]

Prints the table of docs/downloads.md. Every figure is a median of whole processes, both programs
in turn against the same server, which is a process of its own. Nothing here is a test: the clock
of a busy machine decides nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hub import Hub, sha256
from store_kit import CONFIG, LLM_CONFIG

REPO = "maker/pack"
WEIGHT_BYTES = 335_769_842
LARGE_BYTES = 2_200_000_000
SEGMENT_BYTES = 8 << 20
CONNECTIONS = 4
SLOW_RATE = 20_000_000
KILLED_RATE = 8_000_000
TOKFORGE = (sys.executable, "-m", "tokforge_models")
HF = (sys.executable, "-c", "import sys; from huggingface_hub.cli.hf import main; sys.exit(main())")

LAYER = """\
schema: 1
bundles:
  pack: {{name: Pack, role: draft, family: test, sources: ["hf:{repo}"]}}
"""


@dataclass(frozen=True)
class Ran:
    """One process: its seconds and the most memory it held."""

    seconds: float
    peak_mb: float


def serve(folder: Path, pipe: Connection) -> None:
    """Be the server: answer `sent` with the bytes sent so far, take a rate, end at `None`."""
    with Hub() as hub:
        hub.commit(REPO, {path.name: path for path in folder.iterdir()})
        for path in folder.iterdir():
            sha256(path)
        pipe.send(hub.url)
        while (order := pipe.recv()) is not None:
            if order == "sent":
                pipe.send(hub.sent)
            else:
                hub.bytes_a_second = order or None
                pipe.send("ok")


def make_pack(folder: Path, weight_bytes: int) -> Path:
    """A bundle as large as the Acceleration Pack, or larger, of noise."""
    folder.mkdir()
    noise = random.Random(1)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "llm_config.json").write_text(json.dumps(LLM_CONFIG))
    (folder / "llm.mnn").write_bytes(noise.randbytes(504_000))
    (folder / "tokenizer.txt").write_bytes(noise.randbytes(1_610_000))
    with (folder / "llm.mnn.weight").open("wb") as stream:
        for at in range(0, weight_bytes, 1 << 20):
            stream.write(noise.randbytes(min(1 << 20, weight_bytes - at)))
    return folder


def run(words: tuple[str, ...], env: dict[str, str]) -> Ran:
    """Run a process to its end, which must be a good one."""
    began = time.monotonic()
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, code, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}: {said.decode()[-600:]}")
    return Ran(seconds, used.ru_maxrss / 1024)


def medians(rounds: int, **programs: Callable[[], Ran]) -> dict[str, Ran]:
    """Each program once a round, in turn."""
    ran: dict[str, list[Ran]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            ran[name].append(program())
    return {
        name: Ran(
            statistics.median(one.seconds for one in all_of_it),
            max(one.peak_mb for one in all_of_it),
        )
        for name, all_of_it in ran.items()
    }


class Bench:
    """One server, and the two programs that load from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pack = make_pack(folder / "pack", WEIGHT_BYTES)
        self.pipe, theirs = Pipe()
        self.server = Process(target=serve, args=(self.pack, theirs), daemon=True)
        self.server.start()
        self.url = self.pipe.recv()
        (folder / "layer.yaml").write_text(LAYER.format(repo=REPO))

    def sent(self) -> int:
        """Bytes that the server has sent so far."""
        self.pipe.send("sent")
        return int(self.pipe.recv())

    def rate(self, bytes_a_second: float) -> None:
        """Let each reply have at most so much; 0 means no limit."""
        self.pipe.send(bytes_a_second)
        self.pipe.recv()

    def env(self, **more: str) -> dict[str, str]:
        """Surroundings in which both programs know only this server and this folder."""
        plain = {
            key: value
            for key, value in os.environ.items()
            # Installed packages have their bytecode; a tree gets it in the first round.
            if not key.startswith("HF_") and key != "PYTHONDONTWRITEBYTECODE"
        }
        return plain | {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(self.folder / "hf"),
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKFORGE_HOME": str(self.folder / "store"),
            **more,
        }

    def tokforge(self, *words: str) -> Ran:
        """Run one command."""
        layer = ("--registry", str(self.folder / "layer.yaml"))
        return run((*TOKFORGE, *words, *layer), self.env())

    def pull(self) -> Ran:
        """`tokforge pull` into an empty store."""
        shutil.rmtree(self.folder / "store", ignore_errors=True)
        return self.tokforge("pull", "pack", "--connections", str(CONNECTIONS))

    def hf(self) -> Ran:
        """`hf download` into an empty folder."""
        for name in ("hf", "got"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return run((*HF, "download", REPO, "--local-dir", str(self.folder / "got")), self.env())

    def kills(self, times: int, seconds: float) -> tuple[int, list[str]]:
        """Pull, kill at a random moment, and again; then complete. Bytes sent, and the log."""
        shutil.rmtree(self.folder / "store", ignore_errors=True)
        chance, log, begin = random.Random(7), [], self.sent()
        words = (*TOKFORGE, "pull", "pack", "--registry", str(self.folder / "layer.yaml"))
        for count in range(times):
            wait = chance.uniform(0.3, seconds)
            before = self.sent()
            process = subprocess.Popen(
                words, env=self.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                process.wait(wait)
                how = "had ended"
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                how = "killed"
            log.append(
                f"{count + 1:2} {how} after {wait:.2f} s, {self.sent() - before:,} bytes sent"
            )
        self.tokforge("pull", "pack")
        log.append(f"   completed, {self.sent() - begin:,} bytes sent in all")
        return self.sent() - begin, log

    def large(self, rounds: int) -> tuple[Ran, Ran, Ran]:
        """Of a large bundle: `verify --full`, openssl over the same file, and stamped `verify`."""
        folder = make_pack(self.folder / "large", LARGE_BYTES)
        self.tokforge("import", str(folder), "--as", "large", "--role", "draft")
        shutil.rmtree(folder)
        (weight,) = self.folder.glob("store/bundles/large/*/llm.mnn.weight")
        found = medians(
            rounds,
            full=lambda: self.tokforge("verify", "large", "--full"),
            openssl=lambda: run(("openssl", "dgst", "-sha256", str(weight)), self.env()),
            stamped=lambda: self.tokforge("verify", "large"),
        )
        return found["full"], found["openssl"], found["stamped"]

    def close(self) -> None:
        """End the server."""
        self.pipe.send(None)
        self.server.join()


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the files go; a disk with 8 GB free")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        bench = Bench(Path(folder))
        fast = medians(chosen.rounds, pull=bench.pull, hf=bench.hf)
        bench.rate(SLOW_RATE)
        slow = medians(chosen.rounds, pull=bench.pull, hf=bench.hf)
        bench.rate(KILLED_RATE)
        sent, log = bench.kills(chosen.kills, 2.0)
        bench.rate(0)
        full, openssl, stamped = bench.large(chosen.rounds)
        bench.close()
    size = WEIGHT_BYTES + 504_000 + 1_610_000
    bound = size + chosen.kills * CONNECTIONS * SEGMENT_BYTES
    ratio = fast["pull"].seconds / fast["hf"].seconds
    gain = slow["hf"].seconds / slow["pull"].seconds
    print("| what | measured | must be |\n| --- | --- | --- |")
    print(
        f"| `tokforge pull` with sha256 / `hf download` | {fast['pull'].seconds:.2f} s / "
        f"{fast['hf'].seconds:.2f} s = {ratio:.2f} | at most 1.1 |"
    )
    print(
        f"| the same, 20 MB/s a connection | {slow['pull'].seconds:.2f} s / "
        f"{slow['hf'].seconds:.2f} s: {gain:.2f} times faster | at least 3.5 |"
    )
    print(
        f"| bytes sent over {chosen.kills} kill -9 and completion | {sent:,} | at most {bound:,} |"
    )
    print(
        f"| `verify --full` of 2.2 GB / `openssl dgst -sha256` | {full.seconds:.2f} s / "
        f"{openssl.seconds:.2f} s = {full.seconds / openssl.seconds:.2f} | at most 1.1 |"
    )
    print(f"| stamped `verify`, a process | {stamped.seconds:.2f} s | under 0.3 s |")
    peak = max(fast["pull"].peak_mb, slow["pull"].peak_mb, full.peak_mb)
    print(f"| peak memory (hf: {fast['hf'].peak_mb:.0f} MB) | {peak:.0f} MB | under 150 MB |")
    print("\nThe kills:\n\n```text\n" + "\n".join(log) + "\n```")


if __name__ == "__main__":
    main()
