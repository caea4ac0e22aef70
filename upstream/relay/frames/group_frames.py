"""Request frames of groups: which groups they name, and the answer NOT_COORDINATOR to them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.codec.decoding import DecodeError, decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_type, response_type
from gateway.headers import skip_header
from gateway.rewriting.frames import find_body
from model.errors import ErrorCode
from upstream.relay.frames.request_heads import RequestHead
from upstream.relay.frames.splitting import BadFrame

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69

GROUP_KEYS: Final = frozenset(
    (
        OFFSET_COMMIT,
        OFFSET_FETCH,
        JOIN_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SYNC_GROUP,
        DESCRIBE_GROUPS,
        TXN_OFFSET_COMMIT,
        DELETE_GROUPS,
        OFFSET_DELETE,
        CONSUMER_GROUP_HEARTBEAT,
        CONSUMER_GROUP_DESCRIBE,
    )
)
_LISTS: Final = frozenset((DESCRIBE_GROUPS, DELETE_GROUPS, CONSUMER_GROUP_DESCRIBE))
_PACK_HEAD: Final = struct.Struct(">ii").pack
_PACK_SIZE: Final = struct.Struct(">i").pack
ELEMENTS_MAX: Final = 20_000
"""Of a request; a broker's log takes no commit of so many partitions, by its defaults. All that is
looked at holds the loop, whoever sent it."""
NAMES_MAX: Final = 100_000
"""Of a request that is a list of names, which cost a tenth of that each."""
_BATCHED_FETCH: Final = 8
_FIRST_FETCH_WITH_CODE: Final = 2


@dataclass(frozen=True, slots=True)
class GroupFrame:
    """A request of a group, or of several. ``body_at`` is where the body starts in ``frame``."""

    head: RequestHead
    client_id: str
    frame: bytes
    body_at: int
    body: Any

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The groups that the request names."""
        body = self.body
        match self.head.key:
            case 15:
                return tuple(body.groups)
            case 42:
                return tuple(body.groups_names)
            case 69:
                return tuple(body.group_ids)
            case 9 if self.head.version >= _BATCHED_FETCH:
                return tuple(row.group_id for row in body.groups)
            case _:
                return (body.group_id,)


def read_group_frame(head: RequestHead, frame: bytes) -> GroupFrame:
    """Read a request of ``GROUP_KEYS``; raises ``BadFrame``."""
    entity: Any = request_type(head.key, head.version)
    try:
        client_id, pos = skip_header(
            frame, 12, len(frame), bool(entity.__header_schema__.__flexible__)
        )
        elements_max = NAMES_MAX if head.key in _LISTS else ELEMENTS_MAX
        body = decode(entity, frame, pos, len(frame), elements_max)
    except DecodeError as error:
        raise BadFrame(str(error)) from error
    return GroupFrame(head, client_id.decode(errors="replace"), frame, pos, body)


def find_body_of_request(head: RequestHead, frame: bytes) -> int:
    """Where the body starts in a request frame; raises ``DecodeError``."""
    entity: Any = request_type(head.key, head.version)
    return skip_header(frame, 12, len(frame), bool(entity.__header_schema__.__flexible__))[1]


def keep_groups(request: GroupFrame, kept: Collection[str]) -> bytes:
    """The frame with these groups alone, of a request that names several."""
    body = request.body
    match request.head.key:
        case 15:
            body = replace(body, groups=tuple(x for x in body.groups if x in kept))
        case 42:
            body = replace(body, groups_names=tuple(x for x in body.groups_names if x in kept))
        case _:
            body = replace(body, groups=tuple(x for x in body.groups if x.group_id in kept))
    return _make_request(request, body)


def join_as_new_member(request: GroupFrame) -> bytes:
    """The frame of a JoinGroup without its member id."""
    return _make_request(request, replace(request.body, member_id=""))


