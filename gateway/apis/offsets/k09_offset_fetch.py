"""OffsetFetch (9), versions 1 to 10.

Version 7 adds RequireStable, version 8 several groups (one command each), version 9 the member id
and epoch; version 10 names topics by id. Needs DESCRIBE on the group and on each topic: an
unauthorized topic fails by itself if the request names it, and is left out if the request asks for
all topics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.api import Api, RequestContext
from gateway.authorized_operations import may_see
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import (
    COMMANDS_SLICE,
    SLICE,
    LongAnswer,
    compute_each,
    handle_in_slices,
    pace,
    reply_in_slices,
    select_each,
)
from gateway.topic_requests import Gather
from model.access.acls import Operation, ResourceType
from model.commands.offsets import OffsetFetch, TopicToFetch
from model.errors import ErrorCode, GroupError
from model.ids import ZERO_TOPIC_ID, GroupId, MemberId, TopicId, TopicName
from model.responses.offsets import FetchedOffset, FetchedTopic, OffsetFetchResponse

KEY = 9
by_id = response_schema(KEY)
by_name = response_schema(KEY, 9)
single = response_schema(KEY, 7)
"""The last version with a single group."""

SINGLE_VERSIONS: Final = range(1, 8)
FIRST_TOPIC_ID_VERSION: Final = 10
FIRST_TOP_LEVEL_ERROR_VERSION: Final = 2
NO_OFFSET: Final = -1

Group = tuple[str, ErrorCode, tuple[FetchedTopic, ...]]


class _Shape(NamedTuple):
    """A version's topic and partition classes, and the path of the partitions in the response."""

    topic: Any
    partition: Any
    path: tuple[str, ...]


_SINGLE: Final = _Shape(
    single.OffsetFetchResponseTopic,
    single.OffsetFetchResponsePartition,
    ("topics", "partitions"),
)
_GROUPS_PATH: Final = ("groups", "topics", "partitions")
_BY_NAME: Final = _Shape(
    by_name.OffsetFetchResponseTopics, by_name.OffsetFetchResponsePartitions, _GROUPS_PATH
)
_BY_ID: Final = _Shape(
    by_id.OffsetFetchResponseTopics, by_id.OffsetFetchResponsePartitions, _GROUPS_PATH
)


def handle(context: RequestContext, request: Any) -> None:
    """Fetch the offsets of each group; reply in request order when all are there."""
    require_stable = getattr(request, "require_stable", False)
    if context.version in SINGLE_VERSIONS:
        fetching = _fetch(
            context,
            request,
            require_stable,
            lambda group: reply_in_slices(context, _make_single(context, group)),
        )
    else:
        fetching = _fetch_groups(context, request, require_stable)
    handle_in_slices(context, fetching)


def _fetch_groups(context: RequestContext, request: Any, require_stable: bool) -> Steps[None]:
    gather = Gather[Group](context, lambda groups: _reply_groups(context, groups))
    for group, is_slice_done in pace(request.groups, COMMANDS_SLICE):
        yield from _fetch(context, group, require_stable, gather.begin())
        if is_slice_done:
            yield
    gather.close()


