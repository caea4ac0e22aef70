"""A classic member of one side, as far as it knows; what it says, and what its leader gives."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from model.errors import ErrorCode
from muster.assignors.embedded.consumer_protocol import (
    Assignment,
    decode_assignment,
    decode_subscribed_topics,
    encode_assignment,
    encode_subscription,
    make_subscription,
)
from muster.assignors.embedded.fields import MalformedProtocolError, group_partitions
from tests.differential.seen import STABLE, ClassicRow, ClassicView, Places
from tests.differential.steps import Epoch

CONSUMER: Final = "consumer"
JOINING, SYNCING = "join", "sync"
GIVEN: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What a coordinator adds to a client id."""
_FIRST_WITH_RACK: Final = 3
_GONE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


@dataclass
class Waiting:
    """A request that is not answered yet."""

    kind: str
    task: asyncio.Task[Any]
    may_wait: bool = True
    """Whether there is nothing wrong with it that is answered at once."""


@dataclass
class ClassicState:
    """``life`` counts the processes that were this member.

    Other than the classic members of the simulation it speaks to Kafka as well, and remembers what
    is wrong by now.
    """

    name: str
    life: int = 0
    member_id: str = ""
    instance: str | None = None
    generation: int = -1
    previous_generation: int = -1
    protocol_type: str = CONSUMER
    protocols: tuple[str, ...] = ()
    protocol_name: str | None = None
    topics: tuple[str, ...] = ()
    embedded: int = 3
    user_data: bytes | None = None
    marks: int = 0
    owned: Places = frozenset()
    leader: str = ""
    roster: tuple[tuple[str, bytes], ...] = ()
    """The members and what they said, as the leader was told."""
    is_in: bool = False
    is_pending: bool = False
    """It was given an id, and has not come back."""
    is_synced: bool = False
    is_refused: bool = False
    """It is what it was, and what it said last cannot be."""
    has_short_session: bool = False
    """It joined to be silent then."""
    waiting: Waiting | None = None
    former: ClassicState | None = field(default=None, repr=False)

    @property
    def client_id(self) -> str:
        return f"{self.name}.{self.life}"

    @property
    def is_leader(self) -> bool:
        return bool(self.leader) and self.leader == self.member_id

    @property
    def is_back(self) -> bool:
        """Whether it joins as an instance that another process may have been before."""
        return not self.member_id and self.instance is not None and self.protocol_type == CONSUMER

    def reads_otherwise(self, view: ClassicView) -> bool:
        """Whether the instance has other topics than it had in a group that is at rest.

        Kafka lets the generation go on, in which nobody reads what is new.
        """
        if view.state != STABLE:
            return False
        now = set(decode_subscribed_topics(self.say(view.protocol)))
        return any(
            row.instance == self.instance and set(decode_subscribed_topics(row.metadata)) != now
            for row in view.members
        )

    def begin_anew(self) -> None:
        """Another process, which knows nothing."""
        self.former = replace(self, waiting=None)
        self.life += 1
        self.member_id, self.leader, self.owned = "", "", frozenset()
        self.generation = self.previous_generation = -1
        self.is_in = self.is_pending = self.is_synced = False

    def forget(self, code: int) -> None:
        """An error that says that this is no member. An id that was given alone may be kept."""
        if code in _GONE and not self.is_pending:
            self.is_in = self.is_pending = self.is_synced = False
            self.member_id, self.leader, self.owned = "", "", frozenset()

    def note_join(self, answer: Any) -> None:
        self.is_refused = False
        code = int(answer.error_code)
        self.has_short_session &= not code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self.is_pending = answer.member_id, True
        elif code in (*_GONE, ErrorCode.GROUP_MAX_SIZE_REACHED):
            self.is_pending = False
            self.forget(ErrorCode.UNKNOWN_MEMBER_ID)
            # The process that was this instance before may still be a member, which nobody is.
            self.is_refused = self.instance is not None
        elif code:
            self.is_refused = True
        else:
            self.previous_generation, self.generation = self.generation, answer.generation_id
            self.member_id, self.leader = answer.member_id, answer.leader
            self.protocol_name = answer.protocol_name
            self.is_in, self.is_pending, self.is_synced = True, False, False

    def note_sync(self, answer: Any) -> None:
        code = int(answer.error_code)
        if code:
            self.forget(code)
            return
        self.is_synced = True
        self.owned = read_assignment(answer.assignment) or frozenset()

    def say(self, name: str) -> bytes:
        """The metadata of a protocol: a mark in it makes it another than before."""
        if self.protocol_type != CONSUMER:
            return b"opaque %d" % self.marks
        owned = self.owned if name.startswith("cooperative") else ()
        generation = self.generation if owned else -1
        mark = f"mark{self.marks}"
        topics = self.topics if self.embedded >= _FIRST_WITH_RACK else (*self.topics, mark)
        subscription = make_subscription(topics, self.user_data, owned, generation, mark)
        return encode_subscription(subscription, self.embedded)


def read_assignment(data: bytes) -> Places | None:
    """Its partitions, with full names of topics; ``None`` where it is none."""
    if not data:
        return frozenset()
    try:
        found = decode_assignment(data)
    except MalformedProtocolError:
        return None
    return frozenset(
        (each.topic, number) for each in found.partitions for number in each.partitions
    )


def share_out(said: Mapping[str, bytes], partitions: Mapping[str, int]) -> dict[str, bytes]:
    """What a leader gives members by what they said: a topic's partitions to its members in turn.

    ``said`` is in an order that both sides have; ``partitions`` has the topics that are there.
    """
    topics = {member: decode_subscribed_topics(metadata) for member, metadata in said.items()}
    given: dict[str, list[tuple[str, int]]] = {member: [] for member in said}
    for topic, count in partitions.items():
        takers = [member for member in said if topic in topics[member]]
        for number in range(count if takers else 0):
            given[takers[number % len(takers)]].append((topic, number))
    return {
        member: encode_assignment(Assignment(group_partitions(places)), 1)
        for member, places in given.items()
    }


def choose_generation(state: ClassicState, epoch: Epoch) -> int:
    """The generation that a member says."""
    match epoch:
        case Epoch.CURRENT:
            return state.generation
        case Epoch.PREVIOUS:
            return state.previous_generation
        case Epoch.AHEAD:
            return state.generation + 1
        case Epoch.BEHIND:
            return max(0, state.generation - 2)
        case Epoch.NONE:
            return -1
        case Epoch.ODD:
            return -3


def find_row(state: ClassicState, view: ClassicView) -> ClassicRow | None:
    """The member in a group: by its id, or by its process where that was not told one yet."""
    for row in view.members:
        if row.member_id == state.member_id if state.member_id else is_new_row(state, row):
            return row
    return None


def is_new_row(state: ClassicState, row: ClassicRow) -> bool:
    if state.instance is None:
        return GIVEN.sub("", row.member_id) == state.client_id
    was = "" if state.former is None else state.former.member_id
    return row.instance == state.instance and row.member_id != was
