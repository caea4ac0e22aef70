"""Freezes of groups in scenarios."""

from __future__ import annotations

from collections.abc import Sequence

from model.commands.freezes import FreezeGroup, ResumeGroup
from model.group_freeze import GroupFreeze
from model.ids import GroupId
from model.log.side_records import GroupFreezeKey, SideRecord
from model.responses.freezes import GroupFrozen, GroupResumed
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import CALLER


def make_freeze(words: Sequence[str]) -> FreezeGroup:
    """``freeze g validate-only``."""
    return FreezeGroup(CALLER, GroupId(words[0]), "validate-only" in words)


def make_resume(words: Sequence[str]) -> ResumeGroup:
    """``resume g validate-only``."""
    return ResumeGroup(CALLER, GroupId(words[0]), "validate-only" in words)


def format_freeze_answer(answer: GroupFrozen | GroupResumed) -> list[str]:
    """What the group is frozen with, or what it is resumed with."""
    if isinstance(answer, GroupResumed):
        return [f"resumed with epoch {answer.group_epoch}"]
    lines = [f"frozen at epoch {answer.group_epoch}"]
    lines += (
        f"  {move.topic_name}:{move.partition} from {move.source or 'nobody'} "
        f"to {move.destination or 'nobody'}"
        for move in answer.moves
    )
    assert answer.moves_count >= len(answer.moves)
    if answer.without_target:
        lines.append(f"  without a target: {', '.join(answer.without_target)}")
    return lines


def format_freeze(record: SideRecord) -> str:
    """One line for a side record."""
    assert isinstance(record.key, GroupFreezeKey)
    if record.value is None:
        return f"{record.key.group_id} is not frozen"
    assert isinstance(record.value, GroupFreeze)
    since_ms = record.value.since_ms - START_WALL_MS
    return f"{record.key.group_id} is frozen since {since_ms}ms by {record.value.principal}"
