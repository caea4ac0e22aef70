"""Tells the audit log what administrators change: what was before, and what is after.

All commands of ``AuditedCommand`` pass through here on their way to their routes. What they change
is looked at as it is when they are submitted, and the change is noted after they are answered, thus
once it is durable. A command that is refused, or that changes nothing, is no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

import structlog

from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.audit import Audit, Change, State
from coordinator.runtime.commands.audited_commands import (
    AuditedCommand,
    CataloguedCommand,
    Subject,
    find_audited,
    find_subject,
    is_by_administrator,
)
from coordinator.runtime.commands.catalogued_changes import (
    PART,
    Looked,
    Pair,
    compute_catalogued,
    look_in_catalogue,
    split,
)
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.offsets.offset_reads import (
    decode_stored_offsets,
    encode_offset_group_prefix,
    fits_in_key,
)
from coordinator.runtime.topics.topic_images import TopicCatalogueRuntime
from model.commands.command import Command
from model.commands.consumer import LeaveGroup
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.commands.groups import ConvertToClassicGroup, DeleteGroup, RemoveMembers
from model.commands.offsets import DeleteOffsets, OffsetCommit
from model.commands.resets import ResetOffsets
from model.commands.transactions import EndTransaction, WriteTxnMarkers
from model.commands.users import AlterUserScramCredentials, SetUser
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, LogPartition, TopicName
from model.log.records import OffsetCommitKey
from model.responses.classic import LeaveGroupResponse
from model.responses.offsets import OffsetCommitResponse, OffsetDeleteResponse
from storage.codec.record_codec import encode_key
from storage.log_store import LatestEntry, StoreError

log = structlog.get_logger()

OFFSETS_MAX: Final = 1_000
"""Offsets of one command that are looked at and noted, each in some 6 µs."""

_Offsets: TypeAlias = Mapping[OffsetPlace, int]
_Before: TypeAlias = Looked | _Offsets


class _Noted(NamedTuple):
    """A command, what it changes, and what that was before."""

    command: AuditedCommand
    subject: Subject
    before: Any


class Changes:
    """Notes the changes of commands. ``route`` is where a command goes."""

    def __init__(
        self, context: ShardContext, catalogue: TopicCatalogueRuntime, audit: Audit
    ) -> None:
        self._context = context
        self._catalogue = catalogue
        self._audit = audit

    def submit(self, route: Callable[[Any, Reply], None], submitted: Command, reply: Reply) -> None:
        """Pass the command on, and note what it has changed when it is answered."""
        command = find_audited(submitted)
        if command is None or not is_by_administrator(command):
            route(submitted, reply)
            return
        subject = find_subject(command, self._catalogue.image)
        noted = _Noted(command, subject, self._look(command))
        after = [noted.before]

        def answer_and_note(answer: Answer) -> None:
            try:
                reply(answer)
            finally:
                if not isinstance(answer, GroupError):
                    self._note_safely(noted, after[-1], answer)

        route(command, answer_and_note)
        if isinstance(command, CataloguedCommand):
            # Such a command is carried out at once, and others that follow are not yet.
            after.append(self._look(command))

    def _note_safely(self, noted: _Noted, looked: Any, answer: Answer) -> None:
        try:
            self._note(noted, looked, answer)
        except Exception:
            # The command is done and answered: that it cannot be noted must not end more.
            log.exception("change_not_noted", command=type(noted.command).__name__)

    def _note(self, noted: _Noted, looked: Any, answer: Answer) -> None:
        command, (operation, resource_type, name), _ = noted
        for before, after in _compute_pairs(noted, looked, answer):
            # Another password leaves mechanism and iterations as they are.
            if before != after or isinstance(command, AlterUserScramCredentials | SetUser):
                kind = type(command).__name__
                change = Change(kind, operation, resource_type, name, before, after)
                self._audit.changed(command.caller, change)

    # ------------------------------------------------------------------------- what is there now

    def _look(self, command: AuditedCommand) -> _Before:
        if isinstance(command, CataloguedCommand):
            return look_in_catalogue(self._catalogue, command)
        match command:
            case DeleteGroup(group_id=group_id):
                return self._describe_group(group_id)
            case ConvertToClassicGroup(group_id=group_id):
                return _describe_kind(self._context.shard_of(group_id), group_id)
            case FreezeGroup(group_id=group_id) | ResumeGroup(group_id=group_id):
                return self._describe_freeze(group_id)
            case DeleteOffsets(group_id=group_id, topics=topics):
                places = ((name, number) for name, numbers in topics for number in numbers)
                return self._read_offsets(group_id, places)
            case OffsetCommit(group_id=group_id) | ResetOffsets(group_id=group_id):
                return self._read_offsets(group_id, self._name_places(command))
            case LeaveGroup(members=members):
                # Who gives its id leaves by itself.
                named = [None if each.member_id else each.instance_id for each in members]
                return {"members": named}
            case RemoveMembers(members=members):
                return {"members": [each.member_id or each.instance_id for each in members]}
            case EndTransaction() | WriteTxnMarkers():
                return self._describe_transaction(command)
            case _:
                assert_never(command)

    def _describe_group(self, group_id: GroupId) -> State | None:
        """A group that is to be deleted, with the first of its offsets."""
        shard = self._context.shard_of(group_id)
        kind = _describe_kind(shard, group_id)
        if kind is None:
            return None
        self._context.writer.write_gathered()
        try:
            entries = self._context.store.latest(
                shard.partition, encode_offset_group_prefix(group_id)
            )
            found = _decode(islice(entries, PART))
        except StoreError:  # The command itself says so.
            found = {}
        return {**kind, "offsets": _render(found)}

    def _describe_freeze(self, group_id: GroupId) -> State:
        freeze = self._context.shard_of(group_id).freezes.get(group_id)
        if freeze is None:
            return {"frozen": False}
        return {"frozen": True, "by": freeze.principal}

    def _name_places(self, command: OffsetCommit | ResetOffsets) -> Iterator[OffsetPlace]:
        by_id = self._catalogue.image.by_id
        for topic in command.topics:
            known = None if topic.topic_id is None else by_id.get(topic.topic_id)
            name = topic.name if known is None else known.name
            if name is not None:
                yield from ((name, int(number)) for number in topic.partitions)

    def _read_offsets(self, group_id: GroupId, places: Iterator[OffsetPlace]) -> _Offsets:
        """The offsets that the group has committed for these partitions, or the first of them."""
        shard = self._context.shard_of(group_id)
        keys = [
            encode_key(OffsetCommitKey(group_id, name, number))
            for name, number in islice(places, OFFSETS_MAX)
            if fits_in_key(name) and number >= 0
        ]
        self._context.writer.write_gathered()
        try:
            found = self._context.store.get_many_latest(shard.partition, keys)
        except StoreError:  # The command itself says so, if it needs them.
            return {}
        return _decode(entry for entry in found if entry is not None)

    def _describe_transaction(self, command: EndTransaction | WriteTxnMarkers) -> State | None:
        if not 0 <= command.partition < len(self._context.shards):
            return None
        shard = self._context.shards[LogPartition(command.partition)]
        transaction = shard.open_transactions.get(command.producer_id)
        if transaction is None:
            return None
        return {
            "log_partition": command.partition,
            "producer_id": command.producer_id,
            "producer_epoch": command.producer_epoch,
            "state": "Ongoing",
            "groups": sorted(islice(transaction.group_epochs(), PART)),
        }


# ------------------------------------------------------------------------------ before and after


def _compute_pairs(noted: _Noted, looked: Any, answer: Answer) -> Iterator[Pair]:
    """What was before and what is after, in parts that fit a line."""
    command, before = noted.command, noted.before
    if isinstance(command, CataloguedCommand):
        yield from compute_catalogued(command, before, looked)
        return
    match command:
        case DeleteGroup():
            yield before, None
        case ConvertToClassicGroup():
            yield before, None if before is None else {**before, "type": "classic"}
        case FreezeGroup() | ResumeGroup():
            yield before, {"frozen": isinstance(command, FreezeGroup)}
        case DeleteOffsets():
            assert isinstance(answer, OffsetDeleteResponse)
            deleted = _find_done(answer)
            gone = [(place, offset) for place, offset in before.items() if place in deleted]
            yield from (({"offsets": _render(dict(part))}, None) for part in split(gone))
        case OffsetCommit():
            assert isinstance(answer, OffsetCommitResponse)
            yield from _compare_offsets(command, before, answer)
        case ResetOffsets():
            yield from _compare_rows(before, _list_reset(command), _count(command))
        case LeaveGroup():
            assert isinstance(answer, LeaveGroupResponse)
            rows = zip(before["members"], answer.errors, strict=True)
            left = [named for named, error in rows if named and error is ErrorCode.NONE]
            yield from (({"members": part}, None) for part in split(left))
        case RemoveMembers():
            yield from (({"members": part}, None) for part in split(before["members"]))
        case EndTransaction() | WriteTxnMarkers():
            state = "CompleteCommit" if command.committed else "CompleteAbort"
            yield before, None if before is None else {**before, "state": state}
        case _:
            assert_never(command)


def _compare_offsets(
    command: OffsetCommit, before: _Offsets, answer: OffsetCommitResponse
) -> Iterator[Pair]:
    """Offsets before and after, in parts; only of partitions that were committed."""
    rows = (
        ((result.name or topic.name or TopicName(""), row[0]), row[1], done.error)
        for topic, result in zip(command.topics, answer.topics, strict=True)
        for row, done in zip(topic.offsets.rows(), result.partitions, strict=True)
    )
    done = (
        (place, offset)
        for place, offset, error in islice(rows, OFFSETS_MAX)
        if error is ErrorCode.NONE
    )
    yield from _compare_rows(before, done, _count(command))


def _list_reset(command: ResetOffsets) -> Iterator[tuple[OffsetPlace, int]]:
    rows = (
        ((topic.name or TopicName(""), row[0]), row[1])
        for topic in command.topics
        for row in topic.offsets.rows()
    )
    return islice(rows, OFFSETS_MAX)


def _count(command: OffsetCommit | ResetOffsets) -> int:
    return sum(len(topic.partitions) for topic in command.topics)


def _compare_rows(
    before: _Offsets, rows: Iterator[tuple[OffsetPlace, int]], count: int
) -> Iterator[Pair]:
    moved = [(place, offset) for place, offset in rows if before.get(place) != offset]
    for part in split(moved):
        former = {place: before[place] for place, _ in part if place in before}
        yield {"offsets": _render(former)} if former else None, {"offsets": _render(dict(part))}
    if count > OFFSETS_MAX:
        # What is not looked at may have been moved too.
        yield None, {"offsets_not_looked_at": count - OFFSETS_MAX}


def _find_done(answer: OffsetDeleteResponse) -> set[OffsetPlace]:
    return {
        (topic.name, row.partition)
        for topic in answer.topics
        for row in topic.partitions
        if topic.name is not None and row.error is ErrorCode.NONE
    }


def _decode(entries: Iterator[LatestEntry]) -> dict[OffsetPlace, int]:
    stored = decode_stored_offsets(entries)
    return {(each.topic, each.partition): each.value.offset for each in stored}


def _render(offsets: _Offsets) -> dict[str, int]:
    """Offsets by partition, as Kafka writes it: ``orders-0``."""
    return {f"{name}-{number}": offset for (name, number), offset in offsets.items()}


def _describe_kind(shard: Shard, group_id: GroupId) -> State | None:
    """The type and the state of a group; offsets alone make a classic group."""
    consumer = shard.consumer_groups.get(group_id)
    if consumer is not None:
        return {"type": "consumer", "state": consumer.state().value}
    foreign = shard.foreign_groups.get(group_id)
    if foreign is not None:
        return {"type": foreign.group_type, "state": foreign.state()}
    classic = shard.classic_group(group_id)
    if classic is not None:
        return {"type": "classic", "state": classic.state.value}
    return {"type": "classic", "state": "Empty"} if shard.has_simple_group(group_id) else None
