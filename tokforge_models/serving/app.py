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
from tokforge_models.serving.answering import Answer
from tokforge_models.serving.checking import checked
from tokforge_models.serving.errors import ApiError, NotAllowed, NotFound
from tokforge_models.serving.openapi import Operation, document, page
from tokforge_models.serving.orders import chat_order, completion_order
from tokforge_models.serving.page_files import PageFile, page_files
from tokforge_models.serving.reading import ChatReader, TextReader
from tokforge_models.serving.security import Access, Guard, check_key, read_json
from tokforge_models.serving.telling import ChatTeller, CompletionTeller

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tokforge_models.serving.metrics import Metrics
    from tokforge_models.serving.queue import Queue

_TEXT = "text/plain; version=1.0.0; charset=utf-8"


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
        self._created = int(time.time())
        self._files: Mapping[str, PageFile] = page_files()
        self._endpoints = {
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
                Operation("GET", "/v1/models/{model}", "A model.", answered.ModelCard),
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
        path, method = scope["path"], scope["method"].replace("HEAD", "GET")
        if method == "GET" and (file := self._files.get(path)):
            await file.response()(scope, receive, send)
            return
        known = path
        if path.startswith("/v1/models/"):
            known = "/v1/models/{model}"
        endpoint = self._endpoints.get((known, method))
        if endpoint is None:
            raise self._nothing_there(known)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.responded(known, int(str(message["status"])))
            await send(message)

        try:
            if not endpoint.open:
                check_key(request.headers, self._access)
            response = await endpoint.handle(request)
            await response(scope, receive, counted)
        except ApiError as refused:
            self._metrics.responded(known, refused.status)
            raise

    def _nothing_there(self, path: str) -> NotFound | NotAllowed:
        methods = [method for known, method in self._endpoints if known == path]
        if not methods:
            return NotFound("there is nothing at this path; /docs lists what there is")
        refused = NotAllowed(f"expected {' or '.join(methods)}")
        refused.headers = {"allow": ", ".join(methods)}
        return refused

    async def _chat(self, request: Request) -> Response:
        wanted = checked(asked.ChatRequest, await read_json(request))
        order = chat_order(wanted, self._queue.served, self._max_tokens)
        teller = ChatTeller(order, wanted.model)
        return Answer(self._queue, order, ChatReader(order.tools), teller, self._metrics)

    async def _completion(self, request: Request) -> Response:
        wanted = checked(asked.CompletionRequest, await read_json(request))
        order = completion_order(wanted, self._queue.served, self._max_tokens)
        teller = CompletionTeller(order, wanted.model)
        return Answer(self._queue, order, TextReader(), teller, self._metrics)

    def _card(self) -> answered.ModelCard:
        return answered.ModelCard(
            id=self._queue.served.name, object="model", created=self._created, owned_by="tokforge"
        )

    async def _models(self, _request: Request) -> Response:
        return _json(answered.ModelList(object="list", data=[self._card()]))

    async def _model(self, request: Request) -> Response:
        if request.url.path != f"/v1/models/{self._queue.served.name}":
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
            status="ok" if queue.healthy else "loading",
            running=int(queue.running),
            waiting=queue.waiting,
        )
        return _json(health, 200 if queue.healthy else 503)

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
    app: ASGIApp = Guard(App(queue, metrics, access, max_tokens), access)
    if not access.origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=access.origins,
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
    )
