"""The server told to programs, as an OpenAPI document, and to people, as one plain page."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from tokforge_models.serving import answered, asked

if TYPE_CHECKING:
    from tokforge_models.serving.served import Served

_AT = "#/components/schemas/"
_ERRORS = {
    "400": "A field is unknown, wrong or not supported; `param` names it.",
    "401": "The key is missing or another.",
    "403": "Called by a foreign host name.",
    "404": "No such model.",
    "408": "The body came too slowly.",
    "413": "The body is too large.",
    "415": "The body is not declared to be plain JSON.",
    "429": "One answer is being made and all places in the line are taken; see Retry-After.",
    "431": "The head is too large.",
    "500": "The engine failed.",
    "503": "The server ends, or loads its models.",
    "504": "The answer was not ready in time.",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """A path with a method, as the document tells it.

    Attributes:
        method: in capitals.
        path: with parameters in braces.
        summary: a sentence.
        answer: the document that it answers; None where it is no JSON of ours.
        request: the document that it takes.
        chunk: what each event of a stream is.
    """

    method: Literal["GET", "POST"]
    path: str
    summary: str
    answer: type[answered.Value] | None
    request: type[asked.Request] | None = None
    chunk: type[answered.Value] | None = None


def describe(operations: Sequence[Operation], served: Served) -> dict[str, Any]:
    """The document.

    The one model that there is stands in it, since every other is refused.
    """
    models: list[tuple[Any, Literal["validation", "serialization"]]] = []
    for operation in operations:
        if operation.request:
            models.append((operation.request, "validation"))
        models += [
            (answer, "serialization") for answer in (operation.answer, operation.chunk) if answer
        ]
    models.append((answered.Error, "serialization"))
    _, schemas = models_json_schema(models, ref_template=_AT + "{model}")
    for kind in (asked.ChatRequest, asked.CompletionRequest):
        schemas["$defs"][kind.__name__]["properties"]["model"]["enum"] = [served.name]
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"tokforge serve {served.name}",
            "version": version("tokforge-models"),
            "description": "The OpenAI API over one loaded pair. Unknown fields are refused.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def document(operations: Sequence[Operation], served: Served) -> str:
    """The document as text."""
    return json.dumps(describe(operations, served))


def _operation(operation: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {"summary": operation.summary, "operationId": _id(operation)}
    content: dict[str, Any] = {}
    if operation.answer:
        content["application/json"] = {"schema": _ref(operation.answer)}
    if operation.chunk:
        content["text/event-stream"] = {}
    told["responses"] = {
        "200": {
            "description": "Done."
            if operation.chunk is None
            else f"The whole answer, or as events where stream is true: each the JSON of a "
            f"{operation.chunk.__name__} or an Error; the last one is [DONE].",
            **({"content": content} if content else {}),
        }
    }
    for status, why in _errors(operation).items():
        told["responses"][status] = {
            "description": why,
            "content": {"application/json": {"schema": _ref(answered.Error)}},
        }
    if operation.request:
        told["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(operation.request)}},
        }
    if "{" in operation.path:
        name = operation.path.partition("{")[2].rstrip("}")
        told["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    return told


def _errors(operation: Operation) -> dict[str, str]:
    if operation.request:
        return _ERRORS
    wanted = ["401", "403"]
    if "{" in operation.path:
        wanted.append("404")
    return {status: _ERRORS[status] for status in wanted}


def _id(operation: Operation) -> str:
    words = operation.path.translate(str.maketrans("/.{}-", "_____")).strip("_")
    return f"{operation.method.lower()}_{words}"


def _ref(model: type[Any]) -> dict[str, str]:
    return {"$ref": _AT + model.__name__}


_STYLE = """
body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
:root{color-scheme:light dark}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;
border-bottom:1px solid #8884}
code{font-size:.9em}
h2{margin-top:2.5rem}
"""


def page(operations: Sequence[Operation], served: Served) -> Response:
    """The document for people, without a script and with nothing from elsewhere."""
    told = describe(operations, served)
    schemas = told["components"]["schemas"]
    parts = [
        f"<h1>{_text(told['info']['title'])}</h1><p>{_text(told['info']['description'])} "
        'For programs: <a href="/openapi.json">openapi.json</a>.</p><ul>'
    ]
    parts += [
        f"<li><code>{operation.method} {_text(operation.path)}</code> "
        f"{_text(operation.summary)}</li>"
        for operation in operations
    ]
    parts.append("</ul>")
    parts += [_schema(name, schemas[name]) for name in sorted(schemas)]
    body = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(told['info']['title'])}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>"
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return Response(body, media_type="text/html", headers={"content-security-policy": policy})


def _schema(name: str, schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        f"<tr><td><code>{_text(field)}</code>{' *' if field in needed else ''}</td>"
        f"<td>{_type(value)}</td><td>{_text(value.get('description', ''))}</td></tr>"
        for field, value in schema.get("properties", {}).items()
    ]
    return (
        f'<h2 id="{_text(name)}">{_text(name)}</h2><p>{_text(schema.get("description", ""))}</p>'
        "<table><thead><tr><th>field (* needed)</th><th>value</th><th></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _type(value: dict[str, Any]) -> str:
    """A value's kind and bounds, in short."""
    if ref := value.get("$ref"):
        name = _text(ref.rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if several := value.get("anyOf") or value.get("oneOf"):
        return " or ".join(_type(each) for each in several)
    if "enum" in value or "const" in value:
        choices = value.get("enum", [value.get("const")])
        return " or ".join(f"<code>{_text(json.dumps(choice))}</code>" for choice in choices)
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}))}"
    bounds = [
        f"{word} {value[key]}"
        for key, word in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("minLength", "length from"),
            ("maxLength", "length to"),
            ("minItems", "at least"),
            ("maxItems", "at most"),
        )
        if key in value
    ]
    return _text(" ".join([str(value.get("type", "any")), *bounds]))


def _text(text: str) -> str:
    return html.escape(str(text))
