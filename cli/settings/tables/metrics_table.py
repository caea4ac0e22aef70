"""The part of the table of settings for `/metrics`."""

from __future__ import annotations

from cli.settings.setting import Kind, Scope, Setting

METRICS_SETTINGS = (
    Setting(
        "metrics.groups.max",
        Kind.INT,
        10_000,
        Scope.SERVER,
        "The maximum number of groups with series of their own in `/metrics`.",
    ),
    Setting(
        "metrics.granularity",
        Kind.STRING,
        "topic",
        Scope.SERVER,
        "The finest series in `/metrics`: `none` has totals alone, `group` a series for each "
        "group, `topic` also one for each topic of a group, `partition` for each partition. With "
        "`none` the lag of groups is not looked at.",
        choices=("none", "group", "topic", "partition"),
    ),
    Setting(
        "metrics.partitions.max",
        Kind.INT,
        100_000,
        Scope.SERVER,
        "The maximum number of partitions whose lag is looked at, over all groups. Groups beyond "
        "it have no lag in `/metrics`.",
    ),
    Setting(
        "metrics.lag.interval.ms",
        Kind.INT,
        30_000,
        Scope.SERVER,
        "How often the lag of all groups is looked at. A look takes at most a twentieth of the "
        "event loop's time, and with very many groups thus longer than this.",
        minimum=1_000,
    ),
    Setting(
        "metrics.compatible",
        Kind.LIST,
        None,
        Scope.SERVER,
        "Whose names `/metrics` has beside its own, so that boards that know them work: see "
        "[metrics](metrics.md#names-of-other-exporters).",
        choices=("kafka_exporter", "kafka-lag-exporter", "burrow"),
    ),
    Setting(
        "metrics.cluster.name",
        Kind.STRING,
        None,
        Scope.SERVER,
        "The name of the cluster in the names of other exporters. By default, the cluster id.",
    ),
)
