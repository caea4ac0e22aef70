"""Series of the lag of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from cli.serve.lag.lag_figures import GroupLag, LagFigures, PartitionLag, Sums
from cli.serve.metrics.metrics_settings import Granularity
from cli.serve.metrics.series_text import escape_label, head_lines

Figure: TypeAlias = float | None
"""``None`` gives no line: what is not known has no series."""

_OF_GROUP: Final[tuple[tuple[str, str, Callable[[GroupLag], Figure]], ...]] = (
    (
        "muster_group_lag",
        "Records after the committed offsets of the group.",
        lambda group: group.sums.lag,
    ),
    (
        "muster_group_lag_seconds",
        "Age of the first record after a committed offset, of the partition with the oldest.",
        lambda group: to_seconds(group.sums.lag_ms),
    ),
    (
        "muster_group_offsets_ahead",
        "How far committed offsets are beyond the ends of their partitions.",
        lambda group: group.sums.ahead,
    ),
    (
        "muster_group_partitions_without_lag",
        "Partitions with a committed offset whose lag is not known.",
        lambda group: group.sums.unknown,
    ),
    (
        "muster_group_last_commit_timestamp_seconds",
        "When the group committed last, in seconds since 1970.",
        lambda group: to_seconds(group.sums.committed_ms),
    ),
    (
        "muster_group_status",
        "The group by the rules of Burrow: 1 OK, 2 WARN, 3 ERR.",
        lambda group: int(group.status) or None,
    ),
)
_OF_TOPIC: Final[tuple[tuple[str, str, Callable[[Sums], Figure]], ...]] = (
    (
        "muster_group_topic_lag",
        "Records of the topic after the committed offsets of the group.",
        lambda sums: sums.lag,
    ),
    (
        "muster_group_topic_lag_seconds",
        "Age of the first record of the topic after a committed offset.",
        lambda sums: to_seconds(sums.lag_ms),
    ),
    (
        "muster_group_topic_offsets_ahead",
        "How far committed offsets are beyond the ends of the partitions of the topic.",
        lambda sums: sums.ahead,
    ),
)
_OF_PARTITION: Final[tuple[tuple[str, str, Callable[[PartitionLag], Figure]], ...]] = (
    ("muster_group_partition_offset", "The committed offset.", lambda row: row.committed),
    (
        "muster_group_partition_lag",
        "Records of the partition after the committed offset.",
        lambda row: row.lag,
    ),
    (
        "muster_group_partition_lag_seconds",
        "Age of the first record after the committed offset.",
        lambda row: to_seconds(row.lag_ms),
    ),
    (
        "muster_group_partition_status",
        "The partition by the rules of Burrow: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND.",
        lambda row: None if row.status is None else int(row.status),
    ),
)


def to_seconds(value_ms: int | None) -> float | None:
    """Milliseconds, if known, as seconds."""
    return None if value_ms is None else value_ms / 1_000


def write_family(name: str, text: str, rows: Iterable[tuple[str, Figure]]) -> Iterator[str]:
    """The lines of a gauge; a row has its labels, and the figure if it is known."""
    yield head_lines(name, text)
    for labels, figure in rows:
        if figure is not None:
            yield f"{name}{{{labels}}} {figure}\n"


def write_lag(
    figures: LagFigures, groups: Sequence[tuple[str, GroupLag]], granularity: Granularity
) -> Iterator[str]:
    """The lines of all families down to the granularity."""
    if granularity >= Granularity.GROUP:
        of_groups = [(f'group="{escape_label(name)}"', group) for name, group in groups]
        for name, text, group_figure in _OF_GROUP:
            yield from write_family(
                name, text, ((labels, group_figure(group)) for labels, group in of_groups)
            )
    if granularity >= Granularity.TOPIC:
        of_topics = [
            (f'{labels},topic="{escape_label(topic)}"', sums)
            for labels, group in of_groups
            for topic, sums in group.topics.items()
        ]
        for name, text, sums_figure in _OF_TOPIC:
            yield from write_family(
                name, text, ((labels, sums_figure(sums)) for labels, sums in of_topics)
            )
    if granularity >= Granularity.PARTITION:
        yield from _write_partitions(figures, groups)


def _write_partitions(figures: LagFigures, groups: Sequence[tuple[str, GroupLag]]) -> Iterator[str]:
    rows = [
        (label_partition("group", name, row.topic, row.partition), row)
        for name, group in groups
        for row in group.rows
    ]
    for name, text, figure in _OF_PARTITION:
        yield from write_family(name, text, ((labels, figure(row)) for labels, row in rows))
    ends = [
        (f'topic="{escape_label(topic)}",partition="{number}"', ends)
        for (topic, number), ends in figures.ends.items()
    ]
    for name, text, place in (
        ("muster_partition_start_offset", "The first offset of the partition.", 0),
        ("muster_partition_end_offset", "The offset after the last record of the partition.", 1),
    ):
        yield from write_family(name, text, ((labels, found[place]) for labels, found in ends))


def label_partition(group_label: str, group: str, topic: str, partition: int) -> str:
    """The labels of a partition of a group."""
    return (
        f'{group_label}="{escape_label(group)}",topic="{escape_label(topic)}",'
        f'partition="{partition}"'
    )
