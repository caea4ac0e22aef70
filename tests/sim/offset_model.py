"""What a fetch may say of each offset, given what was asked for and what was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.sim.violations import check

OffsetPlace = tuple[str, str, int]
"""Group, topic name, partition."""

NO_OFFSET = -1


@dataclass
class _Commits:
    """Commits of one place in the order in which the server took them.

    ``floor`` is the index of the last one that was acknowledged, -1 if there is none or the topic
    was deleted since.
    """

    offsets: list[int] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    floor: int = -1
    deletions: int = 0


class OffsetModel:
    """S11 for commits, and S20: -1 only where nothing that counts was acknowledged."""

    def __init__(self) -> None:
        self._places: dict[OffsetPlace, _Commits] = {}

    def _commits(self, place: OffsetPlace) -> _Commits:
        return self._places.setdefault(place, _Commits())

    def note_taken(self, place: OffsetPlace, offset: int) -> tuple[int, int]:
        """The server is about to take a commit; what to give to ``note_answered``."""
        commits = self._commits(place)
        commits.offsets.append(offset)
        return len(commits.offsets) - 1, commits.deletions

    def note_answered(self, place: OffsetPlace, taken: tuple[int, int], is_accepted: bool) -> None:
        """The commit was answered."""
        index, deletions = taken
        commits = self._commits(place)
        if not is_accepted:
            commits.refused.add(index)
        elif commits.deletions == deletions:
            commits.floor = max(commits.floor, index)

    def note_topic_deleted(self, topic: str) -> None:
        """A deletion was taken: from now on its offsets may be gone."""
        for (_, name, _), commits in self._places.items():
            if name == topic:
                commits.floor = -1
                commits.deletions += 1

    def floor(self, place: OffsetPlace) -> int:
        """To be remembered when a fetch is taken."""
        return self._commits(place).floor

    def check(self, place: OffsetPlace, floor: int, offset: int, when: str) -> None:
        """Whether a fetch that was taken at this floor may say this offset."""
        commits = self._commits(place)
        floor = min(floor, commits.floor) if commits.floor < 0 else floor
        if offset == NO_OFFSET:
            check(
                floor < 0,
                "S11",
                f"{when}: {place} has no offset, but {commits.offsets[floor:]} were acknowledged",
            )
            return
        allowed = [
            value
            for index, value in enumerate(commits.offsets)
            if index >= floor and index not in commits.refused
        ]
        check(
            offset in allowed,
            "S11",
            f"{when}: {place} is {offset}, which none of {allowed} allows",
        )

    def places(self) -> list[OffsetPlace]:
        """All that anybody committed."""
        return list(self._places)
