"""Faults that were mended, put back one at a time, and the seeds that find them.

Each undoes what its mend did and nothing else; those of the SDK and its doors are in
``sessions/put_back.py``. ``python -m tests.sim.kept`` tries the seeds, and looks for others where
they find nothing any more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.core.offsets.deleted_topics import DeletedTopics
from coordinator.runtime.members import missed_answers
from coordinator.runtime.members.member_watches import Watches
from gateway.api import RequestContext
from gateway.connection.connection import Connection
from gateway.heartbeats import heartbeats
from gateway.heartbeats.heartbeats import Heartbeats
from gateway.heartbeats.parking import Parked
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import UnknownMemberId
from tests.sim.broken.put_back import PutBack, make_table
from tests.sim.sessions.put_back import SESSIONS
from translator import downgrade, translated_join, upgrade

SaidAgain = Callable[[ConsumerGroupHeartbeat, ConsumerGroupHeartbeat], ConsumerGroupHeartbeat]
"""(what the client said, what the server asks) -> what is submitted at the end of a park."""


def news_to_a_dead_connection(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat stays parked though its member is heard by another connection."""
    patch.setattr(Watches, "hear", lambda self, command: None)
    # Nor is what two connections know of one member kept apart.
    begin = Heartbeats.__init__

    def begin_without(self: Heartbeats, *arguments: Any) -> None:
        begin(self, *arguments)
        self._connections = _NoConnections()

    patch.setattr(Heartbeats, "__init__", begin_without)


class _NoConnections(dict[Any, Any]):
    """Keeps nothing, and misses nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __delitem__(self, key: Any) -> None:
        pass


def ownership_said_again(patch: pytest.MonkeyPatch) -> None:
    """At the end of its park a heartbeat says again what its client owned when it sent it."""

    def say(said: ConsumerGroupHeartbeat, asked: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeat:
        return dataclasses.replace(asked, owned=said.owned)

    _say_again(patch, say)


def subscription_said_again(patch: pytest.MonkeyPatch) -> None:
    """At the end of its park a heartbeat says again what its client subscribed to then."""

    def say(said: ConsumerGroupHeartbeat, asked: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeat:
        return dataclasses.replace(
            asked,
            subscribed_topic_names=said.subscribed_topic_names,
            subscribed_topic_regex=said.subscribed_topic_regex,
            by_server=False,
        )

    _say_again(patch, say)


def _say_again(patch: pytest.MonkeyPatch, say: SaidAgain) -> None:
    """Also of a client that speaks by another connection since; news it is not told there."""
    patch.setattr(Parked, "supersede", lambda self: None)
    make, ask = heartbeats.make_asked_again, Heartbeats.ask_again
    said: dict[int, tuple[ConsumerGroupHeartbeat, ConsumerGroupHeartbeat]] = {}

    def note(command: ConsumerGroupHeartbeat, answer: Any) -> ConsumerGroupHeartbeat:
        asked = make(command, answer)
        # What is asked is kept, so that nothing else has its id.
        said[id(asked)] = command, asked
        return asked

    def ask_again(self: Heartbeats, context: RequestContext, asked: ConsumerGroupHeartbeat) -> None:
        ask(self, context, say(*said[id(asked)]))

    patch.setattr(heartbeats, "make_asked_again", note)
    patch.setattr(Heartbeats, "ask_again", ask_again)


def commit_answered_too_early(patch: pytest.MonkeyPatch) -> None:
    """A kept commit is answered past what this turn of its connection has to say before."""

    def hasty(self: Connection) -> None:
        queue = self.unanswered
        while queue and queue[0].answered:
            context = queue.popleft()
            if isinstance(context, RequestContext):
                self._write_answer(context)
            elif self.transport is not None:
                self.transport.write(context.frame)
        if self._is_held:
            self._ask_for_a_turn()

    patch.setattr(Connection, "send_answered", hasty)


def offsets_of_a_deleted_topic(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a topic that was deleted are shown of the next until they are tombstoned."""
    patch.setattr(DeletedTopics, "has", lambda self, *stored: False)


def downgrade_looks_settled(patch: pytest.MonkeyPatch) -> None:
    """The record of a downgrade names a leader, so that a group at rest is loaded from it."""
    replace = dataclasses.replace

    def keep_leader(value: Any, **changes: Any) -> Any:
        return value if changes == {"leader": None} else replace(value, **changes)

    patch.setattr(downgrade, "replace", keep_leader)


def downgrade_gives_twice(patch: pytest.MonkeyPatch) -> None:
    """What a replaced static member holds is given to others too."""
    compute = downgrade._compute_free_slots
    patch.setattr(
        downgrade, "_compute_free_slots", lambda group, gone, _: compute(group, gone, None)
    )


def upgrade_without_an_epoch(patch: pytest.MonkeyPatch) -> None:
    """A group that has to rebalance is upgraded as one whose members know what they have."""
    patch.setattr(upgrade, "ClassicGroupState", SimpleNamespace(PREPARING_REBALANCE=None))


def join_lost_at_a_downgrade(patch: pytest.MonkeyPatch) -> None:
    """A JoinGroup whose group was downgraded between its halves finds no member."""

    def refuse(*_: Any, **__: Any) -> None:
        raise UnknownMemberId("The group is no consumer group.")

    patch.setattr(translated_join, "handle_join_of_downgraded_member", refuse)


def unknown_partitions_revoked(patch: pytest.MonkeyPatch) -> None:
    """A member is to give up what it was given by an answer that it missed, and is not told so."""
    patch.setattr(missed_answers, "TOLD_AGAIN_MAX", 0)


_ROWS = (
    PutBack(ownership_said_again, frozenset({"S2"}), None, "wire"),
    PutBack(news_to_a_dead_connection, frozenset({"L12", "S30"}), 64, "wire"),
    PutBack(subscription_said_again, frozenset({"S28"}), 104, "wire"),
    PutBack(commit_answered_too_early, frozenset({"L2"}), 2, "wire"),
    PutBack(offsets_of_a_deleted_topic, frozenset({"S19"}), 4, "wire"),
    PutBack(downgrade_looks_settled, frozenset({"L12", "S2"}), 22, "wire"),
    PutBack(downgrade_gives_twice, frozenset({"S2", "S21"}), 11, "wire"),
    PutBack(upgrade_without_an_epoch, frozenset({"L12"}), 1395, "wire"),
    PutBack(join_lost_at_a_downgrade, frozenset({"S30"}), 114, "wire"),
    PutBack(unknown_partitions_revoked, frozenset({"S30"}), None, "wire"),
)
PUT_BACK = make_table(*_ROWS, *SESSIONS)
"""Of all kinds of worlds."""
