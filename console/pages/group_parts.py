"""What the pages of one group share: its id, its rows as HTML, and positions of the past."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from markupsafe import Markup

from console.live.fragments import Fragments, Render
from console.refusals import Refused
from console.site import Crumb, Visit
from console.urls import make_url
from console.views.partitions_view import ROWS_MAX
from muster.v1 import types_pb2
from wording.errors import InputError
from wording.numbers import parse_digits
from wording.positions import parse_as_of

SECTIONS: Final = (
    "facts", "waits", "more-waits", "members", "partitions", "timeline", "counts",
)  # fmt: skip
_PAGE_MAX: Final = 1_000_000 // ROWS_MAX


def get_group_id(visit: Visit) -> str:
    """The group that the address names."""
    group_id: str = visit.request.path_params["id"]
    return group_id


async def load_render(visit: Visit, group_id: str) -> Render:
    """What renders the rows of the group."""
    macros: Any = await visit.site.renderer.load_macros("group_rows.html")
    by_section = {name: getattr(macros, name.replace("-", "_")) for name in SECTIONS}

    def render(section: str, view: object, key: str) -> str:
        return str(by_section[section](view, group_id, key))

    return render


def join_sections(fragments: Fragments) -> Mapping[str, Markup]:
    """The rows of each section; they were escaped when they were rendered."""
    return MappingProxyType({name: Markup(fragments.join(name)) for name in SECTIONS})


def parse_at(visit: Visit) -> types_pb2.AsOf | None:
    """The position that the address asks for; ``None`` for the present. Raises ``Refused``."""
    text = visit.request.query_params.get("at", "").strip()
    if not text:
        return None
    try:
        return parse_as_of("at", text, read_wall_ms)
    except InputError as error:
        raise Refused(400, str(error)) from None


def parse_page(visit: Visit) -> int:
    """The page that the address asks for, from 1. Raises ``Refused``."""
    return parse_number(visit, "page", 1, _PAGE_MAX, default=1)


def parse_number(visit: Visit, name: str, least: int, most: int, *, default: int) -> int:
    """A number of the query. Raises ``Refused``."""
    text = visit.request.query_params.get(name, "")
    if not text:
        return default
    number = parse_digits(text, 19)
    if number is not None and least <= number <= most:
        return number
    raise Refused(400, f"{name} is a number from {least} to {most}")


def render_as_of(as_of: types_pb2.AsOf) -> str:
    """As `--as-of` takes it."""
    if as_of.WhichOneof("position") == "offset":
        return f"offset:{as_of.offset}"
    return str(as_of.timestamp_ms)


def make_crumbs(group_id: str, *further: str) -> tuple[Crumb, ...]:
    """The way to a page of the group."""
    if not further:
        return (Crumb("Groups", make_url("groups")), Crumb(group_id))
    return (
        Crumb("Groups", make_url("groups")),
        Crumb(group_id, make_url("groups", group_id)),
        *map(Crumb, further),
    )


def read_wall_ms() -> int:
    return time.time_ns() // 1_000_000
