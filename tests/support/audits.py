"""An audit that keeps what it is told."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.runtime.audit import Change
from model.access.acls import Operation, ResourceType
from model.caller import Caller


class Refusal(NamedTuple):
    """One denied operation."""

    principal: str
    operation: Operation
    resource_type: ResourceType
    name: str


class KeptAudit:
    """Implements ``coordinator.runtime.audit.Audit``."""

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []
        self.failed: list[tuple[str, str, str, str]] = []
        self.changes: list[Change] = []
        self.callers: list[Caller] = []

    def refused(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        self.refusals.append(Refusal(caller.principal, operation, resource_type, name))
        self.callers.append(caller)

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        self.failed.append((host, listener, mechanism, reason))

    def changed(self, caller: Caller, change: Change) -> None:
        self.changes.append(change)
        self.callers.append(caller)
