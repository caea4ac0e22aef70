"""DeleteTopics (20), versions 1 to 6: deletes topics by name or, from version 6, by id.

Needs DESCRIBE and DELETE on the topic, or DELETE on the cluster, which stands for all topics;
without DESCRIBE the response does not reveal the name of an id or the id of a name. The topic's
committed offsets are deleted with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from coordinator.runtime.api import Answer
from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, RequestContext
from gateway.authorized_operations import may_see
from gateway.codec.kio_schema import response_schema
from gateway.long_answers import COMMANDS_SLICE, SLICE, handle_in_slices, pace
from gateway.topic_requests import (
    Gather,
    TopicRef,
    find_duplicates,
    find_topic_by_id,
    find_topic_by_name,
    is_allowed,
)
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.topics import DeleteTopic
from model.errors import ErrorCode, GroupError
from model.ids import TopicId, TopicName
from model.topics import Topic

KEY = 20
wire = response_schema(KEY)

BY_ID_VERSION: Final = 6
_TOPIC_ID: Final = attrgetter("topic_id")


class _Wanted(NamedTuple):
    """A topic to delete, by name or by id, as in the request."""

    name: str | None
    topic_id: bytes | None


def handle(context: RequestContext, request: Any) -> None:
    """Delete the topics; each has its own result."""
    handle_in_slices(context, _delete_all(context, request))


def _delete_all(context: RequestContext, request: Any) -> Steps[None]:
    def reply(results: Any) -> None:
        context.reply(wire.DeleteTopicsResponse(throttle_time=0, responses=results))

    gather = Gather[Any](context, reply)
    may = _Rights(context)
    well, ill = yield from _split(context, request)
    twice = find_duplicates(well)
    by_both = yield from _find_named_twice(context, may, well)
    mistakes = (
        (ill, "Specify either the topic's name or its id."),
        (twice, "Duplicate topic."),
        (by_both, "The topic is listed both by name and by id."),
    )
    for found, message in mistakes:
        for wanted, is_slice_done in pace(found, SLICE):
            gather.add(_make_result(wanted, ErrorCode.INVALID_REQUEST, message))
            if is_slice_done:
                yield
    ids_of_both = {wanted.topic_id for wanted in by_both}
    for wanted, is_slice_done in pace(well, COMMANDS_SLICE):
        named = _find_named(context, wanted)
        topic_id = wanted.topic_id if named is None else named.topic_id
        if wanted not in twice and (topic_id is None or topic_id not in ids_of_both):
            _delete(context, may, gather, wanted)
        if is_slice_done:
            yield
    gather.close()


class _Rights:
    """Which topics the caller of a request may see and delete."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.all = may_see(context, Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)

    def sees(self, name: str) -> bool:
        return self.all or may_see(self._context, Operation.DESCRIBE, ResourceType.TOPIC, name)

    def delete(self, name: str) -> bool:
        return self.all or is_allowed(self._context, Operation.DELETE, name)


def _list_wanted(context: RequestContext, request: Any) -> Iterator[_Wanted]:
    if context.version >= BY_ID_VERSION:
        return (_Wanted(topic.name, topic.topic_id) for topic in request.topics)
    return (_Wanted(name, None) for name in request.topic_names)


def _split(context: RequestContext, request: Any) -> Steps[tuple[list[_Wanted], list[_Wanted]]]:
    """Split into the topics that have exactly one of name and id, and the others."""
    well: list[_Wanted] = []
    ill: list[_Wanted] = []
    for wanted, is_slice_done in pace(_list_wanted(context, request), SLICE):
        is_well = (wanted.name is None) != (wanted.topic_id is None)
        (well if is_well else ill).append(wanted)
        if is_slice_done:
            yield
    return well, ill


def _find_named(context: RequestContext, wanted: _Wanted) -> Topic | None:
    if wanted.name is None:
        return None
    return context.node.topics.image.by_name.get(TopicName(wanted.name))


def _find_named_twice(
    context: RequestContext, may: _Rights, well: Sequence[_Wanted]
) -> Steps[set[_Wanted]]:
    """The topics that are listed both by name and by id, as pairs of both."""
    ids = set(map(_TOPIC_ID, well)) - {None}
    found: set[_Wanted] = set()
    if not ids:
        return found
    for wanted, is_slice_done in pace(well, SLICE):
        topic = _find_named(context, wanted)
        if topic is not None and topic.topic_id in ids and may.sees(topic.name):
            found.add(_Wanted(topic.name, topic.topic_id))
        if is_slice_done:
            yield
    return found


def _delete(context: RequestContext, may: _Rights, gather: Gather[Any], wanted: _Wanted) -> None:
    ref = _find(context, may, wanted)
    if ref.topic is None:
        gather.add(_make_result(wanted, ref.error, _compute_message(ref.error)))
        return
    known = _Wanted(ref.topic.name, ref.topic.topic_id)
    if not may.delete(ref.topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        gather.add(_make_result(known, code, _compute_message(code)))
        return
    # By id, so that a new topic of the same name, created meanwhile, is not deleted.
    command = DeleteTopic(context.caller, None, TopicId(ref.topic.topic_id))
    gather.submit(command, partial(_compute_result, known))


def _find(context: RequestContext, may: _Rights, wanted: _Wanted) -> TopicRef:
    # No right is asked for a topic that whoever may delete all of them wants to delete.
    operation = None if may.all else Operation.DESCRIBE
    image = context.node.topics.image
    if wanted.topic_id is not None:
        return find_topic_by_id(context, image, wanted.topic_id, operation)
    return find_topic_by_name(context, image, wanted.name, operation)


def _compute_message(code: ErrorCode) -> str:
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return "Authorization failed."
    return "The topic does not exist."


def _compute_result(wanted: _Wanted, answer: Answer) -> Any:
    if isinstance(answer, GroupError):
        return _make_result(wanted, answer.code, answer.message)
    return _make_result(wanted, ErrorCode.NONE, None)


def _make_result(wanted: _Wanted, code: int, message: str | None) -> Any:
    return wire.DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=code, error_message=message
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail every topic."""
    results = [_make_result(wanted, code, message) for wanted in _list_wanted(context, request)]
    return wire.DeleteTopicsResponse(throttle_time=0, responses=results)


API = Api(
    key=KEY, name="DeleteTopics", versions=range(1, 7), handler=handle, failed=failed, is_large=True
)
