"""What is told to the audit log: refusals, failed authentications, changes by administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from model.acls import Operation, ResourceType
from model.caller import Caller


class Audit(Protocol):
    """Takes what happened. Must not block, and must not keep what a client may make large."""

    def refused(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        """A caller was denied an operation on a resource."""

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        """A client failed to authenticate; ``reason`` has nothing that the client sent."""

    def changed(
        self,
        caller: Caller,
        change: str,
        before: Mapping[str, object] | None,
        after: Mapping[str, object] | None,
    ) -> None:
        """An administrator changed something: what it was before, and what it is now."""


class NoAudit:
    """Notes nothing."""

    def refused(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str
    ) -> None: ...

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None: ...

    def changed(
        self,
        caller: Caller,
        change: str,
        before: Mapping[str, object] | None,
        after: Mapping[str, object] | None,
    ) -> None: ...


NO_AUDIT: Final = NoAudit()
