"""What clients of classic and converted groups asked a real Kafka 4.3.0, asked again.

As `wire_replay` does it, and with answers that wait for other members: they come when they come,
and each connection has its own in the order of its requests. New members are given the ids that
Kafka gave them, so that the bytes that name them can be sent as they are. Where Kafka takes the
first of its members, it is the first of a Java hash map: the members stand in that order here too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from coordinator.runtime.api import Reply
from model.commands.classic import JoinGroup
from model.commands.command import Command
from model.commands.offsets import OffsetCommit
from model.ids import GroupId, MemberId
from tests.golden.wire_replay import (
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    START_MS,
    Event,
    Exchange,
    WireReplay,
    decode_answer,
    list_unrecorded_commits,
    member_of,
)
from tests.support.storage.golden import logged_records
from tests.support.wire.frames import frame, make_request

CLASSIC_HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15

HEARTBEAT_INTERVALS_MS: Final = {"o27-mid-classic": 1_000, "o50-go-franz-coop": 1_000}
USUAL_INTERVAL_MS: Final = 500
IDLE_DRIFT_MS: Final = 20
"""Clients beat somewhat slower than they mean to: so far an idle heartbeat may be put too late."""

LAST_BEAT_MS: Final = {58: 10_400, 59: 10_400}
"""Connections of static members that were closed: when they beat last, which was idle.

They were in their groups until an administrator removed them, later than their last recorded
heartbeat and a session.
"""

UNRECORDED_COMMITS_OF_MEMBERS: Final = ("o25-connect", "o26-sr")
"""Groups of which the log has commits that no recorded request made."""

UNANSWERED: Final = (
    (49_527, 370, (424, 17), "mid-6-1c2042df-0ca2-4895-b073-c17ca62bc251"),
    (49_560, 364, (424, 17), "mid-3-d408534d-735f-4a14-ae10-414938a3a7ca"),
    (50_000, 370, (361, 46), "mid-6-1c2042df-0ca2-4895-b073-c17ca62bc251"),
    (58_564, 379, (424, 22), "mid-10-d340c890-c3f4-48d5-af11-69ef0a7238a5"),
    (64_000, 379, (361, 46), "mid-10-d340c890-c3f4-48d5-af11-69ef0a7238a5"),
)
"""When, on which connection, like which recorded request of another member, and of whom.

These members were closed or killed while their JoinGroup waited. That two of them left when it was
answered, and that one did not, is known from when the next two generations began.
"""

HANDLED_MS: Final = {
    (2, 40): 2_430.0,
    (2, 1108): 18_780.0,
    (56, 11): 2_437.1,
    (57, 11): 2_437.2,
    (59, 11): 2_437.3,
    (55, 11): 2_434.1,
    (58, 11): 2_434.2,
    (48, 12): 2_434.3,
    (220, 3): 21_009.1,
    (221, 3): 21_009.2,
}
"""Joins that waited for a group's first record, by connection and correlation id.

