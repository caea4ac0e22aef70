"""ACLs and filters of ACLs, as requests and responses number their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from gateway.api import RequestContext
from model.access.acl_codes import (
    ANY_CODE,
    MATCH_CODE,
    OPERATION_CODES,
    OPERATIONS,
    PATTERN_TYPE_CODES,
    PATTERN_TYPES,
    PERMISSION_CODES,
    PERMISSIONS,
    RESOURCE_TYPE_CODES,
    RESOURCE_TYPES,
)
from model.access.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.errors import ClusterAuthorizationFailed, InvalidRequest, SecurityDisabled

T = TypeVar("T")

_NO_COLON: Final = (
    "Could not parse principal from `{}` (no colon is present separating the principal type from "
    "the principal name)"
)


def check_access(context: RequestContext, operation: Operation) -> None:
    """Raise an error unless the caller may do this to ACLs, and there are any."""
    if not context.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed("Cluster authorization failed.")
    if context.node.allows_all:
        raise SecurityDisabled("No Authorizer is configured.")


def decode_acl(creation: Any) -> Acl:
    """The ACL of a creation; raises ``InvalidRequest`` as Kafka does."""
    resource_type = _find(RESOURCE_TYPES, creation.resource_type, "resourceType")
    name = creation.resource_name
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise InvalidRequest("Invalid empty resource name")
    pattern_type = _find(PATTERN_TYPES, creation.resource_pattern_type, "patternType")
    operation = _find(OPERATIONS, creation.operation, "operation")
    permission = _find(PERMISSIONS, creation.permission_type, "permissionType")
    principal = creation.principal
    if ":" not in principal:
        raise InvalidRequest(_NO_COLON.format(principal))
    rule = Rule(principal, creation.host, operation, permission)
    return Acl(ResourcePattern(resource_type, name, pattern_type), rule)


def decode_filter(source: Any) -> AclFilter:
    """The filter; raises ``InvalidRequest`` for numbers that Kafka does not know."""
    matches_name = source.pattern_type_filter == MATCH_CODE
    return AclFilter(
        resource_type=_find_or_any(RESOURCE_TYPES, source.resource_type_filter, "patternFilter"),
        name=source.resource_name_filter,
        pattern_type=(
            None
            if matches_name
            else _find_or_any(PATTERN_TYPES, source.pattern_type_filter, "patternFilter")
        ),
        matches_name=matches_name,
        principal=source.principal_filter,
        host=source.host_filter,
        operation=_find_or_any(OPERATIONS, source.operation, "entryFilter"),
        permission=_find_or_any(PERMISSIONS, source.permission_type, "entryFilter"),
    )


def compute_pattern_fields(pattern: ResourcePattern) -> dict[str, Any]:
    """The fields of a resource pattern in responses."""
    return {
        "resource_type": RESOURCE_TYPE_CODES[pattern.resource_type],
        "resource_name": pattern.name,
        "pattern_type": PATTERN_TYPE_CODES[pattern.pattern_type],
    }


def compute_rule_fields(rule: Rule) -> dict[str, Any]:
    """The fields of a rule in responses."""
    return {
        "principal": rule.principal,
        "host": rule.host,
        "operation": OPERATION_CODES[rule.operation],
        "permission_type": PERMISSION_CODES[rule.permission],
    }


def _find(known: Mapping[int, T], code: int, what: str) -> T:
    found = known.get(code)
    if found is None:
        raise InvalidRequest(f"Invalid {what} {_name(code, what)}")
    return found


def _name(code: int, what: str) -> str:
    if code == ANY_CODE:
        return "ANY"
    return "MATCH" if what == "patternType" and code == MATCH_CODE else "UNKNOWN"


def _find_or_any(known: Mapping[int, T], code: int, what: str) -> T | None:
    if code == ANY_CODE:
        return None
    found = known.get(code)
    if found is None:
        raise InvalidRequest(f"Unknown {what}.")
    return found
