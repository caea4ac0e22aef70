"""A cluster whose ACLs, settings of brokers and lost answers the test sets."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from gateway.codec.client_frames import ClientRequest
from model.access.acl_codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
)
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
from upstream.cluster.cluster import ClusterBroker, ClusterUnreachable

ACLS, CONFIGS = 29, 32


def acl(
    principal: str,
    operation: Operation,
    name: str = "g",
    kind: ResourceType = ResourceType.GROUP,
    *,
    is_prefix: bool = False,
    is_denied: bool = False,
) -> Acl:
    pattern_type = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    permission = Permission.DENY if is_denied else Permission.ALLOW
    rule = Rule(f"User:{principal}", ANY_HOST, operation, permission)
    return Acl(ResourcePattern(kind, name, pattern_type), rule)


class AccessCluster:
    """What the mirror asks of ``upstream.cluster.cluster.Cluster``."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self.acls = list(acls)
        self.rows: list[Any] = []
        """Further resources, as they are in the response."""
        self.configs: dict[str, str | None] = {}
        self.code = 0
        self.is_reachable = True
        self.asked: list[ClientRequest] = []
        self.brokers = {1: ClusterBroker(1, "127.0.0.1", 9_092)}

    async def ask(
        self, request: ClientRequest, *, node_id: int | None = None, timeout_ms: int = 30_000
    ) -> Any:
        self.asked.append(request)
        if not self.is_reachable:
            raise ClusterUnreachable("no broker answers")
        if request.key == CONFIGS:
            return self._describe_configs(request)
        assert request.key == ACLS
        rows = [] if self.code else [*map(_make_resource, self.acls), *self.rows]
        return SimpleNamespace(error_code=self.code, error_message=None, resources=tuple(rows))

    def _describe_configs(self, request: ClientRequest) -> Any:
        [resource] = request.fields["resources"]
        rows = tuple(
            SimpleNamespace(name=name, value=value, is_sensitive=value is None)
            for name, value in self.configs.items()
            if name in resource["configuration_keys"]
        )
        return SimpleNamespace(results=(SimpleNamespace(error_code=0, configs=rows),))


def make_resource(kind: int, name: str, pattern_type: int, *rules: tuple[Any, ...]) -> Any:
    """A row of the response by its numbers; a rule is (principal, host, operation, permission)."""
    names = ("principal", "host", "operation", "permission_type")
    acls = tuple(SimpleNamespace(**dict(zip(names, rule, strict=True))) for rule in rules)
    return SimpleNamespace(
        resource_type=kind, resource_name=name, pattern_type=pattern_type, acls=acls
    )


def _make_resource(each: Acl) -> Any:
    rule = each.rule
    numbers = (OPERATION_CODES[rule.operation], PERMISSION_CODES[rule.permission])
    return make_resource(
        RESOURCE_TYPE_CODES[each.pattern.resource_type],
        each.pattern.name,
        PATTERN_TYPE_CODES[each.pattern.pattern_type],
        (rule.principal, rule.host, *numbers),
    )
