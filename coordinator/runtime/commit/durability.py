"""Tracks what is not durable yet, by group: a read waits for the generation that covers it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from model.ids import GroupId


class Durability:
    """For each group, the writer's generation that covers its last change.

    Commits are tracked apart from membership, so that heartbeats do not wait for others' commits.
    """

    __slots__ = ("_changed", "_committed", "groups", "offsets")

    def __init__(self) -> None:
        self.groups: dict[GroupId, int] = {}
        self.offsets: dict[GroupId, int] = {}
        # Dictionaries used as ordered sets: the order of a set of strings differs between
        # processes.
        self._changed: dict[int, dict[GroupId, None]] = {}
        self._committed: dict[int, dict[GroupId, None]] = {}

    def note_group(self, group_id: GroupId, generation: int) -> None:
        """Note a change of the group's members, epochs or target."""
        self.groups[group_id] = generation
        changed = self._changed.get(generation)
        if changed is None:
            changed = self._changed[generation] = {}
        changed[group_id] = None

    def note_offsets(self, group_id: GroupId, generation: int) -> None:
        """Note a change of the group's offsets."""
        self.offsets[group_id] = generation
        committed = self._committed.get(generation)
        if committed is None:
            committed = self._committed[generation] = {}
        committed[group_id] = None

    def generation_of_groups(self, group_ids: Iterable[GroupId]) -> int:
        """The last generation that changed any of these groups; 0 if everything is durable."""
        groups = self.groups
        if not groups:
            return 0
        return max((groups.get(group_id, 0) for group_id in group_ids), default=0)

    def generation_of_offsets(self, group_id: GroupId) -> int:
        """The same for everything that a fetch of the group's offsets shows."""
        return max(self.offsets.get(group_id, 0), self.groups.get(group_id, 0))

    def generation_of_all(self) -> int:
        """The same for a list of all groups."""
        return max(max(self.groups.values(), default=0), max(self.offsets.values(), default=0))

    def settle(self, generation: int) -> Collection[GroupId]:
        """Note a durable generation; returns the groups it changed, in order of change."""
        _forget(self.offsets, self._committed.pop(generation, {}), generation)
        changed = self._changed.pop(generation, {})
        _forget(self.groups, changed, generation)
        return changed


def _forget(dirty: dict[GroupId, int], groups: Iterable[GroupId], generation: int) -> None:
    for group_id in groups:
        if dirty.get(group_id) == generation:
            del dirty[group_id]
