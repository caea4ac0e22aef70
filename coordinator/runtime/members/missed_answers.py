"""Members that may have missed a response: they reconnected and do not send their owned partitions.

The lost response may have assigned partitions that the member must revoke by now. If it is sent
only the remaining ones, the client has nothing to acknowledge: its rebalance timeout expires, and
it is removed though it did nothing wrong. So the coordinator first sends it all that it has, and
asks for the revocation with its next heartbeat, which comes from a client that knows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from coordinator.core.deadlines.member_liveness import MemberLiveness
from model.commands.consumer import ConsumerGroupHeartbeat

TOLD_AGAIN_MAX: Final = 3
"""The limit in a row for a client that reconnects before every heartbeat."""


def note_missed_answer(
    command: ConsumerGroupHeartbeat, entry: MemberLiveness | None
) -> ConsumerGroupHeartbeat:
    """The heartbeat, with ``keeps_assigned`` set if the client may have missed a response."""
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
