"""Which grammar an answer has to follow, from what a request wants of it.

Grammars are texts for `tokforge_engine.constraint`. They are checked here, so that a schema that
cannot be honoured is refused before anything runs.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from tokforge_models.serving.asked import (
    AnyJson,
    ChatRequest,
    FunctionSpec,
    NamedTool,
    SchemaJson,
)
from tokforge_models.serving.errors import BadRequest

# What checking a schema costs grows with the square of an object's width, or faster.
_MOST_CHARACTERS = 128 * 2**10
_MOST_PROPERTIES = 1000
_MOST_PATTERNS = 16
# A multiple costs as many states as it is large, and several of one value as many as their product.
_LARGEST_MULTIPLE = 10_000
# Else a model that likes blanks writes them until its tokens are used up.
_COMPACT = {"whitespace_flexible": False}


def available() -> bool:
    """Whether answers can be made to follow a grammar here."""
    return importlib.util.find_spec("llguidance") is not None


def grammar_of(request: ChatRequest) -> str | None:
    """The grammar of the answer; None where it may be any text.

    Raises:
        BadRequest: a schema cannot be honoured, or no grammar can.
    """
    calls = _wanted_calls(request)
    form = request.response_format
    formats = []
    if isinstance(form, AnyJson):
        formats.append(_json({"type": "object"}, "response_format.type"))
    elif isinstance(form, SchemaJson):
        formats.append(_json(form.json_schema.schema_, "response_format.json_schema.schema"))
    if calls:
        if formats:
            raise BadRequest(
                "a call that must be made and a format of the answer exclude each other",
                param="response_format",
            )
        return _calls(calls, several=request.parallel_tool_calls is not False)
    if not formats:
        return None
    if request.tools and request.tool_choice != "none":
        raise BadRequest(
            "a format of the answer is not supported where the model may call tools; "
            "expected tool_choice none",
            param="response_format",
        )
    return f"start: {formats[0]}"


def _wanted_calls(request: ChatRequest) -> Sequence[FunctionSpec]:
    """The functions one of which must be called; none where the model may choose not to."""
    functions = [tool.function for tool in request.tools or ()]
    if request.tool_choice == "required":
        return functions
    if isinstance(request.tool_choice, NamedTool):
        name = request.tool_choice.function.name
        return [function for function in functions if function.name == name]
    return ()


def _calls(functions: Sequence[FunctionSpec], *, several: bool) -> str:
    calls: list[str] = []
    for place, function in enumerate(functions):
        arguments = function.parameters or {"type": "object"}
        rule = _json(arguments, f"tools[{place}].function.parameters", before=sum(map(len, calls)))
        head = json.dumps('{"name": ' + json.dumps(function.name) + ', "arguments": ')
        calls.append(f'{head} {rule} "}}"')
    more = ' ("\\n" call)*' if several else ""
    return (
        f"start: call{more}\n"
        'call: "<tool_call>\\n" function "\\n</tool_call>"\n'
        f"function: {' | '.join(calls)}"
    )


def _json(schema: dict[str, Any], param: str, *, before: int = 0) -> str:
    """A rule for JSON by a schema, checked; with those before, it may be only so long."""
    if not available():
        raise BadRequest(
            "llguidance is not installed in this server, which is needed for this: "
            "pip install llguidance",
            param=param.partition(".")[0],
        )
    from llguidance import LLMatcher

    try:
        rule = "%json " + json.dumps({**schema, "x-guidance": _COMPACT}, allow_nan=False)
    except ValueError:
        raise BadRequest("a schema holds a number that is none in JSON", param=param) from None
    if before + len(rule) > _MOST_CHARACTERS:
        raise BadRequest(
            f"the schemas of a request may have {_MOST_CHARACTERS:,} characters together, "
            f"got {before + len(rule):,}",
            param=param,
        )
    _check_width(schema, param)
    _check_multiples(schema, param)
    wrong, said = LLMatcher.validate_grammar_with_warnings(f"start: {rule}")
    if wrong:
        reason = said[0].partition("\n")[0].partition("failed to compile JSON schema: ")
        raise BadRequest(
            f"the schema cannot be honoured: {(reason[2] or reason[0])[:300]}", param=param
        )
    return rule


def _check_width(value: Any, param: str, most: int = _MOST_PROPERTIES) -> None:
    """Refuse what would take long to check."""
    if isinstance(value, dict):
        if len(value) > most:
            raise BadRequest(
                f"the schema is too wide: expected at most {_MOST_PROPERTIES:,} properties of an "
                f"object and {_MOST_PATTERNS} patternProperties, got {len(value):,}",
                param=param,
            )
        for key, each in value.items():
            narrow = key == "patternProperties"
            _check_width(each, param, _MOST_PATTERNS if narrow else _MOST_PROPERTIES)
    elif isinstance(value, list):
        for each in value:
            _check_width(each, param)


def _check_multiples(schema: dict[str, Any], param: str) -> None:
    """Refuse what would take long to follow."""
    together = 1
    for each in _multiples(schema):
        together = math.lcm(together, Fraction(str(each)).numerator)
        if together > _LARGEST_MULTIPLE:
            raise BadRequest(
                f"expected at most {_LARGEST_MULTIPLE:,} as the least common multiple of all "
                "multipleOf in the schema, got more",
                param=param,
            )


def _multiples(value: Any) -> Iterator[int | float]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "multipleOf" and isinstance(each, int | float) and each:
                yield each
            else:
                yield from _multiples(each)
    elif isinstance(value, list):
        for each in value:
            yield from _multiples(each)
