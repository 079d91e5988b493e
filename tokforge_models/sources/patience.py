"""How long we go on: retries, waits, stalls and speed; pure, with times handed in.

One `Budget` is shared by all connections of a transfer: a server that fails them all is asked no
more often than one that fails one. What comes in buys retries back, so that a line that breaks
every few seconds for hours is followed to the end, and one that gives nothing is left soon.
"""

from __future__ import annotations

from collections.abc import Callable

from tokforge_models.sources.network import Network


class Budget:
    """Retries that are left.

    Args:
        network: the limits.
        jitter: gives a number from 0 to 1; waits are spread over [half, all] of their length.
        retries: instead of the network's, e.g. fewer for a listing.
    """

    def __init__(
        self, network: Network, jitter: Callable[[], float], retries: int | None = None
    ) -> None:
        self._network = network
        self._jitter = jitter
        self._most = network.retries if retries is None else retries
        self._failures = 0
        self._bytes = 0

    @property
    def failures(self) -> int:
        """Failures that nothing has made up for yet."""
        return self._failures

    def received(self, count: int) -> None:
        """Say that `count` new bytes came in."""
        self._bytes += count
        if self._bytes >= self._network.earned_bytes:
            self._failures = max(self._failures - self._bytes // self._network.earned_bytes, 0)
            self._bytes %= self._network.earned_bytes

    def failed(self, asked_to_wait: float | None = None) -> float | None:
        """Say that a request failed.

        Args:
            asked_to_wait: seconds, where the server said how long.

        Returns:
            Seconds to wait before the next one, or None where it is time to give up.
        """
        self._failures += 1
        if self._failures > self._most:
            return None
        longest = self._network.longest_wait_seconds
        if asked_to_wait is not None:
            return asked_to_wait if asked_to_wait <= longest else None
        wait = min(self._network.backoff_seconds * 2.0 ** min(self._failures - 1, 30), longest)
        return wait * (0.5 + 0.5 * self._jitter())


class Pace:
    """Tells a connection that crawls from one that is slow.

    Args:
        network: the limits.
        now: when it began, in seconds.
    """

    def __init__(self, network: Network, now: float) -> None:
        self._network = network
        self.restart(now)

    def restart(self, now: float) -> None:
        """Judge anew from `now` on, after a wait that was ours."""
        self._since = now
        self._count = 0

    def crawls(self, count: int, now: float) -> bool:
        """Whether, with `count` more bytes, it brought too little in the time that is over."""
        self._count += count
        if now - self._since < self._network.stall_seconds:
            return False
        crawls = self._count < self._network.least_bytes
        self.restart(now)
        return crawls


class Throttle:
    """Keeps all connections together below a rate.

    Args:
        rate: bytes a second.
        now: in seconds.
    """

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._free_at = now

    def wait_for(self, count: int, now: float) -> float:
        """Seconds to wait because `count` bytes came in at `now`."""
        self._free_at = max(self._free_at, now) + count / self._rate
        return self._free_at - now
