"""The rights that Muster's own identity needs in the cluster, and what to say if one is missing.

========================  ======================================================================
DESCRIBE on the cluster   reading its ACLs
DESCRIBE on topics        the topics of groups, their partitions and end offsets
READ on topics            committing offsets of a group's topics under the sentinel
READ on groups            taking a group: joining it, taking its members out, its offsets
DESCRIBE on groups        seeing groups and their members before they are taken; READ implies it
========================  ======================================================================

Kafka tells a caller what it may do with a group and with topics (KIP-430), so a takeover can know
before it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from model.acl_codes import OPERATION_CODES
from model.acls import CLUSTER_NAME, Operation, ResourceType
from model.errors import ErrorCode

_NOT_TOLD: Final = -(2**31)
"""Kafka's own number for operations that were not asked for, or that a broker does not tell."""


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


def compute_needed(group_id: str, topics: Iterable[str]) -> tuple[NeededRight, ...]:
    """The rights to take a group that has, or commits, these topics."""
    of_topics = (
        NeededRight(operation, ResourceType.TOPIC, topic)
        for topic in sorted(set(topics))
        for operation in (Operation.DESCRIBE, Operation.READ)
    )
    return (NeededRight(Operation.READ, ResourceType.GROUP, group_id), *of_topics)


def compute_missing(
    needed: Iterable[NeededRight], group_operations: int, topic_operations: Mapping[str, int]
) -> tuple[NeededRight, ...]:
    """Those that the cluster says Muster lacks, by the bits of its authorized operations.

    What the cluster does not tell counts as there: the request itself is refused then.
    """
    return tuple(
        right
        for right in needed
        if not _is_among(right.operation, _find_bits(right, group_operations, topic_operations))
    )


def _find_bits(right: NeededRight, group: int, topics: Mapping[str, int]) -> int:
    return group if right.resource_type is ResourceType.GROUP else topics.get(right.name, _NOT_TOLD)


def _is_among(operation: Operation, bits: int) -> bool:
    return bits == _NOT_TOLD or bool(bits >> OPERATION_CODES[operation] & 1)


def find_refused_right(code: int, name: str) -> NeededRight | None:
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
