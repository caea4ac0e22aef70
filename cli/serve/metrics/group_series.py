"""Series of each group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Final

from cli.serve.figures.group_figures import AllGroups, GroupFigures
from cli.serve.metrics.series_text import escape_label, head_lines

FAMILIES: Final = (
    ("muster_group_members", "Members of the group.", 2),
    (
        "muster_group_members_unconverged",
        "Members that have not reached the target assignment.",
        3,
    ),
    ("muster_group_epoch", "Group epoch.", 4),
    ("muster_group_assignment_epoch", "Target assignment epoch.", 5),
)
"""Name, text, and the place of the figure in ``GroupFigures``."""


def choose_groups(groups: AllGroups, groups_max: int) -> tuple[list[GroupFigures], int]:
    """The first groups by name, and how many others there are."""
    first = itemgetter(0)
    # Sorted apart: one call that sorts all of them would stop the event loop for as long.
    shards = [sorted(shard, key=first) for shard in groups.shards]
    chosen = list(islice(merge(*shards, key=first), groups_max))
    return chosen, sum(map(len, groups.shards)) - len(chosen)


def write_groups(groups: Sequence[GroupFigures]) -> Iterator[str]:
    """The lines of all families."""
    labels = [f'{{group="{escape_label(group.group_id)}"}}' for group in groups]
    for name, text, place in FAMILIES:
        yield head_lines(name, text)
        for label, group in zip(labels, groups, strict=True):
            yield f"{name}{label} {group[place]}\n"
