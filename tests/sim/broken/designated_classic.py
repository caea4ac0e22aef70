"""Cores that are broken on purpose where classic members and conversions are at stake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from coordinator.core.classic import classic_join, classic_sync
from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.offsets import offset_commit
from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.classic.classic_states import ClassicEvent
from coordinator.runtime.commit.entries import Entry
from coordinator.runtime.commit.writer import Writer
from model.commands.classic import ClassicDeadline
from model.log.records import ConsumerGroupMemberMetadataKey, GroupMetadataKey
from tests.sim import scenario, world
from tests.sim.broken.broken import Patch
from translator import downgrade, translated_join, upgrade, upgrade_records
from translator.upgrade_holdings import Holding


def mostly_classic(patch: pytest.MonkeyPatch) -> None:
    """No fault, but more of the members are classic: what is broken there is found sooner."""
    shares = {"alpha": (0.5, 1.0), "beta": (0.5, 0.8, 1.0)}
    patch.setattr(scenario, "CLASSIC_SHARES", shares)
    patch.setattr(world, "CLASSIC_SIZES", (4, 100))


def two_types(patch: pytest.MonkeyPatch) -> None:
    """The classic group stays in the log beside what it became."""
    compute = upgrade.compute_upgrade_records

    def careless(*arguments: Any) -> Any:
        return (yield from compute(*arguments))[1:]

    patch.setattr(upgrade, "compute_upgrade_records", careless)


def assignment_forgotten(patch: pytest.MonkeyPatch) -> None:
    """An upgraded group begins with nothing assigned."""

    def careless(group: ClassicGroup, *arguments: Any) -> Any:
        yield
        return dict.fromkeys(group.members, Holding())

    patch.setattr(upgrade_records, "compute_holdings", careless)


def conversion_in_parts(patch: pytest.MonkeyPatch) -> None:
    """The classic group ends in one write, and the consumer group begins in the next."""
    append = Writer.append

    def hasty(self: Writer, entry: Entry) -> None:
        keys = [record.key for record in entry.records[:2]]
        match keys:
            case [GroupMetadataKey(), ConsumerGroupMemberMetadataKey()]:
                append(self, Entry(entry.partition, entry.records[:1], (), None, None))
                self.write_early()
                entry = entry._replace(records=entry.records[1:])
            case _:
                pass
        append(self, entry)

    patch.setattr(Writer, "append", hasty)


def downgrade_at_any_policy(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether a group may become a classic one."""
    patch.setattr(downgrade, "allows_downgrade", lambda policy: True)


def generation_before_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """A classic member of a consumer group is told another generation than its epoch."""
    answer = translated_join.compute_join_answer

    def careless(metadata: Any, response: Any) -> Any:
        told = answer(metadata, response)
        return replace(told, generation=told.generation - 1)

    patch.setattr(translated_join, "compute_join_answer", careless)


def anybody_assigns(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks for its assignment is taken for the leader."""
    patch.setattr(classic_sync, "_event", lambda group, command: ClassicEvent.LEADER_SYNC)


def generations_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A member of an older generation is heard."""
    patch.setattr(classic_sync, "check_generation", lambda group, generation: None)


def instance_stays_beside_its_successor(patch: pytest.MonkeyPatch) -> None:
    """An instance that is back as another member is added to the group."""

    def careless(draft: Any, settings: Any, command: Any, instance_id: Any) -> Any:
        return classic_join._add(draft, settings, command, command.new_member_id)

    patch.setattr(classic_join, "_replace", careless)


def room_for_everybody(patch: pytest.MonkeyPatch) -> None:
    """Nobody counts the members."""
    patch.setattr(classic_join, "_has_room", lambda draft, settings, member_id: True)


def older_generations_commit(patch: pytest.MonkeyPatch) -> None:
    """A commit in a classic group is taken from anybody."""
    patch.setattr(offset_commit, "check_classic_commit", lambda *arguments, **options: None)


def _deadlines(change_ms: Callable[[ClassicDeadline, int], int]) -> Patch:
    def change(patch: pytest.MonkeyPatch) -> None:
        arm = ClassicDraft.arm

        def arm_otherwise(
            self: ClassicDraft, deadline: ClassicDeadline, timeout_ms: int, *who: Any
        ) -> None:
            arm(self, deadline, change_ms(deadline, timeout_ms), *who)

        patch.setattr(ClassicDraft, "arm", arm_otherwise)

    return change


def joins_without_end(patch: pytest.MonkeyPatch) -> None:
    """A group waits much too long for those who do not join."""
    _deadlines(lambda deadline, ms: 9 * ms if deadline is ClassicDeadline.JOIN else ms)(patch)


def syncs_without_end(patch: pytest.MonkeyPatch) -> None:
    """A group waits much too long for a leader that does not assign, and that seems alive."""
    _deadlines(lambda deadline, ms: ms if deadline is ClassicDeadline.JOIN else 9 * ms)(patch)


def classic_sessions_too_short(patch: pytest.MonkeyPatch) -> None:
    """A classic member is removed too early."""
    _deadlines(lambda deadline, ms: ms // 3 if deadline is ClassicDeadline.SESSION else ms)(patch)


CLASSIC: Final[tuple[tuple[str, Patch], ...]] = (
    ("S2", assignment_forgotten),
    ("S10", older_generations_commit),
    ("S21", two_types),
    ("S21", assignment_forgotten),
    ("S21", conversion_in_parts),
    ("S21", downgrade_at_any_policy),
    ("S22", generation_before_the_epoch),
    ("S23", anybody_assigns),
    ("S23", generations_unchecked),
    ("S24", instance_stays_beside_its_successor),
    ("S25", room_for_everybody),
    ("L3", classic_sessions_too_short),
    ("L6", joins_without_end),
    ("L6", syncs_without_end),
)
"""The invariant, and the core that breaks it."""
