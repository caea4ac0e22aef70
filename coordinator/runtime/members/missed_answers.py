"""Members that may have missed an answer, for their connection broke, and do not say what they own.

The answer may have given partitions to the member that it is to give up by now. Told only what
remains, the client has nothing to acknowledge: its rebalance timeout passes, and it is removed
though it did all that it had to. So it is told what it has first, and is to give some of it up with
its next heartbeat, which is sure to come from a client that knows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from coordinator.core.deadlines.member_liveness import MemberLiveness
from model.commands import ConsumerGroupHeartbeat

TOLD_AGAIN_MAX: Final = 3
"""A client that comes by another connection each time is waited for so often in a row."""


def note_missed_answer(
    command: ConsumerGroupHeartbeat, entry: MemberLiveness | None
) -> ConsumerGroupHeartbeat:
    """The heartbeat of a client, with ``keeps_assigned`` where it may have missed an answer."""
    if entry is None:
        return command
    if not command.wants_assignment or command.owned is not None or command.member_epoch <= 0:
        entry.told_again = 0
        return command
    if entry.told_again == TOLD_AGAIN_MAX:
        entry.told_again = 0
        return command
    entry.told_again += 1
    return replace(command, keeps_assigned=True)
