"""Groups that come from a cluster and go back: a crash anywhere leaves what can be gone on with.

After every command a restart finds the groups and places that were there, and from wherever a
group is, the takeover's next command is carried out.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.state.classic.classic_group import ClassicGroupState
from model.caller import INTERNAL
from model.commands.classic import ClassicHeartbeat, JoinGroup, JoinProtocol, SyncGroup
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupLeave
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets
from model.commands.places import AdoptedMember, AdoptGroup, GiveGroupUp, NotePlace, ReturnGroup
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, MemberId, TopicName
from model.log.commit_records import make_offset_columns
from model.places import Place
from model.responses.offsets import OffsetFetchResponse
from model.responses.response import Done
from model.topics import Topic
from tests.support.shadow import describe_shards
from tests.support.virtual.server import CALLER, VirtualServer, make_topic_id

GROUPS = tuple(map(GroupId, "gh"))
MEMBERS = tuple(map(MemberId, "ab"))
TOPICS = (Topic(TopicName("foo"), make_topic_id("foo"), 2),)
GENERATION = 5


def _adopt(group: GroupId, members: tuple[MemberId, ...], generation: int) -> AdoptGroup:
    adopted = tuple(
        AdoptedMember(member, None, "client", "/127.0.0.1", 60_000, 10_000, b"")
        for member in members
    )
    return AdoptGroup(INTERNAL, group, generation, "consumer", "range", None, adopted)


def _join(group: GroupId, member: MemberId) -> JoinGroup:
    protocols = (JoinProtocol("range", b""),)
    return JoinGroup(CALLER, group, member, MemberId("new"), 10_000, 60_000, "consumer", protocols)


def _commit(group: GroupId, partition: int) -> OffsetCommit:
    offsets = TopicOffsets(TopicName("foo"), None, make_offset_columns([(partition, 7, -1, "")]))
    return OffsetCommit(INTERNAL, group, MemberId(""), None, (offsets,))


_groups, _members = st.sampled_from(GROUPS), st.sampled_from(MEMBERS)
_commands: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda group, place, number: NotePlace(INTERNAL, group, place, number),
        _groups,
        st.sampled_from(Place),
        st.integers(0, 9),
    ),
    st.builds(
        _adopt, _groups, st.sampled_from([(), MEMBERS[:1], MEMBERS]), st.integers(0, GENERATION)
    ),
    st.builds(lambda group: ReturnGroup(INTERNAL, group), _groups),
    st.builds(lambda group: GiveGroupUp(INTERNAL, group), _groups),
    st.builds(_join, _groups, _members),
    st.builds(
        lambda group, member, n: SyncGroup(CALLER, group, member, n),
        _groups,
        _members,
        st.integers(GENERATION, GENERATION + 2),
    ),
    st.builds(_commit, _groups, st.integers(0, 1)),
    st.builds(lambda group: ConsumerGroupLeave(CALLER, group, MemberId("m"), -1), _groups),
    st.builds(lambda group: group, _groups),
)
"""A group alone stands for a member of the consumer protocol that joins it."""


class Machine:
    """A server that crashes, of which nothing that was answered is lost."""

    def __init__(self) -> None:
        self.server = VirtualServer()
        self.server.crash()
        self.server.start(TOPICS)

    def run(self, command: Any) -> None:
        if isinstance(command, str):
            command = self.server.join_command(command, "m", ["foo"])
        self.server.submit(command)
        self.server.settle()

    def describe(self) -> tuple[Any, ...]:
        shards = self.server.runtime.shards
        places = {group: place for shard in shards for group, place in shard.places.items()}
        offsets = {group for shard in shards for group in shard.offset_groups}
        return describe_shards(shards), places, offsets

    def crash(self) -> None:
        before = self.describe()
        self.server.crash()
        self.server.start(TOPICS)
        assert self.describe() == before

    def check_can_go_on(self, group: GroupId) -> None:
        """Whatever it was: it can come, its members hear of it, and it can go without a trace."""
        shard = self.server.runtime.shards[self.server.runtime.partition_of(group)]
        was_here = shard.holds_group(group)
        assert self._ask(_adopt(group, MEMBERS, GENERATION)) == Done()
        place = self.server.runtime.place_of(group)
        assert place is not None
        assert place.place is Place.MUSTER
        if not was_here:
            answer = self._ask(ClassicHeartbeat(CALLER, group, MEMBERS[0], GENERATION))
            assert isinstance(answer, GroupError)
            assert answer.code is ErrorCode.REBALANCE_IN_PROGRESS
        returned = self._ask(ReturnGroup(INTERNAL, group))
        consumers = shard.consumer_groups.get(group)
        has_consumers = consumers is not None and consumers.member_count > 0
        assert isinstance(returned, GroupError) == has_consumers
        classic = shard.classic_group(group)
        if classic is not None and classic.members:
            assert classic.state is ClassicGroupState.PREPARING_REBALANCE
        assert self._ask(GiveGroupUp(INTERNAL, group)) == Done()
        assert self.server.runtime.place_of(group) is None
        assert not shard.holds_group(group)
        fetched = self._ask(OffsetFetch(INTERNAL, group, None))
        assert isinstance(fetched, OffsetFetchResponse)
        assert fetched.topics == ()

    def _ask(self, command: Command) -> Any:
        return self.server.ask(command)


@given(st.lists(_commands, max_size=12), st.booleans())
def test_a_crash_anywhere_leaves_what_can_be_gone_on_with(
    commands: list[Any], crashes_always: bool
) -> None:
    machine = Machine()
    for command in commands:
        machine.run(command)
        if crashes_always:
            machine.crash()
    machine.crash()
    for group in GROUPS:
        machine.check_can_go_on(group)
    machine.crash()
