"""A cluster's group coordinator for offsets: the sentinel's seat, and answers that get lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

from coordinator.runtime.api import Reply
from gateway.codec.client_frames import ClientRequest
from model.commands.command import Command
from model.errors import CoordinatorLoadInProgress, ErrorCode
from model.ids import GroupId, InstanceId, MemberId
from upstream.cluster.cluster import ClusterUnreachable
from upstream.hooks import SentinelIdentity

INSTANCE = InstanceId("muster")
COMMIT, FETCH, TXN_COMMIT, DELETE = 8, 9, 28, 42

Offset = tuple[int, int, str]
"""Offset, leader epoch and metadata."""


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = auto()
    LOST_DONE = auto()
    """Done, and the answer is lost."""
    LOST_LATE = auto()
    """The answer is lost, and the request is done later, when ``do_late`` is called."""
    LOST = auto()
    """It never arrives."""
    REBALANCING = auto()
    MOVING = auto()


class OffsetCluster:
    """The offsets of all groups. A commit is done only by who has the seat when it is done."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[tuple[str, int], Offset]] = {}
        self.seats: dict[str, SentinelIdentity] = {}
        self.topics_gone: set[str] = set()
        self.unstable: set[tuple[str, int]] = set()
        self.deleted: list[str] = []
        self.asked: list[ClientRequest] = []
        self.fates: deque[Fate] = deque()
        self.find_fate: Callable[[ClientRequest], Fate] = lambda request: Fate.ANSWERED
        self.late: list[ClientRequest] = []
        self.gate: asyncio.Event | None = None
        self.running = self.most_running = 0

    async def ask_coordinator(
        self, group_id: str, request: ClientRequest, *, timeout_ms: int = 30_000
    ) -> Any:
        assert timeout_ms > 0
        self.asked.append(request)
        self.running += request.key == COMMIT
        self.most_running = max(self.most_running, self.running)
        try:
            await (asyncio.sleep(0) if self.gate is None else self.gate.wait())
            fate = self.fates.popleft() if self.fates else self.find_fate(request)
            return self._answer(group_id, request, fate)
        finally:
            self.running -= request.key == COMMIT

    def _answer(self, group_id: str, request: ClientRequest, fate: Fate) -> Any:
        match fate:
            case Fate.LOST_LATE:
                self.late.append(request)
            case Fate.LOST_DONE:
                self._do(group_id, request)
            case Fate.ANSWERED:
                return self._do(group_id, request)
            case Fate.REBALANCING:
                return self._refuse(request, ErrorCode.REBALANCE_IN_PROGRESS)
            case Fate.MOVING:
                return self._refuse(request, ErrorCode.NOT_COORDINATOR)
            case Fate.LOST:
                pass
        raise ClusterUnreachable("lost")

    def do_late(self) -> None:
        """The requests arrive that were late."""
        late, self.late = self.late, []
        for request in late:
            self._do(request.fields["group_id"], request)

    def commits(self) -> list[dict[tuple[str, int], int]]:
        """The offsets of each OffsetCommit, in order."""
        return [
            {
                (topic["name"], row["partition_index"]): row["committed_offset"]
                for topic in request.fields["topics"]
                for row in topic["partitions"]
            }
            for request in self.asked
            if request.key == COMMIT
        ]

    # --------------------------------------------------------------------------------- requests

    def _do(self, group_id: str, request: ClientRequest) -> Any:
        match request.key:
            case 8 | 28:
                return self._commit(group_id, request)
            case 9:
                return self._fetch(group_id, request)
            case _:
                assert request.key == DELETE
                in_use = group_id in self.seats
                code = ErrorCode.NON_EMPTY_GROUP if in_use else ErrorCode.NONE
                if not in_use:
                    self.offsets.pop(group_id, None)
                    self.deleted.append(group_id)
                result = SimpleNamespace(group_id=group_id, error_code=int(code))
                return SimpleNamespace(results=(result,))

    def _commit(self, group_id: str, request: ClientRequest) -> Any:
        fields, seat = request.fields, self.seats.get(group_id)
        assert fields["group_instance_id"] == INSTANCE
        if seat is None:
            return self._refuse(request, ErrorCode.UNKNOWN_MEMBER_ID)
        if fields["member_id"] != seat.member_id:
            return self._refuse(request, ErrorCode.FENCED_INSTANCE_ID)
        generation = fields.get("generation_id_or_member_epoch", fields.get("generation_id"))
        if generation != seat.generation:
            return self._refuse(request, ErrorCode.ILLEGAL_GENERATION)
        return self._respond(request, lambda topic, row: self._commit_one(group_id, topic, row))

    def _commit_one(self, group_id: str, topic: str, row: dict[str, Any]) -> ErrorCode:
        if topic in self.topics_gone:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if len(row["committed_metadata"]) > 10:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        self.offsets.setdefault(group_id, {})[topic, row["partition_index"]] = (
            row["committed_offset"],
            row["committed_leader_epoch"],
            row["committed_metadata"],
        )
        return ErrorCode.NONE

    def _refuse(self, request: ClientRequest, code: ErrorCode) -> Any:
        if request.key == FETCH:
            group = request.fields["groups"][0]
            made = SimpleNamespace(group_id=group["group_id"], topics=(), error_code=int(code))
            return SimpleNamespace(groups=(made,))
        return self._respond(request, lambda topic, row: code)

    def _respond(
        self, request: ClientRequest, compute: Callable[[str, dict[str, Any]], ErrorCode]
    ) -> Any:
        return SimpleNamespace(
            topics=tuple(
                SimpleNamespace(
                    name=topic["name"],
                    partitions=tuple(
                        SimpleNamespace(
                            partition_index=row["partition_index"],
                            error_code=int(compute(topic["name"], row)),
                        )
                        for row in topic["partitions"]
                    ),
                )
                for topic in request.fields["topics"]
            )
        )

    def _fetch(self, group_id: str, request: ClientRequest) -> Any:
        (group,) = request.fields["groups"]
        own = self.offsets.get(group_id, {})
        wanted: Iterable[tuple[str, int]] = own
        if group["topics"] is not None:
            wanted = [(t["name"], n) for t in group["topics"] for n in t["partition_indexes"]]
        by_topic: dict[str, list[Any]] = {}
        for topic, number in wanted:
            offset, epoch, metadata = own.get((topic, number), (-1, -1, ""))
            code = ErrorCode.NONE
            if request.fields["require_stable"] and (topic, number) in self.unstable:
                offset, code = -1, ErrorCode.UNSTABLE_OFFSET_COMMIT
            by_topic.setdefault(topic, []).append(
                SimpleNamespace(
                    partition_index=number,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    metadata=metadata,
                    error_code=int(code),
                )
            )
        topics = tuple(SimpleNamespace(name=n, partitions=tuple(p)) for n, p in by_topic.items())
        made = SimpleNamespace(group_id=group_id, topics=topics, error_code=0)
        return SimpleNamespace(groups=(made,))


