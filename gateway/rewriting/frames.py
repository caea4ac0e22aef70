"""Rewriting of whole response frames, by API key and version."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.codec.decoding import Cursor, DecodeError, skip_tags
from gateway.codec.kio_schema import response_type
from gateway.rewriting.api_versions import API_VERSIONS_KEY, rewrite_api_versions
from gateway.rewriting.coordinators import FIND_COORDINATOR_KEY, Asked, rewrite_find_coordinator
from gateway.rewriting.endpoints import FIRST_WITH_ENDPOINTS, rewrite_endpoints
from gateway.rewriting.group_lists import LIST_GROUPS_KEY, rewrite_list_groups
from gateway.rewriting.naming import CannotRewrite, Naming, check_version
from gateway.rewriting.nodes import (
    DESCRIBE_CLUSTER_KEY,
    METADATA_KEY,
    rewrite_describe_cluster,
    rewrite_metadata,
)

_ALWAYS: Final = frozenset(
    (
        METADATA_KEY,
        FIND_COORDINATOR_KEY,
        LIST_GROUPS_KEY,
        API_VERSIONS_KEY,
        DESCRIBE_CLUSTER_KEY,
    )
)
_PACK_SIZE: Final = struct.Struct(">i").pack


@dataclass(frozen=True, slots=True)
class Rewriting:
    """How responses are rewritten; ``added`` are the versions of the APIs that Muster offers."""

    naming: Naming
    added: Mapping[int, range]


def is_rewritten(key: int, version: int) -> bool:
    """Whether responses of this API and version may name brokers or groups."""
    return key in _ALWAYS or version >= FIRST_WITH_ENDPOINTS.get(key, 32_768)


def rewrite_frame(
    key: int, version: int, frame: bytes, rewriting: Rewriting, asked: Asked | None = None
) -> bytes:
    """Rewrite a response frame, size included; raises ``CannotRewrite``.

    ``asked`` is what a FindCoordinator request asked for.
    """
    start = find_body(key, version, frame)
    body = _rewrite_body(key, version, frame[start:], rewriting, asked)
    return _PACK_SIZE(start - 4 + len(body)) + frame[4:start] + body


def find_body(key: int, version: int, frame: bytes) -> int:
    """Where the body starts in a response frame, size included; raises ``CannotRewrite``.

    The header of an ApiVersions response never has tags, so that any client can read it.
    """
    if key == API_VERSIONS_KEY:
        return 8
    check_version(key, version)
    if not response_type(key, version).__header_schema__.__flexible__:
        return 8
    cursor = Cursor(frame, 8, len(frame), len(frame))
    try:
        skip_tags(cursor)
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    return cursor.pos


def _rewrite_body(
    key: int, version: int, body: bytes, rewriting: Rewriting, asked: Asked | None
) -> bytes:
    naming = rewriting.naming
    match key:
        case 3:
            return rewrite_metadata(version, body, naming)
        case 10:
            assert asked is not None, "a FindCoordinator response needs its request"
            return rewrite_find_coordinator(version, body, asked, naming)
        case 16:
            return rewrite_list_groups(version, body, naming.is_here)
        case 18:
            return rewrite_api_versions(version, body, rewriting.added)
        case 60:
            return rewrite_describe_cluster(version, body, naming)
        case _ if version >= FIRST_WITH_ENDPOINTS.get(key, 32_768):
            return rewrite_endpoints(key, version, body, naming)
        case _:
            return body
