"""The protocol type ``consumer``: members share the partitions of topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import grpc.aio

from muster.assignors.classic import (
    JoinedMember,
    Member,
    compute_assignment_bytes,
    encode_member_metadata,
    find_assignor,
)
from muster.assignors.embedded import (
    PROTOCOL_TYPE,
    MalformedProtocolError,
    decode_assignment,
    decode_subscribed_topics,
)
from muster.callbacks import Callbacks, CallbackStep
from muster.classic.classic_protocol import NO_GENERATION, AssignmentFailed, Generation
from muster.connection.client import Client
from muster.connection.unary import ask
from muster.errors import REBALANCE_IN_PROGRESS
from muster.membership import Assign, Lose, Partitions, Revoke
from muster.partitions import TopicPartition
from muster.v1 import admin_pb2

_LOG: Final = logging.getLogger("muster")
_PAGE: Final = 1_000
_TIMEOUT_S: Final = 30.0


class ConsumerGroupProtocol:
    """Subscribes to topics, and assigns with ``muster.assignors.classic`` as the leader.

    If all of its assignors are cooperative (KIP-429), it keeps its partitions while it joins,
    revokes those that it is no longer assigned, and rejoins so that others get them. Otherwise it
    revokes everything before each join.
    """

    protocol_type = PROTOCOL_TYPE

    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Iterable[str],
        assignors: Sequence[str],
        rack_id: str,
        callbacks: Callbacks,
    ) -> None:
        self.topics = tuple(dict.fromkeys(topics))
        self.grants: dict[TopicPartition, int] = {}
        """A number for each owned partition; one that is revoked or lost and assigned again gets a
        new number."""
        self._granted = 0
        self._client = client
        self._group_id = group_id
        self._assignors = tuple(find_assignor(name) for name in assignors)
        self._is_cooperative = all(each.is_cooperative for each in self._assignors)
        self._rack_id = rack_id or None
        self._callbacks = callbacks
        self._had: frozenset[TopicPartition] = frozenset()
        self._generation = NO_GENERATION
        self._counts: Mapping[str, int] = {}
        self._subscribed: Collection[str] = ()
        self.unknown_topics: frozenset[str] = frozenset()
        """Topics of all members that did not exist when this member last led."""

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Handed to the application and not revoked."""
        return frozenset(self.grants)

    @property
    def caller(self) -> object:
        """The owner of the member's callbacks: see ``is_in_callback``."""
        return self._callbacks

    def note_late(self, timeout_ms: int) -> None:
        """See ``GroupProtocol``."""
        self._callbacks.note_late(timeout_ms)

    def make_protocols(self) -> Sequence[tuple[str, bytes]]:
        """One subscription per assignor. A member that revokes everything before each join claims
        nothing from cooperative ones.
        """
        protocols = []
        for assignor in self._assignors:
            claims = not assignor.is_cooperative or self._is_cooperative
            member = Member(
                "",
                self.topics,
                rack=self._rack_id,
                owned=_group(self._had) if claims else {},
                generation=self._generation,
            )
            protocols.append((assignor.name, encode_member_metadata(assignor.name, member)))
        return protocols

    async def prepare_join(self) -> bool:
        """An eager member revokes everything."""
        if self._is_cooperative:
            return True
        await self.give_up()
        return False

    async def assign(self, generation: Generation) -> Mapping[str, bytes]:
        """Raises ``AssignmentFailed`` if a member's subscription cannot be decoded."""
        try:
            await self._look_up(generation)
            # In a thread, so that heartbeats go on meanwhile.
            return await asyncio.to_thread(
                compute_assignment_bytes,
                generation.protocol_name,
                generation.members,
                self._counts,
            )
        except MalformedProtocolError as error:
            raise AssignmentFailed(f"the leader cannot assign: {error}"[:200]) from error
        except grpc.aio.AioRpcError as error:
            # A temporary failure: clients rejoin after this error.
            message = f"the leader cannot look up topics: {error.code().name}"
            raise AssignmentFailed(message, REBALANCE_IN_PROGRESS) from error

    async def note_skipped(self, generation: Generation) -> None:
        """Look up the topics of the group, so that ``is_outdated`` can watch them."""
        try:
            await self._look_up(generation)
        except (MalformedProtocolError, grpc.aio.AioRpcError):
            self._subscribed = ()

    def gives_up(self, assignment: bytes) -> bool:
        """Whether it owns a partition that it is no longer assigned."""
        return not self.owned <= _decode(assignment)

    async def take(
        self, generation: Generation, assignment: bytes, holds: Callable[[], bool]
    ) -> bool:
        """Revoke what is no longer assigned, then start with what is new."""
        target = _decode(assignment)
        revoked = self.owned - target
        if revoked:
            await self._call(Revoke(revoked))
            self._release(revoked)
        if not holds():
            return False
        self._had, self._generation = target, generation.generation
        assigned = target - self.owned
        if assigned:
            self._granted += 1
            self.grants.update(dict.fromkeys(assigned, self._granted))
            await self._call(Assign(assigned))
        return bool(revoked)

    async def is_outdated(self) -> bool:
        """Whether topics of the group were created, deleted or expanded since the assignment."""
        try:
            return await self._fetch_counts(self._subscribed) != self._counts
        except grpc.aio.AioRpcError:
            return False

    async def give_up(self) -> None:
        """Revoke everything."""
        revoked = self.owned
        if revoked:
            await self._call(Revoke(revoked))
        self._release(revoked)

    async def lose(self) -> None:
        """Call ``on_lost`` for everything; the next subscription claims nothing."""
        lost = self.owned
        self.grants.clear()
        self._had, self._generation = frozenset(), NO_GENERATION
        if lost:
            await self._call(Lose(lost))

    def _release(self, partitions: Partitions) -> None:
        for partition in partitions:
            self.grants.pop(partition, None)

    async def _call(self, step: CallbackStep) -> None:
        waiting = self._callbacks.call(step)
        if waiting is not None:
            await waiting

    async def _look_up(self, generation: Generation) -> None:
        """Find the topics that the group subscribes to, and their partition counts."""
        self._subscribed = {
            topic for member in generation.members for topic in _read_topics(member)
        }
        self._counts = await self._fetch_counts(self._subscribed)
        self._note_unknown(frozenset(self._subscribed) - self._counts.keys())

    def _note_unknown(self, topics: frozenset[str]) -> None:
        if topics - self.unknown_topics:
            _LOG.warning(
                "unknown_topics group=%s topics=%s", self._group_id, ",".join(sorted(topics))
            )
        self.unknown_topics = topics

    async def _fetch_counts(self, topics: Collection[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        token = ""
        while True:
            request = admin_pb2.ListTopicsRequest(page_size=_PAGE, page_token=token)
            response = await ask(self._client.admin.ListTopics, request, timeout=_TIMEOUT_S)
            for topic in response.topics:
                if topic.topic_name in topics:
                    counts[topic.topic_name] = topic.num_partitions
            token = response.next_page_token
            if not token:
                return counts


def _read_topics(member: JoinedMember) -> tuple[str, ...]:
    """The topics of a member. Raises ``MalformedProtocolError`` with its member id."""
    try:
        return decode_subscribed_topics(member.metadata)
    except MalformedProtocolError as error:
        raise MalformedProtocolError(f"member {member.member_id!r}: {error}") from None


def _decode(assignment: bytes) -> Partitions:
    """Decode an assignment; an empty one has no partitions. Raises ``AssignmentFailed``."""
    if not assignment:
        return frozenset()
    try:
        decoded = decode_assignment(assignment)
    except MalformedProtocolError as error:
        raise AssignmentFailed(f"the leader's assignment cannot be decoded: {error}") from error
    return frozenset(
        TopicPartition(each.topic, partition)
        for each in decoded.partitions
        for partition in each.partitions
    )


def _group(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return by_topic
