"""The right that every request of a member needs."""

from __future__ import annotations

from gateway.api import RequestContext
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode


def check_may_read(context: RequestContext, group_id: str) -> bool:
    """Whether the caller may READ the group; if not, the request is refused.

    A response that waited for other members asks again: the right may have been taken away.
    """
    if context.authorized(Operation.READ, ResourceType.GROUP, group_id):
        return True
    context.reply_failed(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Not authorized to the group.")
    return False
