"""The authorizer interface. Front ends ask it before they make a command."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Operation(Enum):
    """Kafka's ACL operations."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"


class ResourceType(Enum):
    """Kafka's ACL resource types."""

    GROUP = "GROUP"
    TOPIC = "TOPIC"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"


CLUSTER_NAME = "kafka-cluster"
"""The name of the only CLUSTER resource, as in Kafka."""


class Authorizer(Protocol):
    """Decides for one principal, operation and resource. Must not block."""

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        """Whether ``principal``, calling from ``host``, may do ``operation`` on the resource."""


class AllowAll:
    """The authorizer of a server without access control."""

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        return True
