"""What the server counts, for Prometheus; nothing of what is said."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tokforge_models.serving.errors import ApiError, ClientGone
from tokforge_models.serving.queue import Ticket
from tokforge_models.serving.served import Ended

if TYPE_CHECKING:
    from tokforge_engine import Piece
    from tokforge_models.serving.queue import Queue

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._responses = Counter(
            "tokforge_responses", "Responses begun.", ["path", "status"], registry=registry
        )
        self._answers = Counter(
            "tokforge_answers",
            "Orders to the model by how they ended: stop, length, cancelled or an error's status.",
            ["end"],
            registry=registry,
        )
        self._tokens = Counter(
            "tokforge_tokens",
            "Tokens: prompt (cached or prefilled), completion, drafted, accepted.",
            ["kind"],
            registry=registry,
        )
        self._first = Histogram(
            "tokforge_first_piece_seconds",
            "From a request to the first piece of its answer.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._waited = Histogram(
            "tokforge_queue_seconds", "Waiting for one's turn.", buckets=_SECONDS, registry=registry
        )
        self._took = Histogram(
            "tokforge_answer_seconds",
            "From a request to the end of its answer.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._restarts = Counter(
            "tokforge_engine_restarts", "Pairs loaded again after a crash.", registry=registry
        )

    def watch_queue(self, queue: Queue) -> None:
        """Show the line's length when asked."""
        waiting = Gauge("tokforge_queue_waiting", "Requests that wait.", registry=self._registry)
        waiting.set_function(lambda: queue.waiting)
        running = Gauge("tokforge_running", "Answers being made.", registry=self._registry)
        running.set_function(lambda: int(queue.running))

    def restarted(self) -> None:
        """The pair was loaded again."""
        self._restarts.inc()

    def responded(self, path: str, status: int) -> None:
        """A response begins; `path` is one of the server's own."""
        self._responses.labels(path, str(status)).inc()

    async def watched(self, ticket: Ticket) -> AsyncIterator[Piece | Ended]:
        """A ticket's events, counted."""
        first = True
        try:
            async for event in ticket.events():
                if first:
                    self._first.observe(time.monotonic() - ticket.since)
                    first = False
                if isinstance(event, Ended):
                    self._ended(event, time.monotonic() - ticket.since)
                yield event
        except ClientGone:
            self._answers.labels("cancelled").inc()
            raise
        except ApiError as failed:
            self._answers.labels(str(failed.status)).inc()
            raise

    def _ended(self, ended: Ended, seconds: float) -> None:
        result, stats = ended.result, ended.result.stats
        self._answers.labels(result.finish_reason).inc()
        self._took.observe(seconds)
        self._waited.observe(ended.waited)
        for kind, count in (
            ("prompt_cached", stats.reused),
            ("prompt_prefilled", stats.prefilled),
            ("completion", result.completion_tokens),
            ("drafted", stats.drafted),
            ("accepted", stats.accepted),
        ):
            self._tokens.labels(kind).inc(count)

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self._registry)
