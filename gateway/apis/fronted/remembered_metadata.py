"""Metadata (3) in front of a cluster: passed on, or answered as last time.

A broker answers Metadata from memory, whatever the rest of the cluster does, and clients count on
it: what they ask for next, such as their coordinator, waits behind it on the same connection. So
while the cluster does not answer, a client is told what it was told before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from gateway.api import Api, RequestContext
from gateway.apis.fronted.passed_apis import PASSED_APIS, ask, find_passing, reply_passed
from gateway.apis.fronted.request_frames import make_raw_frame
from gateway.fronting.passing import TIMEOUT_S
from gateway.fronting.remembered import Question
from gateway.rewriting.nodes import METADATA_KEY

PATIENCE_S: Final = 2.0
"""More than a new connection over a slow network takes."""
LINK_TIMEOUT_S: Final = 10.0
"""Then the next request goes to another broker, if there is one."""


def handle(context: RequestContext, request: Any) -> None:
    """Return the cluster's answer, the one before if it takes too long."""
    front = context.node.front
    assert front is not None
    answers = front.remembered
    question = Question(context.caller.principal, context.version, context.raw)
    known = answers.find(question)
    if known is not None and find_passing(context).is_behind:
        reply_passed(context, known)
        return

    def on_body(body: bytes | None) -> None:
        if body is not None:
            answers.note(question, body)
        if not context.answered:
            reply_passed(context, known if body is None else body)

    def give_known() -> None:
        if not context.answered and not context.closed:
            reply_passed(context, known)

    # The link of a login cannot be opened again: it is not given up so soon.
    is_short = known is not None and context.client.passed is None
    ask(context, make_raw_frame(context), on_body, LINK_TIMEOUT_S if is_short else TIMEOUT_S)
    if known is not None and not context.answered:
        context.node.clock.call_later(PATIENCE_S, give_known)


API: Final[Api] = replace(
    next(api for api in PASSED_APIS if api.key == METADATA_KEY), handler=handle
)
