"""DeleteTopics (20), versions 1 to 6: delete topics by name or, from version 6, by id.

Needs DESCRIBE and DELETE on the topic; who may not describe it gets no name for an id and no id
for a name. The committed offsets of the topic go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from coordinator.runtime.api import Answer
from coordinator.runtime.authorizer import Operation
from gateway.api import Api, RequestContext
from gateway.codec import response_schema
from gateway.topics.requests import (
    Gather,
    TopicRef,
    find_duplicates,
    find_topic_by_id,
    find_topic_by_name,
    is_allowed,
)
from model.commands import DeleteTopic
from model.errors import ErrorCode, GroupError
from model.ids import TopicId, TopicName
from model.topics import Topic

KEY = 20
wire = response_schema(KEY)

BY_ID_VERSION: Final = 6


class _Wanted(NamedTuple):
    """A topic to delete as the request names it."""

    name: str | None
    topic_id: bytes | None


def handle(context: RequestContext, request: Any) -> None:
    """Delete what may be deleted, answer for all."""

    def reply(results: Any) -> None:
        context.reply(wire.DeleteTopicsResponse(throttle_time=0, responses=results))

    gather = Gather[Any](context, reply)
    for wanted, message in _find_mistakes(context, request):
        gather.add(_make_result(wanted, ErrorCode.INVALID_REQUEST, message))
    for wanted in _list_valid(context, request):
        _delete(context, gather, wanted)
    gather.close()


def _list_wanted(context: RequestContext, request: Any) -> list[_Wanted]:
    if context.version >= BY_ID_VERSION:
        return [_Wanted(topic.name, topic.topic_id) for topic in request.topics]
    return [_Wanted(name, None) for name in request.topic_names]


def _split(context: RequestContext, request: Any) -> tuple[list[_Wanted], list[_Wanted]]:
    """What is named by one of name and id, and what is not."""
    wanted = _list_wanted(context, request)
    well = [topic for topic in wanted if (topic.name is None) != (topic.topic_id is None)]
    return well, [topic for topic in wanted if (topic.name is None) == (topic.topic_id is None)]


def _find_mistakes(context: RequestContext, request: Any) -> Iterator[tuple[_Wanted, str]]:
    well, ill = _split(context, request)
    for wanted in ill:
        yield wanted, "name a topic by its name or by its id, not by both or neither"
    for wanted in find_duplicates(well):
        yield wanted, "the topic comes twice"
    for wanted in _find_named_twice(context, well):
        yield wanted, "the topic comes by its name and by its id"


def _list_valid(context: RequestContext, request: Any) -> list[_Wanted]:
    well, _ = _split(context, request)
    twice = find_duplicates(well)
    by_both = {wanted.topic_id for wanted in _find_named_twice(context, well)}
    valid = []
    for wanted in well:
        named = _find_named(context, wanted)
        topic_id = wanted.topic_id if named is None else named.topic_id
        if wanted not in twice and (topic_id is None or topic_id not in by_both):
            valid.append(wanted)
    return valid


def _find_named(context: RequestContext, wanted: _Wanted) -> Topic | None:
    if wanted.name is None:
        return None
    return context.node.topics.image.by_name.get(TopicName(wanted.name))


def _find_named_twice(context: RequestContext, well: Iterable[_Wanted]) -> set[_Wanted]:
    """Topics that are wanted by name and by id, with both."""
    ids = {wanted.topic_id for wanted in well if wanted.topic_id is not None}
    named = (_find_named(context, wanted) for wanted in well)
    return {
        _Wanted(topic.name, topic.topic_id)
        for topic in named
        if topic is not None
        and topic.topic_id in ids
        and is_allowed(context, Operation.DESCRIBE, topic.name)
    }


def _delete(context: RequestContext, gather: Gather[Any], wanted: _Wanted) -> None:
    ref = _find(context, wanted)
    if ref.topic is None:
        gather.add(_make_result(wanted, ref.error, _compute_message(ref.error)))
        return
    known = _Wanted(ref.topic.name, ref.topic.topic_id)
    if not is_allowed(context, Operation.DELETE, ref.topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        gather.add(_make_result(known, code, _compute_message(code)))
        return
    # By id, so that a topic of that name which is created meanwhile stays.
    command = DeleteTopic(context.caller, None, TopicId(ref.topic.topic_id))
    gather.submit(command, _Result(known))


def _find(context: RequestContext, wanted: _Wanted) -> TopicRef:
    image = context.node.topics.image
    if wanted.topic_id is not None:
        return find_topic_by_id(context, image, wanted.topic_id, Operation.DESCRIBE)
    return find_topic_by_name(context, image, wanted.name, Operation.DESCRIBE)


def _compute_message(code: ErrorCode) -> str:
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return "Authorization failed."
    return "there is no such topic"


class _Result:
    """Makes the result of one topic from the answer to its command."""

    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted

    def __call__(self, answer: Answer) -> Any:
        if isinstance(answer, GroupError):
            return _make_result(self._wanted, answer.code, answer.message)
        return _make_result(self._wanted, ErrorCode.NONE, None)


def _make_result(wanted: _Wanted, code: int, message: str | None) -> Any:
    return wire.DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=code, error_message=message
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """An error for every topic."""
    results = [_make_result(wanted, code, message) for wanted in _list_wanted(context, request)]
    return wire.DeleteTopicsResponse(throttle_time=0, responses=results)


API = Api(key=KEY, name="DeleteTopics", versions=range(1, 7), handler=handle, failed=failed)
