"""The server's paths: one table, from which requests are led and the OpenAPI document is made."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from tokforge_models.serving import answered, asked, grammar
from tokforge_models.serving.answering import AnswerResponse
from tokforge_models.serving.checking import checked
from tokforge_models.serving.errors import NotAllowed, NotFound
from tokforge_models.serving.openapi import Operation, document, page
from tokforge_models.serving.orders import chat_order, completion_order
from tokforge_models.serving.page_files import PageFile, page_files
from tokforge_models.serving.reading import ChatReader, TextReader
from tokforge_models.serving.security import Access, Bodies, Guard, check_key
from tokforge_models.serving.telling import ChatTeller, CompletionTeller

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from tokforge_models.serving.metrics import Metrics
    from tokforge_models.serving.queue import Queue

_TEXT = "text/plain; version=1.0.0; charset=utf-8"
_MODELS = "/v1/models/"
_MODEL = f"{_MODELS}{{model}}"
_ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path with a method.

    Attributes:
        operation: as the OpenAPI document tells it.
        handle: makes the response.
        open: whether it needs no key.
    """

    operation: Operation
    handle: Callable[[Request], Awaitable[Response]]
    open: bool = False


class App:
    """The ASGI application.

    Args:
        queue: answers.
        metrics: counts.
        access: who may ask.
        max_tokens: of an answer at most, and of those that ask for no other number.
    """

    def __init__(self, queue: Queue, metrics: Metrics, access: Access, max_tokens: int) -> None:
        self._queue = queue
        self._metrics = metrics
        self._access = access
        self._max_tokens = max_tokens
        self._bodies = Bodies()
        self._created = int(time.time())
        self._files: Mapping[str, PageFile] = page_files()
        self._endpoints: dict[tuple[str, str], Endpoint] = {
            (endpoint.operation.path, endpoint.operation.method): endpoint
            for endpoint in self._table()
        }
        self._operations = [each.operation for each in self._endpoints.values()]
        metrics.watch_queue(queue)

    def _table(self) -> list[Endpoint]:
        return [
            Endpoint(
                Operation(
                    "POST",
                    "/v1/chat/completions",
                    "Answer a chat.",
                    answered.ChatCompletion,
                    asked.ChatRequest,
                    answered.ChatCompletionChunk,
                ),
                self._chat,
            ),
            Endpoint(
                Operation(
                    "POST",
                    "/v1/completions",
                    "Continue a text, without the chat template.",
                    answered.Completion,
                    asked.CompletionRequest,
                    answered.Completion,
                ),
                self._completion,
            ),
            Endpoint(
                Operation("GET", "/v1/models", "What is served.", answered.ModelList),
                self._models,
            ),
            Endpoint(
                Operation("GET", _MODEL, "A model.", answered.ModelCard),
                self._model,
            ),
            Endpoint(
                Operation(
                    "GET", "/pairing", "Extension: what runs, with whom and why.", answered.Pairing
                ),
                self._pairing,
            ),
            Endpoint(
                Operation("GET", "/health", "Whether requests are answered.", answered.Health),
                self._health,
                open=True,
            ),
            Endpoint(Operation("GET", "/metrics", "Counters, for Prometheus.", None), self._counts),
            Endpoint(
                Operation("GET", "/openapi.json", "This document.", None), self._openapi, open=True
            ),
            Endpoint(
                Operation("GET", "/docs", "The document, for people.", None), self._docs, open=True
            ),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            ApiError: it is not answered, and nothing was sent.
        """
        request = Request(scope, receive)
        path = self._known(scope["path"])
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        response = await self._respond(request, path, method)
        await response(scope, receive, send)

    async def _respond(self, request: Request, path: str, method: str) -> Response:
        if method == "GET" and (file := self._files.get(path)):
            return file.response(request.headers.get("if-none-match", ""))
        endpoint = self._endpoints.get((path, method))
        if endpoint is None:
            raise self._nothing_there(path)
        if not endpoint.open:
            check_key(request.headers, self._access)
        return await endpoint.handle(request)

    def responded(self, path: str, status: int) -> None:
        """Count a response to a request for `path`."""
        self._metrics.responded(self._known(path), status)

    def _known(self, path: str) -> str:
        """A path as the table has it: nothing that a client makes up is kept or counted."""
        if path in self._files or any(path == known for known, _ in self._endpoints):
            return path
        return _MODEL if path.startswith(_MODELS) else _ELSEWHERE

    def _nothing_there(self, path: str) -> NotFound | NotAllowed:
        methods = [method for known, method in self._endpoints if known == path]
        if path in self._files:
            methods = ["GET"]
        if not methods:
            return NotFound("there is nothing at this path; /docs lists what there is")
        refused = NotAllowed(f"expected {' or '.join(methods)}")
        allowed = [*methods, "HEAD"] if "GET" in methods else methods
        refused.headers = {"allow": ", ".join(allowed)}
        return refused

    async def _chat(self, request: Request) -> Response:
        wanted = checked(asked.ChatRequest, await self._read(request))
        order = chat_order(wanted, self._queue.served, self._max_tokens)
        teller = ChatTeller(order, wanted.model)
        return AnswerResponse(self._queue, order, ChatReader(order.tools), teller, self._metrics)

    async def _completion(self, request: Request) -> Response:
        wanted = checked(asked.CompletionRequest, await self._read(request))
        order = completion_order(wanted, self._queue.served, self._max_tokens)
        teller = CompletionTeller(order, wanted.model)
        return AnswerResponse(self._queue, order, TextReader(), teller, self._metrics)

    async def _read(self, request: Request) -> bytes:
        # Who would be sent away is not read first.
        self._queue.check_room()
        return await self._bodies.read_json(request)

    def _card(self) -> answered.ModelCard:
        return answered.ModelCard(
            id=self._queue.served.name, object="model", created=self._created, owned_by="tokforge"
        )

    async def _models(self, _request: Request) -> Response:
        return _json(answered.ModelList(object="list", data=[self._card()]))

    async def _model(self, request: Request) -> Response:
        if request.scope["path"] != f"{_MODELS}{self._queue.served.name}":
            raise NotFound("no such model here", param="model", code="model_not_found")
        return _json(self._card())

    async def _pairing(self, _request: Request) -> Response:
        served = self._queue.served
        return _json(
            answered.Pairing(
                model=served.name,
                draft=served.draft,
                lookup=served.lookup,
                reason=served.reason,
                rule=served.rule,
                notes=list(served.notes),
                d=served.d,
                max_d=served.model.max_d,
                max_tokens=self._max_tokens,
                grammars=grammar.available(),
            )
        )

    async def _health(self, _request: Request) -> Response:
        queue = self._queue
        health = answered.Health(
            status=queue.state,
            running=int(queue.running),
            waiting=queue.waiting,
        )
        return _json(health, 200 if health.status == "ok" else 503)

    async def _counts(self, _request: Request) -> Response:
        return Response(self._metrics.text(), media_type=_TEXT)

    async def _openapi(self, _request: Request) -> Response:
        text = document(self._operations, self._queue.served)
        return Response(text, media_type="application/json")

    async def _docs(self, _request: Request) -> Response:
        return page(self._operations, self._queue.served)


def _json(value: answered.Value, status: int = 200) -> Response:
    return Response(value.to_json(), status, media_type="application/json")


def build(queue: Queue, metrics: Metrics, access: Access, max_tokens: int) -> ASGIApp:
    """The whole application: who may ask, then what is asked."""
    app = App(queue, metrics, access, max_tokens)
    guarded = Guard(app, access, app.responded)
    if not access.origins:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=access.origins,
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
    )