def make_answer(request: GroupFrame, code_of: Callable[[str], ErrorCode]) -> bytes:
    """A response frame in which the groups for which there is a code have it, and nothing else."""
    entity: Any = response_type(request.head.key, request.head.version)
    return _make_frame(request.head, entity, _make_response(request, entity, code_of))


def merge_answer(
    request: GroupFrame, frame: bytes, refused: Collection[str], code: ErrorCode
) -> bytes:
    """The broker's response to ``keep_groups``, with the answer for the groups refused here.

    Raises ``CannotRewrite`` or ``DecodeError``.
    """
    head = request.head
    entity: Any = response_type(head.key, head.version)
    start = find_body(head.key, head.version, frame)
    answer = decode(entity, frame, start, len(frame), len(frame))
    ours = _make_response(request, entity, dict.fromkeys(refused, code).get)
    name = "results" if head.key == DELETE_GROUPS else "groups"
    rows = (*getattr(answer, name), *getattr(ours, name))
    return _make_frame(head, entity, replace(answer, **{name: rows}))


def _make_request(request: GroupFrame, body: Any) -> bytes:
    """A frame with the head of ``request``."""
    encoded = encode(request_type(request.head.key, request.head.version), body)
    start = request.body_at
    return _PACK_SIZE(start - 4 + len(encoded)) + request.frame[4:start] + encoded


def _make_frame(head: RequestHead, entity: Any, response: Any) -> bytes:
    tags = b"\x00" if entity.__header_schema__.__flexible__ else b""
    body = tags + encode(entity, response)
    return _PACK_HEAD(4 + len(body), head.correlation_id) + body


def _blank(entity: Any, **values: Any) -> Any:
    """An entity with these values, as far as it has such fields; the others are null or default."""
    return entity(
        **{
            row.name: values.get(row.name, None if row.nullable else row.default)
            for row in compute_fields(entity)
        }
    )


def _element(entity: Any, name: str) -> Any:
    return next(row.entity for row in compute_fields(entity) if row.name == name)


def _make_response(
    request: GroupFrame, entity: Any, code_of: Callable[[str], ErrorCode | None]
) -> Any:
    head, body = request.head, request.body
    name = "results" if head.key == DELETE_GROUPS else "groups"
    is_batched = head.key in (DESCRIBE_GROUPS, DELETE_GROUPS, CONSUMER_GROUP_DESCRIBE) or (
        head.key == OFFSET_FETCH and head.version >= _BATCHED_FETCH
    )
    if is_batched:
        row = _element(entity, name)
        codes = {group_id: code_of(group_id) for group_id in request.group_ids}
        rows = tuple(
            _blank(row, group_id=group_id, error_code=code)
            for group_id, code in codes.items()
            if code is not None
        )
        return _blank(entity, **{name: rows})
    code = code_of(body.group_id)
    has_rows = head.key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT) or (
        head.key == OFFSET_FETCH and head.version < _FIRST_FETCH_WITH_CODE
    )
    if has_rows:
        return _make_rows(body, entity, code)
    if head.key == JOIN_GROUP:
        return _blank(entity, error_code=code, generation_id=-1, member_id=body.member_id)
    return _blank(entity, error_code=code)


def _make_rows(body: Any, entity: Any, code: ErrorCode | None) -> Any:
    """A response that has the code in each of its partitions."""
    topic = _element(entity, "topics")
    row = _element(topic, "partitions")
    topics = []
    for asked in body.topics or ():
        numbers = getattr(asked, "partition_indexes", None)
        if numbers is None:
            numbers = [partition.partition_index for partition in asked.partitions]
        partitions = tuple(
            _blank(row, partition_index=number, error_code=code, committed_offset=-1)
            for number in numbers
        )
        name_or_id = {
            name: getattr(asked, name) for name in ("name", "topic_id") if hasattr(asked, name)
        }
        topics.append(_blank(topic, partitions=partitions, **name_or_id))
    return _blank(entity, topics=tuple(topics))
