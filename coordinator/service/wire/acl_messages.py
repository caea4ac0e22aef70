"""ACLs, filters of ACLs and decisions, as ``muster.v1`` messages."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeVar

from coordinator.service.wire.error_statuses import InvalidField
from model.access.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from muster.v1 import access_pb2
from security.acl_index import Decision, Request

E = TypeVar("E", bound=Enum)

TEXT_MAX: Final = 32_767
"""Characters of a name, a principal or a host: what a string of Kafka's protocol may hold."""
MATCH: Final = "MATCH"


def decode_acl(message: access_pb2.Acl, path: str) -> Acl:
    """Decode an ACL; raises ``InvalidField`` with ``path`` before the field's name."""
    resource_type = _decode(ResourceType, message.resource_type, f"{path}.resource_type")
    name = _decode_text(message.resource_name, f"{path}.resource_name")
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidField(f"{path}.resource_name", f"the cluster's only name is {CLUSTER_NAME}")
    rule = Rule(
        _decode_principal(message.principal, f"{path}.principal"),
        _decode_text(message.host, f"{path}.host"),
        _decode(Operation, message.operation, f"{path}.operation"),
        _decode(Permission, message.permission, f"{path}.permission"),
    )
    pattern_type = _decode(PatternType, message.pattern_type, f"{path}.pattern_type")
    return Acl(ResourcePattern(resource_type, name, pattern_type), rule)


def decode_filter(message: access_pb2.AclFilter) -> AclFilter:
    """Decode a filter; raises ``InvalidField``."""

    def one(kind: type[E], name: str) -> E | None:
        return _decode(kind, getattr(message, name), name) if message.HasField(name) else None

    def text(name: str) -> str | None:
        return _decode_text(getattr(message, name), name) if message.HasField(name) else None

    matches_name = message.pattern_type == MATCH
    return AclFilter(
        one(ResourceType, "resource_type"),
        text("resource_name"),
        None if matches_name else one(PatternType, "pattern_type"),
        matches_name,
        text("principal"),
        text("host"),
        one(Operation, "operation"),
        one(Permission, "permission"),
    )


def decode_request(message: access_pb2.CheckAccessRequest) -> Request:
    """Decode what is asked about; raises ``InvalidField``."""
    operation = _decode(Operation, message.operation, "operation")
    if operation is Operation.ALL:
        raise InvalidField("operation", "ask for one operation")
    return Request(
        _decode_principal(message.principal, "principal"),
        _decode_text(message.host, "host"),
        operation,
        _decode(ResourceType, message.resource_type, "resource_type"),
        _decode_text(message.resource_name, "resource_name"),
    )


def encode_acl(acl: Acl) -> access_pb2.Acl:
    """Encode an ACL."""
    pattern, rule = acl
    return access_pb2.Acl(
        resource_type=pattern.resource_type.value,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type.value,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation.value,
        permission=rule.permission.value,
    )


def encode_decision(decision: Decision) -> access_pb2.CheckAccessResponse:
    """Encode a decision, and what made it."""
    if isinstance(decision.by, Acl):
        return access_pb2.CheckAccessResponse(
            is_allowed=decision.is_allowed, acl=encode_acl(decision.by)
        )
    return access_pb2.CheckAccessResponse(is_allowed=decision.is_allowed, cause=decision.by.value)


def _decode(kind: type[E], text: str, path: str) -> E:
    try:
        return kind(text)
    except ValueError:
        names = ", ".join(str(each.value) for each in kind)
        raise InvalidField(path, f"{text[:40]!r} is none of {names}") from None


def _decode_principal(text: str, path: str) -> str:
    kind, colon, name = _decode_text(text, path).partition(":")
    if not (kind and colon and name):
        raise InvalidField(path, f"{text[:80]!r} is no principal: write it as User:NAME")
    return text


def _decode_text(text: str, path: str) -> str:
    if not text:
        raise InvalidField(path, "must not be empty")
    if len(text) > TEXT_MAX:
        raise InvalidField(path, f"has more than {TEXT_MAX} characters")
    return text
