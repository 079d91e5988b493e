"""How the network may be used, and whom we spoke to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Network:
    """What a user decides about transfers, and the patience that goes with it.

    Attributes:
        endpoint: base address of the hub to use instead of its usual one.
        connections: ranges of one file that may be fetched at once.
        limit_rate: bytes a second that all of them together may take; None means no limit.
        offline: open no socket.
        retries: failures in a row, over all connections, after which a transfer ends; every
            `earned_bytes` that come in between buy one back.
        earned_bytes: see `retries`.
        backoff_seconds: longest wait before the first retry; doubles with every failure in a row.
        longest_wait_seconds: no wait of ours is longer, and no longer one is obeyed.
        connect_seconds: how long a connection may take to be made.
        stall_seconds: a connection that brings less than `least_bytes` in this time has failed.
        least_bytes: see `stall_seconds`.
        metadata_seconds: how long a listing may take altogether.
    """

    endpoint: str | None = None
    connections: int = 4
    limit_rate: int | None = None
    offline: bool = False
    retries: int = 10
    earned_bytes: int = 1024 * 1024
    backoff_seconds: float = 0.5
    longest_wait_seconds: float = 120.0
    connect_seconds: float = 15.0
    stall_seconds: float = 20.0
    least_bytes: int = 1024
    metadata_seconds: float = 120.0


class Contacts:
    """Every host that was contacted, in order; from any thread.

    Args:
        on_new: told of each host once.
    """

    def __init__(self, on_new: Callable[[str], None] | None = None) -> None:
        self._on_new = on_new
        self._hosts: dict[str, None] = {}
        self._lock = threading.Lock()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts so far, with their ports where these are not the usual ones."""
        return tuple(self._hosts)

    def add(self, host: str) -> None:
        """Say that `host` is about to be contacted."""
        with self._lock:
            new = host not in self._hosts
            self._hosts[host] = None
        if new and self._on_new:
            self._on_new(host)
