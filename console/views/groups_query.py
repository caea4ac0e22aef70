"""What the list of groups is asked for, as it stands in the address."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from console.urls import make_url
from muster.v1 import admin_pb2
from wording.errors import InputError
from wording.groups import render_group_state, render_type
from wording.numbers import parse_digits

SEARCH_CHARS_MAX: Final = 80
PAGE_MAX: Final = 1_000_000

TYPES: Final[Mapping[str, int]] = {
    render_type(number): number for number in admin_pb2.GroupType.values() if number
}
STATES: Final[Mapping[str, int]] = {
    render_group_state(number): number for number in admin_pb2.GroupState.values() if number
}
"""By the words of Kafka's tools."""


class Sort(Enum):
    """Orders of groups; each has its natural direction."""

    ID = "id"
    TYPE = "type"
    STATE = "state"
    MEMBERS = "members"
    EPOCH = "epoch"
    LAG = "lag"
    REBALANCE = "rebalance"

    @property
    def is_listed(self) -> bool:
        """Whether the server lists groups in this order."""
        return self not in (Sort.LAG, Sort.REBALANCE)


@dataclass(frozen=True, slots=True)
class GroupsQuery:
    """``search`` is part of an id, in any case; ``group_type`` and ``state`` are names or empty."""

    search: str = ""
    group_type: str = ""
    state: str = ""
    sort: Sort = Sort.ID
    page: int = 1

    @property
    def filters(self) -> tuple[object, ...]:
        """What makes it another list."""
        return (self.search, self.group_type, self.state, self.sort)

    def make_request(self, page_size: int, page_token: str) -> admin_pb2.ListGroupsRequest:
        """The request of the list, in an order that the server has."""
        sort = self.sort if self.sort.is_listed else Sort.ID
        return admin_pb2.ListGroupsRequest(
            page_size=page_size,
            page_token=page_token,
            types=[TYPES[self.group_type]] if self.group_type else (),  # type: ignore[list-item]
            states=[STATES[self.state]] if self.state else (),  # type: ignore[list-item]
            pattern=self.compute_pattern(),
            order=f"GROUP_ORDER_{sort.name}",
        )

    def matches(self, group: admin_pb2.GroupSummary) -> bool:
        """Whether a group is on the list."""
        return (
            (not self.search or self.search.lower() in group.group_id.lower())
            and (not self.group_type or group.group_type == TYPES[self.group_type])
            and (not self.state or group.state == STATES[self.state])
        )

    def compute_pattern(self) -> str:
        """The search as a regular expression of the whole id (RE2); empty for all."""
        return f"(?is).*{''.join(map(_quote, self.search))}.*" if self.search else ""

    def make_url(self, **changes: object) -> str:
        """The address of this list, or of a changed one."""
        asked = replace(self, **changes)  # type: ignore[arg-type]
        return make_url(
            "groups",
            q=asked.search,
            type=asked.group_type,
            state=asked.state,
            sort=None if asked.sort is Sort.ID else asked.sort.value,
            page=None if asked.page == 1 else asked.page,
        )

    def make_command(self) -> str:
        """The ``muster`` command that shows the same."""
        words = ["muster", "group", "list"]
        if self.search:
            words += ["--pattern", self.compute_pattern()]
        if self.group_type:
            words += ["--type", self.group_type]
        if self.state:
            words += ["--state", self.state]
        if self.sort.is_listed and self.sort is not Sort.ID:
            words += ["--order", self.sort.value]
        return shlex.join(words)


def parse_groups_query(asked: Mapping[str, str]) -> GroupsQuery:
    """Read the query of an address. Raises ``InputError``."""
    search = asked.get("q", "")
    if len(search) > SEARCH_CHARS_MAX:
        raise InputError(f"Search for at most {SEARCH_CHARS_MAX} characters.")
    sort = asked.get("sort", "") or Sort.ID.value
    if sort not in {each.value for each in Sort}:
        raise InputError(f"sort is one of {', '.join(each.value for each in Sort)}.")
    page = parse_digits(asked.get("page", "") or "1", 19)
    if page is None or not 0 < page <= PAGE_MAX:
        raise InputError("page is a number from 1.")
    group_type, state = _find("type", asked, TYPES), _find("state", asked, STATES)
    return GroupsQuery(search, group_type, state, Sort(sort), page)


def _find(key: str, asked: Mapping[str, str], known: Mapping[str, int]) -> str:
    text = asked.get(key, "")
    found = next((name for name in known if name.lower() == text.lower()), "")
    if text and not found:
        raise InputError(f"{key} is one of {', '.join(known)}.")
    return found


def _quote(char: str) -> str:
    return char if char.isascii() and (char.isalnum() or char in "-_") else f"\\x{{{ord(char):x}}}"
