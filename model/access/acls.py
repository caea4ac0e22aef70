"""ACLs: who may do which operation on which resources (``org.apache.kafka.common.acl``)."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Operation(Enum):
    """Kafka's ACL operations. ``ALL`` is one of an ACL, never of a request."""

    ALL = "ALL"
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
    CREATE_TOKENS = "CREATE_TOKENS"
    DESCRIBE_TOKENS = "DESCRIBE_TOKENS"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"


GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
"""What can be done to a group."""


class ResourceType(Enum):
    """Kafka's ACL resource types."""

    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"
    USER = "USER"


class PatternType(Enum):
    """How the name of an ACL's resource pattern is compared with that of a resource."""

    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class Permission(Enum):
    """What an ACL says. A matching ``DENY`` beats any ``ALLOW``."""

    DENY = "DENY"
    ALLOW = "ALLOW"


CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only CLUSTER resource, as in Kafka."""

ANY_NAME: Final = "*"
"""As the name of a literal pattern: every resource of the type."""

ANY_PRINCIPAL: Final = "User:*"
ANY_HOST: Final = "*"


class ResourcePattern(NamedTuple):
    """The resources that an ACL is about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class Rule(NamedTuple):
    """Who may, or may not, do an operation; ``host`` is an address without a port, or ``*``."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


class Acl(NamedTuple):
    """One ACL (Kafka's ``AclBinding``)."""

    pattern: ResourcePattern
    rule: Rule


class AclFilter(NamedTuple):
    """What ACLs must be; ``None`` is anything (Kafka's ``AclBindingFilter``).

    With ``matches_name`` the patterns are those that a resource of this name matches (Kafka's
    pattern type ``MATCH``), and ``pattern_type`` is ``None``.
    """

    resource_type: ResourceType | None = None
    name: str | None = None
    pattern_type: PatternType | None = PatternType.LITERAL
    matches_name: bool = False
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def means(self, acl: Acl) -> bool:
        """Whether the ACL is one of those."""
        rule = acl.rule
        return (
            self.resource_type in (None, acl.pattern.resource_type)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (None, rule.operation)
            and self.permission in (None, rule.permission)
            and self._means_pattern(acl.pattern)
        )

    def _means_pattern(self, pattern: ResourcePattern) -> bool:
        _, name, pattern_type = pattern
        if self.pattern_type not in (None, pattern_type):
            return False
        if self.name is None or self.name == name:
            return True
        if not self.matches_name:
            return False
        if pattern_type is PatternType.PREFIXED:
            return self.name.startswith(name)
        return name == ANY_NAME
