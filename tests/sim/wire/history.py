"""Commits and fetches of applications, and what each may be told of a topic that was made again."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from coordinator.runtime.api import Answer
from model.caller import INTERNAL
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic, DeleteTopic
from model.errors import ErrorCode
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from model.responses.topics import TopicResponse
from tests.sim.checkers.offset_model import NO_OFFSET
from tests.sim.checkers.violations import check
from tests.sim.wire.frames import COMMIT, FETCH, make_row, row_type
from tests.sim.wire.links import Link
from tests.support.shadow import Place
from tests.support.virtual.server import make_topic_id

if TYPE_CHECKING:
    from tests.sim.wire.member import Member
    from tests.sim.wire.world import WireWorld

SIMPLE = "simple"
CROWD_TOPIC = "crowd"
SIMPLE_PARTITION = 0
_COMMITS_BY_NAME = 9
_CLASSIC_COMMITS = 8
_FETCHES_BY_NAME = 9

OffsetPlace = tuple[str, str, int]


class History:
    """Every commit has an offset of its own, so that what is fetched says whose it is."""

    def __init__(self, world: WireWorld) -> None:
        self._world = world
        self._acknowledged: dict[OffsetPlace, set[int]] = defaultdict(set)
        self._dead: dict[OffsetPlace, set[int]] = defaultdict(set)
        """Acknowledged before the topic of that name was deleted, and another made."""

    # --------------------------------------------------------------------------------- commits

    def commit(self, member: Member, link: Link, place: Place) -> None:
        """A member commits what it has read of a partition."""
        version, fields = member.commit_fields()
        self._commit(link, member.group, version, str(self._world.topic_names[place[0]]), place[1],
                     fields)  # fmt: skip

    def commit_simple(self, link: Link) -> None:
        """A client that is no member commits, always the same but for the offset."""
        if self._world.partitions_of(("foo",)):
            fields = {"member_id": "", "generation_id_or_member_epoch": -1}
            self._commit(link, SIMPLE, _CLASSIC_COMMITS, "foo", SIMPLE_PARTITION, fields)

    def _commit(
        self, link: Link, group: str, version: int, name: str, number: int, fields: dict[str, Any]
    ) -> None:
        offset = self._world.next_offset()
        place = (group, name, number)

        def on_answer(answer: Any, _: int) -> None:
            (topic,) = answer.topics
            (row,) = topic.partitions
            if row.error_code == ErrorCode.NONE:
                self._acknowledged[place].add(offset)

        row = make_row(
            row_type(COMMIT, version, "topics", "partitions"),
            partition_index=number,
            committed_offset=offset,
            committed_metadata=None,
        )
        topic = make_row(row_type(COMMIT, version, "topics"), name=name, partitions=(row,))
        link.ask(COMMIT, version, on_answer, group_id=group, topics=(topic,), **fields)

    def fill_up(self, groups: int) -> None:
        """Others have offsets too, of a topic that stays."""
        world = self._world
        for number in range(groups):
            rows = make_offset_columns(
                (partition, world.next_offset(), -1, "")
                for partition in range(world.partitions_of((CROWD_TOPIC,)).get(CROWD_TOPIC, 0))
            )
            topics = (TopicOffsets(TopicName(CROWD_TOPIC), None, rows),)
            group = GroupId(f"crowd-{number}")
            world.deliver(None, OffsetCommit(INTERNAL, group, MemberId(""), None, topics), _ignore)

    # --------------------------------------------------------------------------------- fetches

    def fetch(self, member: Member, places: set[Place]) -> None:
        """A new owner asks where to begin, by the name of the topic."""
        link = member.data_connection()
        if link is None:
            return
        by_name: dict[str, list[int]] = {}
        for topic_id, number in sorted(places):
            name = str(self._world.topic_names[topic_id])
            if topic_id == self._world.topic_id(name):
                by_name.setdefault(name, []).append(number)
        if by_name:
            self.ask_offsets(link, member.group, by_name)

    def ask_offsets(self, link: Link, group: str, by_name: dict[str, list[int]]) -> None:
        """S19: nothing of a topic that was deleted is told of the one that has its name now."""
        dead = {
            (group, name, number): frozenset(self._dead.get((group, name, number), ()))
            for name, numbers in by_name.items()
            for number in numbers
        }
        topic_row = row_type(FETCH, _FETCHES_BY_NAME, "groups", "topics")
        asked = make_row(
            row_type(FETCH, _FETCHES_BY_NAME, "groups"),
            group_id=group,
            member_id=None,
            member_epoch=-1,
            topics=tuple(
                make_row(topic_row, name=name, partition_indexes=tuple(numbers))
                for name, numbers in by_name.items()
            ),
        )
        link.ask(
            FETCH,
            _FETCHES_BY_NAME,
            partial(self._fetched, dead),
            None,
            groups=(asked,),
            require_stable=self._world.random.random() < 0.5,
        )

    def _fetched(self, dead: dict[OffsetPlace, frozenset[int]], answer: Any, _: int) -> None:
        (group,) = answer.groups
        for topic in group.topics:
            for row in topic.partitions:
                place = (str(group.group_id), str(topic.name), row.partition_index)
                offset = row.committed_offset
                check(
                    offset == NO_OFFSET or offset not in dead[place],
                    "S19",
                    f"{place} is at {offset}, which was committed for an earlier topic of the name",
                )

    # ---------------------------------------------------------------------------------- topics

    def recreate(self, name: str, partitions: int, groups: tuple[str, ...]) -> None:
        """Delete a topic, make it again, and ask at once for the offsets of these groups."""
        world = self._world
        had = {
            place: set(offsets) for place, offsets in self._acknowledged.items() if place[1] == name
        }
        incarnation = world.next_incarnation(name)
        topic_id = make_topic_id(name, incarnation)

        def deleted(answer: Answer) -> None:
            if isinstance(answer, TopicResponse):
                create = CreateTopic(INTERNAL, TopicName(name), topic_id, partitions)
                world.deliver(None, create, created)
            else:
                world.faults.note("(topic not deleted)")

        def created(answer: Answer) -> None:
            if not isinstance(answer, TopicResponse):
                return
            world.faults.note("topic recreated")
            for place, offsets in had.items():
                self._dead[place] |= offsets
            for group in groups:
                link = Link(world, f"tool-{group}", lambda: None)
                if link.is_open:
                    self.ask_offsets(link, GroupId(group), {name: list(range(partitions))})

        world.name_topic(topic_id, name)
        world.deliver(None, DeleteTopic(INTERNAL, TopicName(name)), deleted)


def _ignore(_: Answer) -> None:
    """Nobody waits for it."""
