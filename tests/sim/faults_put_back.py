"""Faults that were mended, put back one at a time, and the seeds that find them.

Each undoes what its mend did and nothing else. ``python -m tests.sim --broken NAME --seeds 2000``
looks for the first seed that finds it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.core import classic_translator_join, downgrade, upgrade
from coordinator.core.deleted_topics import DeletedTopics
from coordinator.runtime.watches import Watches
from gateway import heartbeats
from gateway.api import RequestContext
from gateway.connection import Connection
from gateway.heartbeats import Heartbeats
from gateway.parking import Parked
from model.commands import ConsumerGroupHeartbeat
from model.errors import UnknownMemberId

Patch = Callable[[pytest.MonkeyPatch], None]
SaidAgain = Callable[[ConsumerGroupHeartbeat, ConsumerGroupHeartbeat], ConsumerGroupHeartbeat]
"""(what the client said, what the server asks) -> what is submitted at the end of a park."""


def news_to_a_dead_connection(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat stays parked though its member is heard by another connection."""
    patch.setattr(Watches, "hear", lambda self, command: None)
    # Nor is what two connections know of one member kept apart.
    begin = Heartbeats.__init__

    def begin_without(self: Heartbeats, *arguments: Any) -> None:
        begin(self, *arguments)
        self._speakers = _NoSpeakers()

    patch.setattr(Heartbeats, "__init__", begin_without)


class _NoSpeakers(dict[Any, Any]):
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
        queue = self._queue
        while queue and queue[0].answered:
            context = queue.popleft()
            if isinstance(context, RequestContext):
                self._write_answer(context)
            elif self._transport is not None:
                self._transport.write(context.frame)

    patch.setattr(Connection, "send_answered", hasty)


def offsets_of_a_deleted_topic(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a topic that was deleted are shown of the next until they are tombstoned."""
    patch.setattr(DeletedTopics, "has", lambda self, topic, value: False)


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

    patch.setattr(classic_translator_join, "handle_join_of_downgraded_member", refuse)


@dataclass(frozen=True)
class PutBack:
    """``names``: the invariants of which one must be what finds it; ``seed`` is one that does,
    ``None`` where the last one that was known does no more and another is to be looked for."""

    patch: Patch
    names: frozenset[str]
    seed: int | None
    kind: str = "wire"


def _table(*rows: PutBack) -> Mapping[str, PutBack]:
    return {row.patch.__name__: row for row in rows}


PUT_BACK: Mapping[str, PutBack] = _table(
    PutBack(ownership_said_again, frozenset({"S2"}), 592),
    PutBack(news_to_a_dead_connection, frozenset({"L12", "S30"}), 88),
    PutBack(subscription_said_again, frozenset({"S28"}), 133),
    PutBack(commit_answered_too_early, frozenset({"L2"}), 2),
    PutBack(offsets_of_a_deleted_topic, frozenset({"S19"}), None),
    PutBack(downgrade_looks_settled, frozenset({"L12", "S2"}), 22),
    PutBack(downgrade_gives_twice, frozenset({"S2", "S21"}), 19),
    PutBack(upgrade_without_an_epoch, frozenset({"L12"}), 1395),
    PutBack(join_lost_at_a_downgrade, frozenset({"S30"}), 158),
)
