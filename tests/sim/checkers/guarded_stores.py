"""S40: a store for each partition of a group, guarded by fencing tokens.

Whoever is told that it has a partition writes to its store at once. The store takes a token that is
at least as high as the highest that it has seen, as docs/fencing.md says.
"""

from __future__ import annotations

from typing import Any

from coordinator.runtime.api import Answer, Reply
from model.commands.consumer import ConsumerGroupHeartbeat
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.sim.checkers.violations import check


class GuardedStores:
    """The stores, which outlive the server."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, bytes, int], tuple[int, str]] = {}

    def watch(self, command: Any, reply: Reply) -> Reply:
        """The reply to a command, heard before its client hears it."""
        if not isinstance(command, ConsumerGroupHeartbeat):
            return reply

        def hear(answer: Answer) -> None:
            if isinstance(answer, ConsumerGroupHeartbeatResponse):
                self._hear(command, answer)
            reply(answer)

        return hear

    def _hear(
        self, command: ConsumerGroupHeartbeat, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        given = zip(answer.assignment or (), answer.tokens, strict=True)
        for topic, tokens in given:
            for partition, token in zip(topic.partitions, tokens, strict=True):
                place = command.group_id, topic.topic_id, partition
                self._write(place, token, command)

    def _write(
        self, place: tuple[str, bytes, int], token: int, command: ConsumerGroupHeartbeat
    ) -> None:
        """Write as the owner, then as the owner before it: its incarnation still runs."""
        highest, before = self._written.get(place, (0, ""))
        who, is_new = command.member_id, command.member_epoch == 0
        check(token >= highest, "S40", lambda: f"{who} is refused at {place}: {token} < {highest}")
        passed = is_new or who != before
        check(
            token > highest or not passed,
            "S40",
            lambda: f"{before} can still write to {place}, which is {who}'s now, with {token}",
        )
        self._written[place] = token, who
