"""Resets of the offsets of groups that are here, wherever their offsets are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from coordinator.runtime.api import Answer, Coordinator, Reply
from model.commands.offsets import OffsetCommit
from model.commands.resets import ResetOffsets
from model.errors import ErrorCode, ResetRefused
from model.ids import MemberId
from model.responses.offsets import OffsetCommitResponse
from model.responses.resets import OffsetsReset
from upstream.offsets.offsets import Offsets

_REFUSED: Final = (
    "their offsets are in the cluster, which cannot set them while members go on. Stop them first."
)

_LOST: Final = "what they were before a change is not known here. Name offsets, or a time."


def submit_reset(
    coordinator: Coordinator, offsets: Offsets, command: ResetOffsets, reply: Reply
) -> None:
    """Check the reset here; offsets in the cluster are then committed there, for nobody.

    The cluster cannot compare its offsets with those that the caller saw; they were fetched just
    before. It takes a commit of all partitions or of none.
    """
    if not offsets.are_in_cluster:
        coordinator.submit(command, reply)
        return
    if command.undoes is not None:
        # The log had them once, before they were in the cluster.
        reply(ResetRefused(f"The offsets of group {command.group_id} are in the cluster: {_LOST}"))
        return

    def on_checked(answer: Answer) -> None:
        if isinstance(answer, OffsetsReset) and answer.is_live:
            reply(ResetRefused(f"The group {command.group_id} has members: {_REFUSED}"))
        elif isinstance(answer, OffsetsReset) and not command.validate_only:
            offsets.commit(_make_commit(command), lambda done: reply(_compute_answer(answer, done)))
        else:
            reply(answer)

    # Such a group may have nothing here but its place.
    check = replace(command, before=None, creates=True, validate_only=True)
    coordinator.submit(check, on_checked)


def _make_commit(command: ResetOffsets) -> OffsetCommit:
    return OffsetCommit(command.caller, command.group_id, MemberId(""), None, command.topics)


def _compute_answer(checked: OffsetsReset, done: Answer) -> Answer:
    if not isinstance(done, OffsetCommitResponse):
        return done
    failed = [
        (topic.name, row)
        for topic in done.topics
        for row in topic.partitions
        if row.error is not ErrorCode.NONE
    ]
    if not failed:
        return checked
    name, row = failed[0]
    more = f" and {len(failed) - 1} others" if len(failed) > 1 else ""
    return ResetRefused(f"The cluster refuses {name}-{row.partition}{more}.", row.error)
