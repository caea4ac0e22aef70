"""ListGroups: the cluster's groups without those that are here, which Muster's node lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gateway.codec.decoding import Cursor, DecodeError, read_compact_length
from gateway.codec.kio_schema import response_type
from gateway.rewriting.naming import CannotRewrite, check_version
from gateway.rewriting.skipping import (
    compile_skip,
    compile_skip_to,
    find_field,
    read_array_length,
    read_length,
)
from gateway.rewriting.splices import Splices, pack_length

LIST_GROUPS_KEY: Final = 16


def rewrite_list_groups(version: int, body: bytes, is_here: Callable[[str], bool]) -> bytes:
    """Leave out the groups that are here; raises ``CannotRewrite``."""
    check_version(LIST_GROUPS_KEY, version)
    entity: Any = response_type(LIST_GROUPS_KEY, version)
    flexible: bool = entity.__flexible__
    skip = compile_skip(find_field(entity, "groups").entity)
    cursor = Cursor(body, 0, len(body), len(body))
    kept: list[bytes] = []
    try:
        compile_skip_to(entity, "groups")(cursor)
        start = cursor.pos
        for _ in range(read_array_length(cursor, flexible)):
            begin = cursor.pos
            group_id = _read_text(cursor, flexible)
            cursor.pos = begin
            skip(cursor)
            if not is_here(group_id):
                kept.append(body[begin : cursor.pos])
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    splices = Splices(body)
    splices.replace(start, cursor.pos, pack_length(len(kept), flexible) + b"".join(kept))
    return splices.join()


def _read_text(cursor: Cursor, flexible: bool) -> str:
    length = read_compact_length(cursor) if flexible else read_length(cursor, 2)
    return cursor.take(max(length, 0)).decode(errors="replace")
