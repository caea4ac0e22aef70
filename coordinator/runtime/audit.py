"""What is told to the audit log: refusals, failed authentications, changes by administrators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from model.access.acls import Operation, ResourceType
from model.caller import Caller

State: TypeAlias = Mapping[str, object]
"""What something is, for people: texts, numbers, lists and mappings of these; nothing secret."""


@dataclass(frozen=True, slots=True)
class Change:
    """What was changed, by the right that it took; ``None`` before or after for what is not there.

    ``kind`` is the name of the command.
    """

    kind: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str
    before: State | None
    after: State | None


class Audit(Protocol):
    """Takes what happened. Must not block, and must not keep what a client may make large."""

    def refused(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        """A caller was denied an operation on a resource."""

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        """A client failed to authenticate; ``reason`` has nothing that the client sent."""

    def changed(self, caller: Caller, change: Change) -> None:
        """An administrator changed something, and has the answer."""


class NoAudit:
    """Notes nothing."""

    def refused(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str
    ) -> None: ...

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None: ...

    def changed(self, caller: Caller, change: Change) -> None: ...


NO_AUDIT: Final = NoAudit()
