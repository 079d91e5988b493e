"""Which of MNN's backends this machine has, asked of MNN without a model.

Told to load a model on a backend that it has not, MNN computes on the CPU and says nothing. But
where it makes a runtime alone, ``Interpreter.createRuntime``, it tells which it could make. A
driver may end the process, so each backend is asked for in a process of its own.

Source: pymnn's ``MNN.cc`` and ``MNNForwardType.h``, tried with MNN 3.6.1.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Literal

Answer = Literal["here", "missing", "unknown"]

BACKENDS = ("cpu", "opencl", "vulkan", "metal", "cuda", "hexagon")

# pymnn has no name for it, and takes MNN's number.
_NUMBERS = {"hexagon": 10}
_SECONDS = 20.0
_ASK = """\
import os, sys
answers = os.dup(1)
os.dup2(2, 1)
import MNN
name = sys.argv[1]
config = {"backend": int(name) if name.isdecimal() else name, "numThread": 1}
_, made = MNN.Interpreter.createRuntime((config,))
os.write(answers, b"here" if made == (True,) else b"missing")
# Drivers have been known not to survive their own end.
os._exit(0)
"""


def ask_mnn(backend: str, code: str = _ASK) -> Answer:
    """Whether MNN can make a runtime of a backend; ``unknown`` where nothing tells.

    Args:
        backend: one of `BACKENDS`.
        code: what to run in Python; the question to MNN, unless a test has another idea.
    """
    name = str(_NUMBERS.get(backend, backend.upper()))
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if done.stdout == b"here":
        return "here"
    return "missing" if done.stdout == b"missing" else "unknown"


def backends(ask: Callable[[str], Answer] = ask_mnn) -> dict[str, Answer]:
    """Every backend that the settings of a model can name, and whether it is here."""
    return {name: ask(name) for name in BACKENDS}
