"""The names of kafka_exporter, kafka-lag-exporter and Burrow, for boards that know these.

Names, labels and meaning are theirs, but for two things: what is not known has no series, where
kafka_exporter says -1; and the labels of kafka-lag-exporter that name members are empty, as series
of members that are gone would stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from cli.serve.lag.lag_figures import GroupLag, LagFigures
from cli.serve.metrics.lag_series import label_partition, to_seconds, write_family
from cli.serve.metrics.metrics_settings import (
    BURROW,
    KAFKA_EXPORTER,
    KAFKA_LAG_EXPORTER,
    MetricsSettings,
)
from cli.serve.metrics.series_text import escape_label
from model.ids import TopicName


def write_compatible(
    settings: MetricsSettings,
    figures: LagFigures,
    groups: Sequence[tuple[str, GroupLag]],
    members: Mapping[str, int],
) -> Iterator[str]:
    """The lines of all sets of names that are asked for. ``members`` of each group with any."""
    cluster = escape_label(settings.cluster_name)
    if KAFKA_EXPORTER in settings.compatible:
        yield from _write_kafka_exporter(figures, groups, members)
    if KAFKA_LAG_EXPORTER in settings.compatible:
        yield from _write_kafka_lag_exporter(cluster, figures, groups)
    if BURROW in settings.compatible:
        yield from _write_burrow(cluster, figures, groups)


def _write_kafka_exporter(
    figures: LagFigures, groups: Sequence[tuple[str, GroupLag]], members: Mapping[str, int]
) -> Iterator[str]:
    rows = [
        (label_partition("consumergroup", name, row.topic, row.partition), row)
        for name, group in groups
        for row in group.rows
    ]
    topics = [
        (
            f'consumergroup="{escape_label(name)}",topic="{escape_label(topic)}"',
            sums,
        )
        for name, group in groups
        for topic, sums in group.topics.items()
    ]
    yield from write_family(
        "kafka_consumergroup_current_offset",
        "Current Offset of a ConsumerGroup at Topic/Partition",
        ((labels, row.committed) for labels, row in rows),
    )
    yield from write_family(
        "kafka_consumergroup_lag",
        "Current Approximate Lag of a ConsumerGroup at Topic/Partition",
        ((labels, row.lag) for labels, row in rows),
    )
    yield from write_family(
        "kafka_consumergroup_current_offset_sum",
        "Current Offset of a ConsumerGroup at Topic for all partitions",
        ((labels, sums.committed) for labels, sums in topics),
    )
    yield from write_family(
        "kafka_consumergroup_lag_sum",
        "Current Approximate Lag of a ConsumerGroup at Topic for all partitions",
        ((labels, sums.lag) for labels, sums in topics),
    )
    names = {name: 0 for name, _ in groups} | dict(members)
    yield from write_family(
        "kafka_consumergroup_members",
        "Amount of members in a consumer group",
        ((f'consumergroup="{escape_label(name)}"', count) for name, count in names.items()),
    )
    yield from _write_ends(
        figures,
        "",
        ("kafka_topic_partition_oldest_offset", "Oldest Offset of a Broker at Topic/Partition"),
        ("kafka_topic_partition_current_offset", "Current Offset of a Broker at Topic/Partition"),
    )


def _write_kafka_lag_exporter(
    cluster: str, figures: LagFigures, groups: Sequence[tuple[str, GroupLag]]
) -> Iterator[str]:
    head = f'cluster_name="{cluster}"'
    rows = [
        (
            f"{head},{label_partition('group', name, row.topic, row.partition)},"
            'member_host="",consumer_id="",client_id=""',
            row,
        )
        for name, group in groups
        for row in group.rows
    ]
    yield from write_family(
        "kafka_consumergroup_group_offset",
        "Last group consumed offset of a partition",
        ((labels, row.committed) for labels, row in rows),
    )
    yield from write_family(
        "kafka_consumergroup_group_lag",
        "Group offset lag of a partition",
        ((labels, row.lag) for labels, row in rows),
    )
    yield from write_family(
        "kafka_consumergroup_group_lag_seconds",
        "Group time lag of a partition",
        ((labels, to_seconds(row.lag_ms)) for labels, row in rows),
    )
    of_groups = [(f'{head},group="{escape_label(name)}"', group) for name, group in groups]
    yield from write_family(
        "kafka_consumergroup_group_max_lag",
        "Max group offset lag",
        (
            (labels, max((row.lag for row in group.rows if row.lag is not None), default=None))
            for labels, group in of_groups
        ),
    )
    yield from write_family(
        "kafka_consumergroup_group_max_lag_seconds",
        "Max group time lag",
        ((labels, to_seconds(group.sums.lag_ms)) for labels, group in of_groups),
    )
    yield from write_family(
        "kafka_consumergroup_group_sum_lag",
        "Sum of group offset lag",
        ((labels, group.sums.lag) for labels, group in of_groups),
    )
    yield from write_family(
        "kafka_consumergroup_group_topic_sum_lag",
        "Sum of group offset lag across topic partitions",
        (
            (f'{labels},topic="{escape_label(topic)}"', sums.lag)
            for labels, group in of_groups
            for topic, sums in group.topics.items()
        ),
    )
    yield from _write_ends(
        figures,
        head + ",",
        ("kafka_partition_earliest_offset", "Earliest offset of a partition"),
        ("kafka_partition_latest_offset", "Latest offset of a partition"),
    )


def _write_burrow(
    cluster: str, figures: LagFigures, groups: Sequence[tuple[str, GroupLag]]
) -> Iterator[str]:
    head = f'cluster="{cluster}"'
    of_groups = [(f'{head},consumer_group="{escape_label(name)}"', group) for name, group in groups]
    rows = [
        (f"{head},{label_partition('consumer_group', name, row.topic, row.partition)}", row)
        for name, group in groups
        for row in group.rows
    ]
    yield from write_family(
        "burrow_kafka_consumer_lag_total",
        "The sum of all partition current lag values for the group",
        ((labels, group.sums.lag) for labels, group in of_groups),
    )
    yield from write_family(
        "burrow_kafka_consumer_status",
        "The status of the consumer group: NOTFOUND, OK, WARN, ERR, STOP, STALL, REWIND from 0 on",
        ((labels, int(group.status) or None) for labels, group in of_groups),
    )
    yield from write_family(
        "burrow_kafka_consumer_current_offset",
        "Latest offset that is stored for this partition",
        ((labels, row.committed) for labels, row in rows),
    )
    yield from write_family(
        "burrow_kafka_consumer_partition_lag",
        "Number of messages the consumer group is behind by for a partition",
        ((labels, row.lag) for labels, row in rows),
    )
    yield from write_family(
        "burrow_kafka_topic_partition_offset",
        "Latest offset of the topic that is stored for this partition",
        (
            (f"{head},{_label_place(topic, number)}", ends.end)
            for (topic, number), ends in figures.ends.items()
        ),
    )


def _write_ends(
    figures: LagFigures, head: str, start: tuple[str, str], end: tuple[str, str]
) -> Iterator[str]:
    places = [
        (f"{head}{_label_place(topic, number)}", ends)
        for (topic, number), ends in figures.ends.items()
    ]
    return chain(
        write_family(*start, ((labels, ends.start) for labels, ends in places)),
        write_family(*end, ((labels, ends.end) for labels, ends in places)),
    )


def _label_place(topic: TopicName, partition: int) -> str:
    return f'topic="{escape_label(topic)}",partition="{partition}"'
