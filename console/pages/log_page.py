"""The log: records of a group, or of a log partition, decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from console.pages.group_parts import read_wall_ms
from console.site import Crumb, Head, Page, Visit
from console.urls import make_url
from console.views.log_view import LogView, compute_log_view
from muster.v1 import record_pb2
from storage.codec.record_filters import TYPES
from wording.commands import render_command
from wording.errors import InputError
from wording.numbers import parse_digits
from wording.times import parse_moment

PAGE_SIZE: Final = 50
EMPTY_MAX: Final = 20
"""Pages without a record that are gone through until one is shown."""

FIELDS: Final = ("group", "partition", "type", "since", "until", "before", "after")


def read_request(query: Mapping[str, str]) -> record_pb2.ListRecordsRequest | None:
    """What the address asks for; ``None`` for nothing yet. Raises ``InputError``."""
    given = {name: query.get(name, "").strip() for name in FIELDS}
    # An id may begin or end with blanks.
    given["group"] = query.get("group", "")
    if not given["group"] and not given["partition"]:
        return None
    request = record_pb2.ListRecordsRequest(
        group_id=given["group"],
        types=[given["type"]] if given["type"] else [],
        page_size=PAGE_SIZE,
        page_token=given["after"],
    )
    if not given["group"]:
        request.log_partition = _parse_number("partition", given["partition"], 31)
    if given["since"]:
        request.since_ms = parse_moment("since", given["since"], read_wall_ms)
    if given["until"]:
        request.until_ms = parse_moment("until", given["until"], read_wall_ms)
    if given["before"]:
        request.before_offset = _parse_number("before", given["before"], 63)
    return request


def _parse_number(what: str, text: str, bits: int) -> int:
    number = parse_digits(text, 19)
    if number is None or number >= 1 << bits:
        raise InputError(f"{what} {text!r} is not a number")
    return number


async def show_log(visit: Visit) -> Response:
    """The form, and the records that its address asks for, the last one first."""
    query = visit.request.query_params
    request = read_request(query)
    view: LogView | None = None
    older_url = ""
    if request is not None:
        answer = await _ask(visit, request)
        view = compute_log_view(answer, request.group_id)
        if answer.next_page_token:
            # Ages would be others by the next page.
            kept = {name: query.get(name, "") for name in FIELDS}
            kept["since"], kept["until"] = str(request.since_ms or ""), str(request.until_ms or "")
            older_url = make_url("log", **{**kept, "after": answer.next_page_token})
    head = Head("Log", "log", (Crumb("Log"),), _render_command(query), styles=("actions.css",))
    return await visit.render(
        "log.html",
        head,
        view=view,
        older_url=older_url,
        given={name: query.get(name, "") for name in FIELDS},
        types=TYPES,
    )


async def _ask(
    visit: Visit, request: record_pb2.ListRecordsRequest
) -> record_pb2.ListRecordsResponse:
    """A page with a record, unless there is none far and wide."""
    for _ in range(EMPTY_MAX):
        answer: record_pb2.ListRecordsResponse = await visit.ask(
            "RecordService", "ListRecords", request
        )
        if answer.records or not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    return answer


def _render_command(query: Mapping[str, str]) -> str:
    options = (
        ("group", "--group"),
        ("partition", "--partition"),
        ("type", "--type"),
        ("since", "--since"),
        ("until", "--until"),
    )
    words = [word for name, option in options if query.get(name) for word in (option, query[name])]
    return render_command("log", "dump", "DATA_DIR", *words)


LOG_PAGES: Final = (Page("/log", show_log),)