The first of them leads the generation that all are in: this is the order in which they were
handled. And groups that were looked for just before the join that made them.
"""


class Request(NamedTuple):
    """What is sent; ``is_idle`` where the recording left it out and its answer is not compared."""

    exchange: Exchange
    is_idle: bool


class Answered(NamedTuple):
    """An exchange, our answer, and when it came; ``None`` where it never did."""

    exchange: Exchange
    answer: dict[str, Any] | None
    at_ms: int


class ClassicReplay(WireReplay):
    """A server, and connections on which answers may be outstanding."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        super().__init__(exchanges)
        self._held: dict[int, deque[Request]] = defaultdict(deque)
        self._asked: dict[int, Request] = {}
        self._submit = self.server.runtime.submit
        self.server.runtime.submit = self._submit_with_id  # type: ignore[method-assign]
        self._next_id: MemberId | None = None
        self._leaders = load_leaders()
        self._maps: dict[GroupId, JavaHashMap] = defaultdict(JavaHashMap)
        self._converted: set[GroupId] = set()

    def _submit_with_id(self, command: Command, reply: Reply) -> None:
        if isinstance(command, JoinGroup) and self._next_id is not None:
            command = replace(command, new_member_id=self._next_id)
        self._submit(command, reply)

    def answers(self) -> Iterator[Answered]:
        """All exchanges, in the order of our answers."""
        events = sorted(self._list_events(), key=compute_order)
        for event, following in zip(events, (*events[1:], None), strict=True):
            at_ms = int(compute_order(event))
            yield from self._run_until(at_ms)
            if event.command is not None:
                self.server.submit(self._complete(event.command))
            if event.exchange is not None:
                self._hold(event.exchange, is_idle=event.is_idle)
            if not is_handled_together(event, following):
                yield from self._run_until(at_ms)
        for request in (
            *self._asked.values(),
            *(row for rows in self._held.values() for row in rows),
        ):
            yield Answered(request.exchange, None, 0)

    def _run_until(self, at_ms: int) -> Iterator[Answered]:
        """All turns until then, and the answers that they bring."""
        scheduler = self.server.scheduler
        while (next_ms := scheduler.next_event_ms()) is not None and next_ms <= at_ms:
            scheduler.step()
            self._sort_members()
            yield from self._collect()
        scheduler.run_until(at_ms)
        yield from self._collect()
        assert not self.server.failures, self.server.failures

    def _list_events(self) -> Iterator[Event]:
        yield from super()._list_events()
        yield from list_unanswered(self._exchanges)
        yield from self._list_commits_of_members()
        last: dict[tuple[str, str], Exchange] = {}
        for row in self._exchanges:
            if row["apiKey"] not in (JOIN_GROUP, CLASSIC_HEARTBEAT, LEAVE_GROUP):
                continue
            for member_id in list_members(row):
                key = row["requestJson"]["groupId"], member_id
                if key in last:
                    yield from list_idle_heartbeats(last.pop(key), row["requestTs"] - START_MS)
                if row["apiKey"] == CLASSIC_HEARTBEAT:
                    last[key] = row
        for row in last.values():
            if row["connection"] in LAST_BEAT_MS:
                until_ms = LAST_BEAT_MS[row["connection"]] + USUAL_INTERVAL_MS
                yield from list_idle_heartbeats(row, until_ms)

    def _list_commits_of_members(self) -> Iterator[Event]:
        """Commits of members that the log has, and no exchange."""
        recorded = {
            (row["requestJson"]["groupId"], at_ms)
            for row in self._exchanges
            if row["apiKey"] == OFFSET_COMMIT
            for at_ms in range(row["requestTs"] - START_MS, row["responseTs"] - START_MS + 1)
        }
        for event in list_unrecorded_commits(UNRECORDED_COMMITS_OF_MEMBERS):
            assert isinstance(event.command, OffsetCommit)
            if (event.command.group_id, event.at_ms) not in recorded:
                yield event

    def _complete(self, command: Command) -> Command:
        """A commit that the log has is of a member, and any member may have made it."""
        if isinstance(command, OffsetCommit) and command.group_id in UNRECORDED_COMMITS_OF_MEMBERS:
            for shard in self.server.runtime._shards:
                group = shard.soft.live_classic_groups.get(command.group_id)
                if group is not None and group.leader is not None:
                    return replace(command, member_id=group.leader, member_epoch=group.generation)
        return command

    def _hold(self, row: Exchange, *, is_idle: bool) -> None:
        """Kafka reads the next request of a connection when it has answered the one before."""
        number = row["connection"]
        if number not in self._doors:
            self._doors[number] = self._gateway.connect()
        self._held[number].append(Request(row, is_idle))
        self._send_next(number)

    def _send_next(self, number: int) -> None:
        if number in self._asked or not self._held[number]:
            return
        request = self._asked[number] = self._held[number].popleft()
        row, is_idle = request
        self._next_id = None
        if row["apiKey"] == JOIN_GROUP and not row["requestJson"]["memberId"]:
            self._next_id = MemberId(row["responseJson"]["memberId"])
        self.targets.begin(row, is_idle=is_idle)
        self._doors[number].send(self._make_request(row, is_idle=is_idle))

    def _make_request(self, row: Exchange, *, is_idle: bool) -> bytes:
        if is_idle and row["apiKey"] in (JOIN_GROUP, LEAVE_GROUP):
            return super()._make_request(row, is_idle=False)
        if not is_idle or row["apiKey"] == HEARTBEAT:
            return super()._make_request(row, is_idle=is_idle)
        request = row["requestJson"]
        names = {"group_id": "groupId", "generation_id": "generationId", "member_id": "memberId"}
        names |= {"group_instance_id": "groupInstanceId"} if row["version"] >= 3 else {}
        fields = {name: request[theirs] for name, theirs in names.items()}
        body = make_request(CLASSIC_HEARTBEAT, row["version"], **fields)
        return frame(CLASSIC_HEARTBEAT, row["version"], row["correlationId"], body, row["clientId"])

    def _collect(self) -> Iterator[Answered]:
        while answered := [
            (number, data) for number in self._asked for data in self._doors[number].frames()
        ]:
            for number, data in answered:
                yield from self._answer(number, data)

    def _answer(self, number: int, data: bytes) -> Iterator[Answered]:
        row, is_idle = self._asked.pop(number)
        answer = decode_answer(row, data)
        if row["apiKey"] == HEARTBEAT:
            self._epochs[member_of(row)] = answer["memberEpoch"]
        self._send_next(number)
        if not is_idle:
            yield Answered(row, answer, self.server.scheduler.now_ms)
        else:
            assert not answer["errorCode"], f"{row['requestJson']}: {answer}"

    def _sort_members(self) -> None:
        """Put the members in Kafka's order, and let a converted group have Kafka's leader."""
        for shard in self.server.runtime._shards:
            for group_id, group in shard.soft.live_classic_groups.items():
                members = self._maps[group_id].sort(group.members)
                if group_id in self._converted:
                    leader = self._leaders.get((group_id, group.generation), group.leader)
                    group = replace(group, leader=leader)
                if members != list(group.members) or group_id in self._converted:
                    ordered = {own: group.members[own] for own in members}
                    shard.soft.live_classic_groups[group_id] = replace(group, members=ordered)
                self._converted.discard(group_id)
            self._converted.update(
                group_id for group_id, group in shard.consumer_groups.items() if group.member_count
            )


