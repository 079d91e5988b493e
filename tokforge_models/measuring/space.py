"""What is worth trying on a device: thread counts, number formats, backends. Pure.

Formats differ from the shipped one in one setting; those that cannot be told apart here turn out to
compute the same numbers, and are left out then. Elsewhere than on the CPU the number of threads is
a set of flags for the tuning of kernels, and stays as it is shipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tokforge_engine.backends import Answer
from tokforge_models.bundle import MAX_THREADS, Settings

_THREADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# Where the number of cores is not known, as many as every phone has.
_USUAL_CORES = 4
_DYNAMIC_OPTIONS = (2, 1, 0)


def reference_of(shipped: Settings) -> Settings:
    """The settings of a target whose numbers count as right: nothing is rounded to 8 bits."""
    return replace(shipped, backend="cpu", precision="high", memory="normal", dynamic_option=None)


def threads_of(cores: int | None) -> tuple[int, ...]:
    """Thread counts to try; all cores are always among them."""
    most = min(cores or _USUAL_CORES, MAX_THREADS)
    return tuple(sorted({count for count in _THREADS if count <= most} | {most}))


def formats_of(shipped: Settings, backends: Mapping[str, Answer]) -> tuple[Settings, ...]:
    """Number formats and backends of a target to try, the most promising first.

    Args:
        shipped: as the target runs without a profile.
        backends: which are here; only those that are known to be are tried.
    """
    found = [
        replace(shipped, precision="low"),
        replace(shipped, memory="low"),
        *(replace(shipped, dynamic_option=option) for option in _DYNAMIC_OPTIONS),
    ]
    for name, answer in backends.items():
        if answer == "here" and name != (shipped.backend or "cpu"):
            found += [
                replace(shipped, backend=name),
                replace(shipped, backend=name, precision="low"),
            ]
    found += [
        replace(shipped, precision="normal"),
        replace(shipped, precision="high"),
        replace(shipped, memory="normal"),
    ]
    usual = replace(shipped, dynamic_option=shipped.dynamic_option or None)
    # No dynamic option is option 0.
    return tuple(
        each
        for each in dict.fromkeys(found)
        if replace(each, dynamic_option=each.dynamic_option or None) != usual
    )
