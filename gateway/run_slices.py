"""The work of one request in slices: the first now, the others in turns that others share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from coordinator.runtime.slices import Steps

if TYPE_CHECKING:
    from gateway.api import RequestContext

T = TypeVar("T")


def run_slices(context: RequestContext, steps: Steps[T], done: Callable[[T], object]) -> None:
    """``done`` gets what ``steps`` come to; nothing more is done once the connection is gone."""
    work = _run(context, steps, done)
    for _ in work:
        context.door.making.go_on(context)
        context.node.slices.go_on(work, partial(context.door.fail, context))
        return


def _run(context: RequestContext, steps: Steps[T], done: Callable[[T], object]) -> Steps[None]:
    try:
        while not context.closed:
            try:
                next(steps)
            except StopIteration as end:
                done(end.value)
                return
            yield
    except Exception as error:  # noqa: BLE001 - a bug in one API ends this request alone
        context.door.fail(context, error)