class Seats:
    """Takeovers as far as offsets need them: who has the seat, and gets it again."""

    def __init__(self, cluster: OffsetCluster, *, fences: bool = True) -> None:
        self._cluster = cluster
        self._known: dict[GroupId, SentinelIdentity] = {}
        self._joins = 0
        self._fences = fences
        self.may_join = True
        self.refused: list[tuple[GroupId, ErrorCode]] = []
        self.asked: list[tuple[GroupId, str]] = []
        self.elsewhere: list[tuple[GroupId, MemberId]] = []
        self.passed_on: list[Command] = []
        self.may_leave = True

    # ----------------------------------------------------------------------------- OnTheWay

    @property
    def on_the_way(self) -> Seats:
        return self

    def submit(self, command: Command, reply: Reply) -> None:
        self.passed_on.append(command)

    # ---------------------------------------------------------------------------- Takeovers

    def is_asked_for(self, group_id: GroupId) -> bool:
        return any(group_id == asked for asked, _ in self.asked)

    def ask_to_take(self, group_id: GroupId, cause: str) -> None:
        self.asked.append((group_id, cause))

    def note_joined(self, group_id: GroupId, member_id: MemberId) -> None:
        self.elsewhere.append((group_id, member_id))

    def sentinel_of(self, group_id: GroupId) -> SentinelIdentity | None:
        return self._known.get(group_id)

    async def await_sentinel(self, group_id: GroupId) -> SentinelIdentity:
        await asyncio.sleep(0)
        if not self.may_join:
            raise CoordinatorLoadInProgress("no seat")
        return self.join(group_id)

    def join(self, group_id: GroupId) -> SentinelIdentity:
        """Join, or join again by the instance id: another member id, the same generation."""
        self._joins += 1
        before = self._cluster.seats.get(group_id)
        generation = 1 if before is None else before.generation
        member_id = MemberId(f"muster-{self._joins}")
        identity = SentinelIdentity(member_id, INSTANCE, generation)
        self._known[group_id] = self._cluster.seats[group_id] = identity
        return identity

    def note_refused(self, group_id: GroupId, code: ErrorCode) -> None:
        self.refused.append((group_id, code))
        self._known.pop(group_id, None)

    def note_lost_answer(self, group_id: GroupId, identity: SentinelIdentity) -> None:
        if self._fences and self._known.get(group_id) == identity:
            del self._known[group_id]

    async def leave(self, group_id: GroupId) -> bool:
        if self.may_leave:
            self._known.pop(group_id, None)
            self._cluster.seats.pop(group_id, None)
        return self.may_leave
