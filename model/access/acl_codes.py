"""The numbers of ACL enums in Kafka's protocol, which side records use too."""

from __future__ import annotations

from typing import Final

from model.access.acls import Operation, PatternType, Permission, ResourceType

ANY_CODE: Final = 1
"""As a filter's: anything."""
MATCH_CODE: Final = 2
"""As a filter's pattern type: every pattern that a resource of this name matches."""

RESOURCE_TYPE_CODES: Final = {
    ResourceType.TOPIC: 2,
    ResourceType.GROUP: 3,
    ResourceType.CLUSTER: 4,
    ResourceType.TRANSACTIONAL_ID: 5,
    ResourceType.DELEGATION_TOKEN: 6,
    ResourceType.USER: 7,
}
PATTERN_TYPE_CODES: Final = {PatternType.LITERAL: 3, PatternType.PREFIXED: 4}
PERMISSION_CODES: Final = {Permission.DENY: 2, Permission.ALLOW: 3}
OPERATION_CODES: Final = {
    Operation.ALL: 2,
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
    Operation.CREATE_TOKENS: 13,
    Operation.DESCRIBE_TOKENS: 14,
    Operation.TWO_PHASE_COMMIT: 15,
}

RESOURCE_TYPES: Final = {code: kind for kind, code in RESOURCE_TYPE_CODES.items()}
PATTERN_TYPES: Final = {code: kind for kind, code in PATTERN_TYPE_CODES.items()}
PERMISSIONS: Final = {code: kind for kind, code in PERMISSION_CODES.items()}
OPERATIONS: Final = {code: kind for kind, code in OPERATION_CODES.items()}
