"""The bit field of the caller's authorized operations (KIP-430), for describe responses."""

from __future__ import annotations

from typing import Final

from coordinator.runtime.authorizer import Operation, ResourceType
from gateway.api import RequestContext

NOT_REQUESTED: Final = -(2**31)
"""The field's value when the client did not request it."""

_CODES: Final = {
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.DELETE: 6,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.CLUSTER_ACTION: 9,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
    Operation.IDEMPOTENT_WRITE: 12,
}

_OPERATIONS: Final = {
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
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


def compute_authorized_operations(
    context: RequestContext, resource_type: ResourceType, name: str, is_requested: bool
) -> int:
    """One bit per operation on this resource that the caller is authorized for."""
    if not is_requested:
        return NOT_REQUESTED
    return sum(
        1 << _CODES[operation]
        for operation in _OPERATIONS[resource_type]
        if context.authorized(operation, resource_type, name)
    )
