"""Commands of the configs of a group."""

from __future__ import annotations

from enum import Enum

from model.caller import Caller
from model.ids import GroupId
from model.value import value


class ConfigOperation(Enum):
    """How to change a config; the numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@value
class ConfigChange:
    """A change of one config. ``value`` is ignored for DELETE."""

    name: str
    operation: ConfigOperation
    value: str | None = None


@value
class AlterGroupConfigs:
    """Change configs of a group, all or none."""

    caller: Caller
    group_id: GroupId
    changes: tuple[ConfigChange, ...]
    validate_only: bool = False


@value
class DescribeGroupConfigs:
    """Describe the configs of a group: its own, and the values in force."""

    caller: Caller
    group_id: GroupId


@value
class ListGroupConfigs:
    """List the groups that have configs of their own."""

    caller: Caller
