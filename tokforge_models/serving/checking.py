"""A request's JSON read strictly: its first faults in one answer, none of its text in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from tokforge_models.serving.asked import Request
from tokforge_models.serving.errors import BadRequest

Asked = TypeVar("Asked", bound=Request)

_MOST_FAULTS = 10
# Of more, telling one by one would keep everybody waiting.
_COUNTED_ONLY = 1000
_LONGEST_NAME = 64
_UNKNOWN = "unknown or not supported"
_OURS = {"extra_forbidden": _UNKNOWN, "missing": "missing, but needed"}


def checked(kind: type[Asked], body: bytes) -> Asked:
    """A valid request.

    Raises:
        BadRequest: what is wrong with it; `param` is the first field concerned.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as invalid:
        if invalid.error_count() > _COUNTED_ONLY:
            raise BadRequest(
                f"expected a request as /docs describes it, got one with {invalid.error_count():,} "
                "faults",
                code="invalid_value",
            ) from None
        errors = invalid.errors(include_url=False, include_context=False, include_input=False)
    if errors[0]["type"] == "json_invalid":
        raise BadRequest(f"the body is not JSON: {errors[0]['msg']}", code="invalid_json")
    value = from_json(body)
    faults: dict[str, list[str]] = {}
    for error in errors:
        path = _path(error["loc"], value)
        if path not in faults and len(faults) == _MOST_FAULTS:
            break
        what = _OURS.get(error["type"], error["msg"])
        said = faults.setdefault(path, [])
        if what not in said:
            said.append(what)
    known = [(path, " or ".join(said)) for path, said in faults.items()]
    told = "; ".join(f"{path}: {what}" if path else what for path, what in known)
    code = "unknown_parameter" if known[0][1] == _UNKNOWN else "invalid_value"
    raise BadRequest(told, param=known[0][0] or None, code=code)


def _path(location: Sequence[int | str], value: Any) -> str:
    """A place as people write it: ``messages[0].content``.

    The location also names the alternatives that were tried; those are not in the value.
    """
    path = ""
    for place, step in enumerate(location):
        if isinstance(step, int):
            path += f"[{step}]"
            value = value[step] if isinstance(value, list) and step < len(value) else None
        elif isinstance(value, dict) and (step in value or place == len(location) - 1):
            path += ("." if path else "") + step[:_LONGEST_NAME]
            value = value.get(step)
    return path