def _fetch(
    context: RequestContext,
    group: Any,
    require_stable: bool,
    on_group: Callable[[Group], None],
) -> Steps[None]:
    """Fetch one group; ``group`` is the request itself in versions with a single group."""
    group_id = GroupId(group.group_id)
    if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        on_group((group_id, code, _refuse_all(group, code)))
        return
    topics: list[TopicToFetch] | None = None
    if group.topics is not None:
        topics = []
        for topic, is_slice_done in pace(group.topics, SLICE):
            topics.append(_topic_to_fetch(topic))
            if is_slice_done:
                yield
    allowed = None
    if topics is not None:
        allowed = yield from compute_each(partial(_may_describe, context), topics)
    asked = topics
    if topics is not None and allowed is not None and not all(allowed):
        asked = [topic for topic, may in zip(topics, allowed, strict=True) if may]
    member_id = getattr(group, "member_id", None)
    epoch = getattr(group, "member_epoch", -1)
    command = OffsetFetch(
        context.caller,
        group_id,
        None if asked is None else tuple(asked),
        None if member_id is None else MemberId(member_id),
        None if epoch == -1 else epoch,
        require_stable,
    )

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            on_group((group_id, answer.code, _refuse_all(group, answer.code)))
            return
        assert isinstance(answer, OffsetFetchResponse)
        if topics is None:
            handle_in_slices(context, _show_all(context, group_id, answer.topics, on_group))
            return
        found = answer.topics
        if allowed is not None and asked is not topics:
            rows = iter(found)
            found = tuple(
                next(rows) if may else _refuse(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                for topic, may in zip(topics, allowed, strict=True)
            )
        on_group((group_id, ErrorCode.NONE, found))

    context.submit(command, on_answer)


def _show_all(
    context: RequestContext,
    group_id: GroupId,
    topics: Sequence[FetchedTopic],
    on_group: Callable[[Group], None],
) -> Steps[None]:
    shown = yield from select_each(partial(_may_show, context), topics)
    on_group((group_id, ErrorCode.NONE, tuple(shown)))


def _topic_to_fetch(topic: Any) -> TopicToFetch:
    name = getattr(topic, "name", None)
    if name is not None:
        return TopicToFetch(TopicName(name), None, topic.partition_indexes)
    return TopicToFetch(None, TopicId(topic.topic_id or ZERO_TOPIC_ID), topic.partition_indexes)


def _may_describe(context: RequestContext, topic: TopicToFetch) -> bool:
    name = _find_name(context, topic)
    # An unknown topic id: the coordinator answers UNKNOWN_TOPIC_ID.
    return name is None or context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _find_name(context: RequestContext, topic: TopicToFetch | FetchedTopic) -> str | None:
    if topic.name is not None:
        return topic.name
    known = context.node.coordinator.image.by_id.get(topic.topic_id or ZERO_TOPIC_ID)
    return None if known is None else known.name


def _may_show(context: RequestContext, topic: FetchedTopic) -> bool:
    """Whether "all topics" includes this one: it is authorized, and this version can name it."""
    if context.version >= FIRST_TOPIC_ID_VERSION and not topic.topic_id:
        return False
    name = _find_name(context, topic)
    return name is None or may_see(context, Operation.DESCRIBE, ResourceType.TOPIC, name)


def _refuse(topic: TopicToFetch, code: ErrorCode) -> FetchedTopic:
    rows = tuple(FetchedOffset(number, NO_OFFSET, None, "", code) for number in topic.partitions)
    return FetchedTopic(topic.name, topic.topic_id, rows)


def _refuse_all(group: Any, code: ErrorCode) -> tuple[FetchedTopic, ...]:
    """The topics of a failed group; version 1 has no group error and reports it per partition."""
    return tuple(_refuse(_topic_to_fetch(topic), code) for topic in group.topics or ())


# ------------------------------------------------------------------------------------- answers


def _make_topics(
    long: LongAnswer,
    version: int,
    shape: _Shape,
    topics: Sequence[FetchedTopic],
) -> Steps[list[Any]]:
    """Build the topics of a response."""
    made = []
    for topic in topics:
        rows = map(partial(_make_row, shape.partition), topic.partitions)
        partitions = yield from long.encode(
            shape.partition, shape.path, len(topic.partitions), rows
        )
        which: dict[str, Any] = {"name": topic.name}
        if version >= FIRST_TOPIC_ID_VERSION:
            which = {"topic_id": topic.topic_id}
        made.append(shape.topic(partitions=partitions, **which))
        long.count()
        yield from long.rest()
    return made


def _make_row(make_partition: Any, row: FetchedOffset) -> Any:
    return make_partition(
        partition_index=row.partition,
        committed_offset=row.offset,
        committed_leader_epoch=-1 if row.leader_epoch is None else row.leader_epoch,
        metadata=row.metadata,
        error_code=row.error,
    )


def _make_single(context: RequestContext, group: Group) -> Steps[Any]:
    _, code, topics = group
    if code is not ErrorCode.NONE and context.version >= FIRST_TOP_LEVEL_ERROR_VERSION:
        topics = ()
    made = yield from _make_topics(LongAnswer(context), context.version, _SINGLE, topics)
    return single.OffsetFetchResponse(throttle_time=0, topics=made, error_code=code)


def _make_groups(context: RequestContext, groups: Sequence[Group]) -> Steps[Any]:
    version, long = context.version, LongAnswer(context)
    wire, shape = (by_id, _BY_ID) if version >= FIRST_TOPIC_ID_VERSION else (by_name, _BY_NAME)
    made = []
    for group_id, code, topics in groups:
        rows = yield from _make_topics(long, version, shape, () if code else topics)
        made.append(wire.OffsetFetchResponseGroup(group_id=group_id, topics=rows, error_code=code))
        long.count()
        yield from long.rest()
    return wire.OffsetFetchResponse(throttle_time=0, groups=made)


def _reply_groups(context: RequestContext, groups: Sequence[Group]) -> None:
    reply_in_slices(context, _make_groups(context, groups))


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every group."""
    if context.version in SINGLE_VERSIONS:
        group = (request.group_id, code, _refuse_all(request, code))
        return run_at_once(_make_single(context, group))
    refused = [(group.group_id, code, ()) for group in request.groups]
    return run_at_once(_make_groups(context, refused))


API = Api(
    key=KEY, name="OffsetFetch", versions=range(1, 11), handler=handle, failed=failed, is_large=True
)
