"""Which segments one request asks for: pure.

A request for several segments in a row saves round trips, but the last requests of a file must be
short, so that no connection works on alone while the others have nothing to do. So each request
takes a share of what is left, which shrinks as the file fills.
"""

from __future__ import annotations

from collections.abc import Collection


def next_run(missing: Collection[int], connections: int) -> range:
    """The segments to ask for next: the first ones missing, in a row.

    Args:
        missing: indices that nobody has or fetches; not empty.
        connections: that share the work.
    """
    first = min(missing)
    most = max(len(missing) // (2 * connections - 1), 1)
    last = first
    while last + 1 - first < most and last + 1 in missing:
        last += 1
    return range(first, last + 1)
