"""Responses about the configs of a group."""

from __future__ import annotations

from model.ids import GroupId
from model.value import value


@value
class DescribedConfig:
    """A config of a group: the value in force, the group's own, and the server's."""

    name: str
    value: str
    own: str | None
    server: str


@value
class GroupConfigsResponse:
    group_id: GroupId
    configs: tuple[DescribedConfig, ...]


@value
class ListGroupConfigsResponse:
    group_ids: tuple[GroupId, ...]
