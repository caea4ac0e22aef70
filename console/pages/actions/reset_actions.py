"""Resets of offsets, and their undo."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError

from console.pages.actions.action import (
    PLAN_FIELD,
    TOKEN_FIELD,
    Action,
    list_fields,
    list_lines,
    pack,
    read_request_id,
    unpack,
)
from console.refusals import Refused
from console.site import Visit
from console.views.actions.preview import Outcome, Preview
from console.views.actions.reset_view import (
    compute_reset_outcome,
    compute_reset_preview,
    compute_undo_preview,
)
from muster.v1 import reset_pb2
from wording.errors import InputError
from wording.resets import PlanText, Strategy, add_topics, make_second_request

FILE_NAME: Final = "the text"
_INSTEAD: Final = "use muster group reset"
_TEXTS: Final = ("to_datetime", "by_duration", "to_group", "to_as_of")
_NUMBERS: Final = ("shift_by", "to_offset")
_FLAGS: Final = ("to_earliest", "to_latest", "to_current")
_WORDS_FIELD: Final = "words"
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_NUMBER_MAX: Final = (1 << 63) - 1


def _read_wall_ms() -> int:
    return time.time_ns() // 1_000_000


async def _preview_reset(visit: Visit, group_id: str) -> Preview:
    request = reset_pb2.ResetOffsetsRequest(
        group_id=group_id,
        clamp=bool(visit.find_field("clamp")),
        create_group=bool(visit.find_field("create")),
        validate_only=True,
    )
    words = _fill_strategy(visit, request)
    topics = list_lines(visit, "topic")
    add_topics(request, topics)
    words += [word for topic in topics for word in ("--topic", topic)]
    if not topics and request.WhichOneof("to") not in ("plan", "other_group_id", "as_of"):
        words.append("--all-topics")
    words += [f"--{name}" for name in ("clamp", "create") if visit.find_field(name)]
    return await _preview_request(visit, request, words)


def _fill_strategy(visit: Visit, request: reset_pb2.ResetOffsetsRequest) -> list[str]:
    """Set where to, and return the options that say so. Raises ``InputError``."""
    name, value = visit.find_field("strategy"), visit.find_field("value").strip()
    option = f"--{name.replace('_', '-')}"
    given: dict[str, Any]
    if name in _FLAGS:
        given, words = {name: True}, [option]
    elif name in _TEXTS and value:
        given, words = {name: value}, [option, value]
    elif name in _NUMBERS:
        given, words = {name: _parse_number(option, value)}, [option, value]
    elif name == "from_file":
        plan = PlanText(FILE_NAME, visit.find_field("offsets"))
        given, words = {name: plan}, [option, "plan.csv"]
    else:
        raise InputError("say where to: choose a strategy, and write its value if it has one")
    Strategy(**given).fill(request, _read_wall_ms)
    return words


def _parse_number(option: str, text: str) -> int:
    if not _NUMBER.fullmatch(text) or abs(int(text)) > _NUMBER_MAX:
        raise InputError(f"{option} {text!r} is not a number")
    return int(text)


async def _preview_undo(visit: Visit, group_id: str) -> Preview:
    request = reset_pb2.ResetOffsetsRequest(
        group_id=group_id,
        clamp=bool(visit.find_field("clamp")),
        validate_only=True,
        undo=reset_pb2.UndoChange(),
    )
    change = visit.find_field("change").strip()
    words: list[str] = []
    if change:
        request.undo.log_offset = _parse_number("--change", change)
        words += ["--change", change]
    topics = list_lines(visit, "topic")
    add_topics(request, topics)
    words += [word for topic in topics for word in ("--topic", topic)]
    words += ["--clamp"] if request.clamp else []
    return await _preview_request(visit, request, words)


async def _preview_request(
    visit: Visit, request: reset_pb2.ResetOffsetsRequest, words: Sequence[str]
) -> Preview:
    """Carry the second request along: exactly what is shown will be set."""
    shown = await visit.ask("ResetService", "ResetOffsets", request)
    if not shown.partitions:
        raise Refused(409, f"{request.group_id} has no offsets of these partitions to set.")
    second = make_second_request(request, shown, "")
    fields = [
        (PLAN_FIELD, pack(second.SerializeToString(), _INSTEAD)),
        *((_WORDS_FIELD, word) for word in words),
    ]
    is_undo = request.WhichOneof("to") == "undo"
    compute = compute_undo_preview if is_undo else compute_reset_preview
    return compute(request.group_id, shown, words, fields)


async def _carry_out(visit: Visit, group_id: str) -> Outcome:
    request = reset_pb2.ResetOffsetsRequest()
    try:
        request.ParseFromString(unpack(visit.find_field(PLAN_FIELD)))
    except DecodeError:
        raise Refused(400, "The form is not one that a preview has shown.") from None
    request.group_id, request.request_id = group_id, read_request_id(visit)
    request.validate_only, request.preview = False, visit.find_field(TOKEN_FIELD)
    if not request.preview:
        raise Refused(400, "The form has no preview: begin with that.")
    done = await visit.ask("ResetService", "ResetOffsets", request)
    progress = None
    if done.live:
        asked = reset_pb2.GetResetRequest(group_id=group_id)
        progress = await visit.ask("ResetService", "GetReset", asked)
        if progress.group_epoch != done.group_epoch:
            progress = None
    words = [value for _, value in list_fields(visit, _WORDS_FIELD)]
    return compute_reset_outcome(group_id, done, progress, words)


RESET_ACTIONS: Final = (
    Action("reset", _preview_reset, _carry_out),
    Action("undo", _preview_undo, _carry_out),
)
