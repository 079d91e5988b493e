"""What a request can come to instead of an answer, in the OpenAI API's shape."""

from __future__ import annotations

import json
import logging
from typing import ClassVar

_LOG = logging.getLogger(__name__)


class ApiError(Exception):
    """A request that is not answered.

    Args:
        message: what happened, expected and got where they are known; nothing of a prompt.
        param: the field that it is about.
        code: a word for programs; the class's own unless given.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    usual_code: ClassVar[str | None] = None

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        self.message = message
        self.param = param
        self.code = code or self.usual_code
        self.headers: dict[str, str] = {}
        super().__init__(message)

    def document(self) -> str:
        """The error as JSON."""
        error = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return json.dumps({"error": error}, ensure_ascii=False)


class BadRequest(ApiError):
    """A field is unknown, out of range, not supported, or does not go with another."""

    status = 400
    type = "invalid_request_error"


class Unauthorized(ApiError):
    """The key is missing or another."""

    status = 401
    type = "invalid_request_error"
    usual_code = "invalid_api_key"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers = {"www-authenticate": "Bearer"}


class Forbidden(ApiError):
    """The request came by a name that is not this server's."""

    status = 403
    type = "invalid_request_error"
    usual_code = "host_not_allowed"


class NotFound(ApiError):
    """No such path or model."""

    status = 404
    type = "invalid_request_error"


class NotAllowed(ApiError):
    """The path exists, the method does not."""

    status = 405
    type = "invalid_request_error"


class TooSlow(ApiError):
    """The request's body did not arrive in time."""

    status = 408
    type = "invalid_request_error"
    usual_code = "request_timeout"


class TooLarge(ApiError):
    """The request's body is larger than this server reads."""

    status = 413
    type = "invalid_request_error"
    usual_code = "request_too_large"


class HeadTooLarge(ApiError):
    """The request's head is larger than this server reads."""

    status = 431
    type = "invalid_request_error"
    usual_code = "request_too_large"


class WrongType(ApiError):
    """The body is not declared to be plain JSON."""

    status = 415
    type = "invalid_request_error"


class QueueFull(ApiError):
    """Too many requests wait already.

    Args:
        message: as in `ApiError`.
        retry_after: seconds after which another try may succeed.
    """

    status = 429
    type = "rate_limit_error"
    usual_code = "queue_full"

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.headers = {"retry-after": str(retry_after)}


class Failed(ApiError):
    """The engine failed, or this server has a fault."""


class ShuttingDown(ApiError):
    """The server ends, or its models cannot be loaded at the moment."""

    status = 503
    usual_code = "unavailable"


class TookTooLong(ApiError):
    """The answer was not ready in the time that a request may take."""

    status = 504
    usual_code = "timeout"


class ClientGone(Exception):
    """Nobody is there to be answered."""


def own_fault(fault: Exception) -> Failed:
    """What a request is told of a fault of our own.

    Its kind and where it arose are logged; not its message, which may hold a prompt.
    """
    _LOG.error("fault: %s", _place_of(fault))
    return Failed("the server met a fault of its own")


def _place_of(fault: BaseException) -> str:
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    return f"{type(fault).__name__} at {where}"
