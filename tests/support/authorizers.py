"""An authorizer with configurable denials, which records the questions it was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from model.access.acls import Operation, ResourceType
from model.caller import Caller

Right = tuple[Operation, ResourceType, str]
"""An operation, and the type and name of the resource."""


class Question(NamedTuple):
    """One call of ``authorize``."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str


class Rights:
    """Allows everything but the ``denied`` rights and the questions for which ``is_denied`` holds.

    Both can be changed while the server runs.
    """

    def __init__(
        self, *denied: Right, is_denied: Callable[[Question], bool] = lambda asked: False
    ) -> None:
        self.denied = set(denied)
        self.is_denied = is_denied
        self.asked: list[Question] = []
        self._version = 0
        self._decides_by = self._compute_denials()

    @property
    def version(self) -> int:
        """Rises with each change of what is denied."""
        if self._decides_by != self._compute_denials():
            self._decides_by = self._compute_denials()
            self._version += 1
        return self._version

    def _compute_denials(self) -> tuple[frozenset[Right], Callable[[Question], bool]]:
        return frozenset(self.denied), self.is_denied

    def authorize(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        asked = Question(
            caller.principal, caller.client_host, operation, resource_type, resource_name
        )
        self.asked.append(asked)
        return asked[2:] not in self.denied and not self.is_denied(asked)

    may_see = authorize

    def may_see_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return self.may_see(caller, operation, resource_type, "*")
