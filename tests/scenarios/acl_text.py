"""ACLs in scenarios: ``allow User:a READ GROUP:team-* host=/10.0.0.1``."""

from __future__ import annotations

from typing import Protocol

from model.access.acls import (
    ANY_HOST,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.commands.access import CreateAcls, DeleteAcls, DescribeAcls
from tests.support.virtual.server import CALLER


class Said(Protocol):
    """The parts of a line."""

    verb: str
    words: list[str]
    options: dict[str, str]


def make_create(line: Said) -> CreateAcls:
    """``allow`` and ``deny``: a principal, operations, resources."""
    return CreateAcls(CALLER, _parse_acls(line.verb, line.words, line.options))


def make_delete(line: Said) -> DeleteAcls:
    """``delete-acls allow ...``: exactly these."""
    verb, *words = line.words
    return DeleteAcls(CALLER, _parse_acls(verb, words, line.options))


def make_list(line: Said) -> DescribeAcls:
    """``acls``: all."""
    assert not line.words, line
    return DescribeAcls(CALLER)


def _parse_acls(verb: str, words: list[str], options: dict[str, str]) -> tuple[Acl, ...]:
    principal, operations, *resources = words
    permission = Permission.ALLOW if verb == "allow" else Permission.DENY
    host = options.get("host", ANY_HOST)
    return tuple(
        Acl(_parse_pattern(resource), Rule(principal, host, Operation(operation), permission))
        for resource in resources
        for operation in operations.split(",")
    )


def _parse_pattern(text: str) -> ResourcePattern:
    kind, _, name = text.partition(":")
    if name != "*" and name.endswith("*"):
        return ResourcePattern(ResourceType(kind), name[:-1], PatternType.PREFIXED)
    return ResourcePattern(ResourceType(kind), name)


def format_acl(acl: Acl) -> str:
    """One ACL, as a line says it."""
    pattern, rule = acl
    star = "*" if pattern.pattern_type is PatternType.PREFIXED else ""
    host = "" if rule.host == ANY_HOST else f" host={rule.host}"
    return (
        f"{rule.permission.value.lower()} {rule.principal} {rule.operation.value} "
        f"{pattern.resource_type.value}:{pattern.name}{star}{host}"
    )
