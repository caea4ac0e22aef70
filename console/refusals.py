"""What people are told when something is refused, and the HTTP status of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc

from coordinator.service.calls.local_calls import CallRefused
from wording.errors import InputError

_S = grpc.StatusCode

_STATUS_OF: Final = {
    _S.INVALID_ARGUMENT: 400,
    _S.OUT_OF_RANGE: 400,
    _S.UNAUTHENTICATED: 401,
    _S.PERMISSION_DENIED: 403,
    _S.NOT_FOUND: 404,
    _S.ALREADY_EXISTS: 409,
    _S.FAILED_PRECONDITION: 409,
    _S.ABORTED: 409,
    _S.RESOURCE_EXHAUSTED: 429,
    _S.UNIMPLEMENTED: 501,
    _S.UNAVAILABLE: 503,
    _S.DEADLINE_EXCEEDED: 504,
}

_TITLES: Final = {
    400: "This cannot be asked",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "Not as it is now",
    413: "Too large",
    414: "Too long",
    421: "Another server's name",
    429: "Too much at a time",
    501: "Not possible here",
    503: "Not available now",
    504: "No answer in time",
}

_ADVICE: Final = {
    400: "Go back, and correct what was asked for.",
    401: "Sign in and try again.",
    403: "Ask an administrator for the right (muster acl add), or sign in as somebody else.",
    404: "It may have been deleted: look for it in its list.",
    405: "Go back to the page that this came from.",
    409: "Look at the present state, and try again if it is still what you want.",
    413: "Send less.",
    414: "Ask for less.",
    421: "Ask for the server by its address, or add the name to console.hosts.",
    429: "Wait a moment and try again.",
    501: "Ask for something else.",
    503: "Try again in a moment; /readyz says when the server is ready.",
    504: "Try again, or ask for less.",
}


class Refused(Exception):
    """A request that the console itself refuses: an HTTP status, and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the error page shows. ``reason`` is a name for programs, often an error of Kafka."""

    status: int
    title: str
    message: str
    advice: str
    reason: str = ""


def compute_refusal(error: CallRefused | Refused | InputError) -> Refusal:
    """What to tell of an error."""
    if isinstance(error, Refused):
        return describe(error.status, error.message)
    if isinstance(error, InputError):
        return describe(400, str(error))
    status = _STATUS_OF.get(error.status, 500)
    return describe(status, error.message, error.reason)


def describe(status: int, message: str, reason: str = "") -> Refusal:
    """What to tell of a status."""
    title = _TITLES.get(status, "This went wrong")
    advice = _ADVICE.get(status, "The server's log says more.")
    return Refusal(status, title, message, advice, reason)
