"""Resets of offsets in scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model.commands.offsets import TopicOffsets
from model.commands.resets import ResetOffsets
from model.group_resets import GroupReset
from model.ids import GroupId
from model.log.side_records import GroupResetKey, SideRecord
from model.responses.resets import OffsetsReset, ResetProgress
from tests.support.virtual.server import CALLER


def make_reset(
    words: Sequence[str], said: Mapping[str, str], offsets: tuple[TopicOffsets, ...]
) -> ResetOffsets:
    """``reset g foo:0=5 revision=consumer-2-1 creates validate-only``."""
    return ResetOffsets(
        CALLER,
        GroupId(words[0]),
        offsets,
        revision=said.get("revision"),
        creates="creates" in words,
        validate_only="validate-only" in words,
    )


def format_reset_answer(answer: OffsetsReset | ResetProgress) -> list[str]:
    """One line for an answer."""
    if isinstance(answer, OffsetsReset):
        if answer.is_live:
            return [f"{answer.revision}: reset begins with epoch {answer.group_epoch}"]
        return [f"{answer.revision}: reset"]
    if not answer.group_epoch:
        return ["no reset"]
    waits = ", ".join(member_id for member_id, _, _ in answer.waits_for)
    state = "set" if answer.is_set else f"waits for {waits or 'nobody'}"
    return [f"reset of epoch {answer.group_epoch}: {state}"]


def format_reset(record: SideRecord) -> str:
    """One line for a side record."""
    assert isinstance(record.key, GroupResetKey)
    if record.value is None:
        return f"forget reset of {record.key.group_id}"
    assert isinstance(record.value, GroupReset)
    offsets = " ".join(
        f"{topic.name}:{row[0]}={row[1]}" for topic in record.value.topics for row in topic.rows
    )
    state = f"set at {record.value.set_at_ms}ms" if record.value.set_at_ms else "begun"
    return (
        f"reset of {record.key.group_id} with epoch {record.value.group_epoch} {state}: {offsets}"
    )
