"""Rights that are looked at where nothing is refused: filters, and KIP-430's bit field."""

from __future__ import annotations

from typing import Final

from gateway.api import RequestContext
from model.access.acl_codes import OPERATION_CODES
from model.access.acls import GROUP_OPERATIONS, Operation, ResourceType

NOT_REQUESTED: Final = -(2**31)
"""The field's value when the client did not request it."""

_OPERATIONS: Final = {
    ResourceType.GROUP: GROUP_OPERATIONS,
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def may_see(
    context: RequestContext, operation: Operation, resource_type: ResourceType, name: str
) -> bool:
    """As ``RequestContext.authorized``, but a denial is no refusal: what is denied is left out."""
    node = context.node
    return node.allows_all or node.authorizer.may_see(
        context.caller, operation, resource_type, name
    )


def may_see_some(
    context: RequestContext, operation: Operation, resource_type: ResourceType
) -> bool:
    """``may_see`` for any resource of the type, whether it is there or not."""
    node = context.node
    return node.allows_all or node.authorizer.may_see_some(context.caller, operation, resource_type)


def compute_authorized_operations(
    context: RequestContext, resource_type: ResourceType, name: str, is_requested: bool
) -> int:
    """One bit per operation on this resource that the caller is authorized for."""
    if not is_requested:
        return NOT_REQUESTED
    return sum(
        1 << OPERATION_CODES[operation]
        for operation in _OPERATIONS[resource_type]
        if may_see(context, operation, resource_type, name)
    )