def compute_order(event: Event) -> float:
    """When the broker handled it, as far as that is known."""
    row = event.exchange
    if row is None or event.is_idle:
        return event.at_ms
    return HANDLED_MS.get((row["connection"], row["correlationId"]), event.at_ms)


def is_handled_together(event: Event, following: Event | None) -> bool:
    return (
        following is not None
        and compute_order(event) != event.at_ms
        and int(compute_order(event)) == int(compute_order(following))
    )


def load_leaders() -> dict[tuple[GroupId, int], MemberId]:
    """Who led each generation first, as Kafka's log has it."""
    found: dict[tuple[GroupId, int], MemberId] = {}
    for record in logged_records():
        value = record["valueJson"]
        if record["type"] == "GROUP_METADATA" and value is not None and value["leader"]:
            key = GroupId(record["keyJson"]["group"]), value["generation"]
            found.setdefault(key, MemberId(value["leader"]))
    return found


def list_members(row: Exchange) -> Iterator[str]:
    request = row["requestJson"]
    if row["apiKey"] == LEAVE_GROUP and "members" in request:
        yield from (member["memberId"] for member in request["members"])
    else:
        yield request["memberId"]


def list_unanswered(exchanges: Iterable[Exchange]) -> Iterator[Event]:
    """Requests of clients that were gone before the answer came: only exchanges were recorded."""
    by_number = {(row["connection"], row["correlationId"]): row for row in exchanges}
    for at_ms, number, like, member_id in UNANSWERED:
        row = by_number.get(like)
        if row is not None:
            (other,) = list_members(row)
            data = bytes.fromhex(row["request"])
            data = data.replace(encode_string(other), encode_string(member_id))
            yield Event(at_ms, {**row, "connection": number, "request": data.hex()}, None, True)


def encode_string(text: str) -> bytes:
    """A string of the flexible versions that is not long."""
    return bytes((len(text) + 1,)) + text.encode()


class JavaHashMap:
    """The order in which a ``java.util.HashMap`` of names has them; it never shrinks."""

    def __init__(self) -> None:
        self._buckets = 16

    def sort(self, names: Iterable[MemberId]) -> list[MemberId]:
        known = list(names)
        while len(known) > self._buckets * 3 // 4:
            self._buckets *= 2
        return sorted(known, key=lambda name: spread(name) & (self._buckets - 1))


def spread(name: str) -> int:
    """``HashMap.hash`` of a ``String``."""
    code = 0
    for letter in name:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return code ^ (code >> 16)


def list_idle_heartbeats(last: Exchange, until_ms: int) -> Iterator[Event]:
    """Those that the recording left out, until the next request of the member that it has."""
    if last["responseJson"]["errorCode"]:
        return
    group_id = last["requestJson"]["groupId"]
    interval_ms = HEARTBEAT_INTERVALS_MS.get(group_id, USUAL_INTERVAL_MS)
    earliest_ms = last["requestTs"] - START_MS + interval_ms // 2
    for at_ms in range(until_ms - interval_ms, earliest_ms, -interval_ms):
        yield Event(at_ms - IDLE_DRIFT_MS, last, None, is_idle=True)
