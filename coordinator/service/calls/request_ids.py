"""Repeated request ids (AIP-155): one effect, one answer, as long as it is remembered."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from coordinator.service.wire.error_statuses import InvalidField
from model.errors import GroupError

_Key: TypeAlias = tuple[str, str]
_Response = TypeVar("_Response", bound=Message)


class Identified(Protocol):
    """A request, that is a message, with an id that its client made up; empty for none."""

    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes:  # noqa: N802
        """As a message."""


class RequestIds:
    """The answers to the last ``size`` requests with an id; a restart forgets them.

    Of what was asked there is only a digest: a request may have megabytes.
    """

    __slots__ = ("_answers", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._answers: OrderedDict[_Key, tuple[bytes, asyncio.Future[Message]]] = OrderedDict()

    async def once(
        self,
        principal: str,
        request: Identified,
        kind: type[_Response],
        carry_out: Callable[[], Awaitable[_Response]],
    ) -> _Response:
        """Carries the request out unless it was; raises its error again where it failed.

        An id is the principal's: nobody is answered what another one has asked for. Whether the
        caller may have the answer is to be asked around this, for it may not be carried out.
        Raises ``InvalidField`` where the id was used for another request.
        """
        if not request.request_id:
            return await carry_out()
        content = _compute_digest(request)
        request_id = (principal, request.request_id)
        known = self._answers.get(request_id)
        if known is None:
            # Its own task: the request takes effect even if the client that waits goes away.
            task = asyncio.ensure_future(carry_out())
            self._remember(request_id, content, task)  # type: ignore[arg-type]
            return await asyncio.shield(task)
        if known[0] != content:
            raise InvalidField("request_id", "request_id was used for another request")
        answer = await asyncio.shield(known[1])
        assert isinstance(answer, kind)
        return answer

    def _remember(self, request_id: _Key, content: bytes, task: asyncio.Future[Message]) -> None:
        self._answers[request_id] = (content, task)
        task.add_done_callback(self._forget_failure(request_id))
        while len(self._answers) > self._size:
            self._answers.popitem(last=False)

    def _forget_failure(self, request_id: _Key) -> Callable[[asyncio.Future[Message]], None]:
        def on_done(task: asyncio.Future[Message]) -> None:
            # A failure had no effect: whoever asks again may succeed.
            failed = task.cancelled() or isinstance(task.exception(), GroupError)
            known = self._answers.get(request_id)
            if failed and known is not None and known[1] is task:
                del self._answers[request_id]

        return on_done


def _compute_digest(request: Identified) -> bytes:
    content = request.SerializeToString(deterministic=True)
    return hashlib.sha256(type(request).__name__.encode() + b"\0" + content).digest()
