"""The naive replay of share and streams groups: the last value of each of their keys."""

from __future__ import annotations

from typing import Any

from coordinator.core.state.foreign_groups import ForeignGroup, ShareGroup
from model.log import share_records as share
from model.log import streams_records as streams

GROUPS = (share.ShareGroupMetadataKey, streams.StreamsGroupMetadataKey)
TARGETS = (
    share.ShareGroupTargetAssignmentMetadataKey,
    streams.StreamsGroupTargetAssignmentMetadataKey,
)
MEMBERS = (share.ShareGroupMemberMetadataKey, streams.StreamsGroupMemberMetadataKey)
CURRENTS = (
    share.ShareGroupCurrentMemberAssignmentKey,
    streams.StreamsGroupCurrentMemberAssignmentKey,
)


class ShadowForeign:
    """The current values by group and kind of key; a group exists as long as it has any."""

    def __init__(self) -> None:
        self.groups: dict[str, Any] = {}
        self.targets: dict[str, Any] = {}
        self.topologies: dict[str, Any] = {}
        self.members: dict[str, dict[str, Any]] = {}
        self.currents: dict[str, dict[str, Any]] = {}

    def apply(self, key: Any, value: Any) -> None:
        """Apply one record; records of other group types are ignored."""
        if isinstance(key, GROUPS):
            self._set(self.groups, key.group_id, value)
            if value is None:
                for known in (self.targets, self.topologies, self.members, self.currents):
                    known.pop(key.group_id, None)
        elif isinstance(key, TARGETS):
            self._set(self.targets, key.group_id, value)
        elif isinstance(key, streams.StreamsGroupTopologyKey):
            self._set(self.topologies, key.group_id, value)
        elif isinstance(key, MEMBERS):
            self._set(self.members.setdefault(key.group_id, {}), key.member_id, value)
            if value is None:
                self.currents.get(key.group_id, {}).pop(key.member_id, None)
        elif isinstance(key, CURRENTS):
            self._set(self.currents.setdefault(key.group_id, {}), key.member_id, value)

    def _set(self, known: dict[str, Any], name: str, value: Any) -> None:
        if value is None:
            known.pop(name, None)
        else:
            known[name] = value

    def describe(self) -> dict[str, Any]:
        """The groups that have an epoch record: all that Kafka leaves between two batches."""
        return {
            group_id: {
                "epoch": value.epoch,
                "target": getattr(self.targets.get(group_id), "assignment_epoch", 0),
                "topology": getattr(self.topologies.get(group_id), "epoch", None),
                "validated": getattr(value, "validated_topology_epoch", None),
                "members": {
                    member_id: self._stands(group_id, member_id)
                    for member_id in {
                        *self.members.get(group_id, ()),
                        *self.currents.get(group_id, ()),
                    }
                },
            }
            for group_id, value in self.groups.items()
        }

    def _stands(self, group_id: str, member_id: str) -> tuple[Any, int]:
        current = self.currents.get(group_id, {}).get(member_id)
        return (None, 0) if current is None else (current.member_epoch, current.state)


def describe_foreign(group: ForeignGroup) -> dict[str, Any]:
    """A live group in the same form."""
    is_share = isinstance(group, ShareGroup)
    return {
        "epoch": group.group_epoch,
        "target": group.target_epoch,
        "topology": None if is_share else group.topology_epoch,
        "validated": None if is_share else group.validated_topology_epoch,
        "members": {
            member_id: (member.member_epoch, member.state)
            for member_id, member in group.members.items()
        },
    }
