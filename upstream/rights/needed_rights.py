"""The rights that Muster's own identity needs in the cluster, and what to say if one is missing.

========================  ======================================================================
DESCRIBE on the cluster   reading its ACLs
DESCRIBE on topics        the topics of groups, their partitions and end offsets
READ on topics            committing offsets of a group's topics under the sentinel
READ on groups            taking a group: joining it, taking its members out, its offsets
DESCRIBE on groups        seeing groups and their members before they are taken; READ implies it
========================  ======================================================================
"""

from __future__ import annotations

from typing import Final, NamedTuple

from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.errors import ErrorCode


class NeededRight(NamedTuple):
    """An operation on one resource."""

    operation: Operation
    resource_type: ResourceType
    name: str


CLUSTER_RIGHT: Final = NeededRight(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
_REFUSALS: Final = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (Operation.READ, ResourceType.GROUP),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (Operation.READ, ResourceType.TOPIC),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (Operation.DESCRIBE, ResourceType.CLUSTER),
}


def _find_refused_right(code: int, name: str) -> NeededRight | None:
    """The right that a refusal of this resource by the cluster is about; ``None`` for others."""
    try:
        found = _REFUSALS.get(ErrorCode(code))
    except ValueError:
        return None
    if found is None:
        return None
    operation, resource_type = found
    is_cluster = resource_type is ResourceType.CLUSTER
    return NeededRight(operation, resource_type, CLUSTER_NAME if is_cluster else name)


def describe_refusal(principal: str, code: int, name: str) -> str | None:
    """The line for a refusal of this resource by the cluster; ``None`` for other errors."""
    right = _find_refused_right(code, name)
    return None if right is None else describe_missing(principal, right)


def describe_missing(principal: str, right: NeededRight) -> str:
    """One line that names a right that Muster lacks, and the command that gives it."""
    kind = right.resource_type.value.lower()
    what = "the cluster" if right.resource_type is ResourceType.CLUSTER else f"{kind} {right.name}"
    option = (
        "--cluster" if right.resource_type is ResourceType.CLUSTER else f"--{kind} {right.name}"
    )
    operation = right.operation.value.replace("_", "").capitalize()
    return (
        f"the cluster refuses {principal}, which is Muster: it needs {right.operation.value} on "
        f"{what} (kafka-acls --add --allow-principal {principal} --operation {operation} {option})"
    )
