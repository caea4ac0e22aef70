"""Which groups a list shows, in which order, and which of them are on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from coordinator.runtime.loop.slices import Steps
from coordinator.runtime.topics.regex_matches import Slice
from coordinator.service.admin.description_messages import decode_states, decode_types
from coordinator.service.admin.upstream.upstream_messages import check_pattern
from coordinator.service.wire.answer_slices import SLICE
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import Page
from model.ids import GroupId, TopicName
from model.responses.groups import ListedGroup
from muster.v1 import admin_pb2

_INT_MAX: Final = 2**31 - 1


def _compute_members_key(group: ListedGroup) -> str:
    return f"{_INT_MAX - group.members:010d}{group.group_id}"


def _compute_epoch_key(group: ListedGroup) -> str:
    return f"{_INT_MAX - group.group_epoch:010d}{group.group_id}"


_KEYS: Final[dict[int, Callable[[ListedGroup], str]]] = {
    admin_pb2.GROUP_ORDER_UNSPECIFIED: lambda group: group.group_id,
    admin_pb2.GROUP_ORDER_ID: lambda group: group.group_id,
    admin_pb2.GROUP_ORDER_MEMBERS: _compute_members_key,
    admin_pb2.GROUP_ORDER_EPOCH: _compute_epoch_key,
    admin_pb2.GROUP_ORDER_STATE: lambda group: f"{group.state}\0{group.group_id}",
    admin_pb2.GROUP_ORDER_TYPE: lambda group: f"{group.group_type}\0{group.group_id}",
}


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """What a list asks for; the coordinator itself knows states and types."""

    states: tuple[str, ...]
    types: tuple[str, ...]
    protocol_types: frozenset[str]
    pattern: str
    order: int
    frozen: bool
    topic: TopicName | None = None

    def as_values(self) -> tuple[object, ...]:
        """What a page token holds good for. Without an order it is the same as by ids."""
        order = self.order or admin_pb2.GROUP_ORDER_ID
        protocol_types = sorted(self.protocol_types)
        values = self.states, self.types, protocol_types, self.pattern, order, self.topic
        return (*values, "frozen") if self.frozen else values


class GroupPage(NamedTuple):
    """The groups of a page, the key of the last one if more follow, and how many there are."""

    groups: Sequence[ListedGroup]
    last_key: str | None
    total: int


def decode_group_filter(request: admin_pb2.ListGroupsRequest) -> GroupFilter:
    """Decode what is asked for; raises ``InvalidField``."""
    if request.pattern:
        check_pattern(request.pattern)
    if request.order not in _KEYS:
        raise InvalidField("order", f"{request.order} is no order of groups")
    return GroupFilter(
        decode_states(request.states),
        decode_types(request.types),
        frozenset(request.protocol_types),
        request.pattern,
        request.order,
        request.frozen,
        TopicName(request.topic_name) if request.topic_name else None,
    )


def compute_group_page(
    groups: Sequence[ListedGroup],
    means: GroupFilter,
    may_see: Callable[[GroupId], bool],
    page: Page,
) -> Steps[GroupPage]:
    """The page of a list, in time linear in the groups, a slice at a time.

    Only twice as many as fit on the page are sorted and kept.
    """
    key_of = _KEYS[means.order]
    kept: list[tuple[str, ListedGroup]] = []
    most, total = page.size + 1, 0
    rest = iter(groups)
    regexes = Slice()
    while taken := list(islice(rest, SLICE)):
        for group in (yield from _select(taken, means, regexes)):
            if not may_see(group.group_id):
                continue
            total += 1
            key = key_of(group)
            if page.after is None or key > page.after:
                kept.append((key, group))
        if len(kept) >= 2 * most + SLICE:
            kept.sort(key=lambda row: row[0])
            del kept[most:]
        yield
    kept.sort(key=lambda row: row[0])
    shown = kept[: page.size]
    last_key = shown[-1][0] if len(kept) > page.size else None
    return GroupPage([group for _, group in shown], last_key, total)


def _select(
    groups: Sequence[ListedGroup], means: GroupFilter, regexes: Slice
) -> Steps[Sequence[ListedGroup]]:
    """The groups of these protocol types, frozen or not, that the pattern matches."""
    if means.frozen:
        groups = [group for group in groups if group.frozen_since_ms]
    if means.protocol_types:
        groups = [group for group in groups if group.protocol_type in means.protocol_types]
    if not means.pattern:
        return groups
    names = [TopicName(group.group_id) for group in groups]
    found = yield from regexes.match(means.pattern, names)
    return [group for group, name in zip(groups, names, strict=True) if name in found]
