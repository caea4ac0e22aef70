"""Series of lag, under our names and those of others."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from cli.serve.metrics.compatible_series import write_compatible
from cli.serve.metrics.lag_metrics import collect_lag
from cli.serve.metrics.lag_series import write_lag
from cli.serve.metrics.metrics_settings import (
    BURROW,
    KAFKA_EXPORTER,
    KAFKA_LAG_EXPORTER,
    Granularity,
    MetricsSettings,
)
from tests.unit.cli.serve.metrics.lag_cases import make_lag

Series = dict[tuple[str, ...], float]


def read(lines: Iterable[str]) -> Series:
    """By name and the values of the labels, which are not empty."""
    return {
        (sample.name, *(value for value in sample.labels.values() if value)): sample.value
        for family in text_string_to_metric_families("".join(lines))
        for sample in family.samples
    }


def read_lag(granularity: Granularity) -> Series:
    lag = make_lag()
    return read(write_lag(lag, list(lag.groups.items()), granularity))


def read_names_of(exporter: str) -> Series:
    lag = make_lag()
    settings = MetricsSettings(compatible=frozenset({exporter}), cluster_name='our "own"')
    members = {"billing": 2, "idle": 1}
    return read(write_compatible(settings, lag, list(lag.groups.items()), members))


def test_groups() -> None:
    assert read_lag(Granularity.GROUP) == {
        ("muster_group_lag", "billing"): 25,
        ("muster_group_lag_seconds", "billing"): 2.5,
        ("muster_group_offsets_ahead", "billing"): 2,
        ("muster_group_partitions_without_lag", "billing"): 0,
        ("muster_group_last_commit_timestamp_seconds", "billing"): 1_700_000_000,
        ("muster_group_status", "billing"): 3,
        ("muster_group_partitions_without_lag", "dark"): 1,
        ("muster_group_last_commit_timestamp_seconds", "dark"): 1_700_000_000,
    }


def test_topics() -> None:
    groups, series = read_lag(Granularity.GROUP), read_lag(Granularity.TOPIC)
    assert series.keys() > groups.keys()
    assert {name: series[name] for name in series.keys() - groups.keys()} == {
        ("muster_group_topic_lag", "billing", "orders"): 20,
        ("muster_group_topic_lag", "billing", "payments"): 5,
        ("muster_group_topic_lag_seconds", "billing", "orders"): 2.5,
        ("muster_group_topic_lag_seconds", "billing", "payments"): 2.5,
        ("muster_group_topic_offsets_ahead", "billing", "orders"): 2,
        ("muster_group_topic_offsets_ahead", "billing", "payments"): 0,
    }


def test_partitions() -> None:
    series = read_lag(Granularity.PARTITION)
    assert series["muster_group_partition_lag", "billing", "orders", "0"] == 20
    assert series["muster_group_partition_lag", "billing", "orders", "1"] == 0
    assert series["muster_group_partition_status", "billing", "payments", "3"] == 4
    assert series["muster_group_partition_offset", "dark", "far", "0"] == 8
    assert ("muster_group_partition_lag", "dark", "far", "0") not in series
    assert series["muster_partition_end_offset", "payments", "3"] == 9
    assert series["muster_partition_start_offset", "payments", "3"] == 4
    assert ("muster_partition_end_offset", "far", "0") not in series


@pytest.mark.parametrize("granularity", [Granularity.NONE])
def test_nothing_of_groups(granularity: Granularity) -> None:
    assert not read_lag(granularity)


def test_names_of_kafka_exporter() -> None:
    series = read_names_of(KAFKA_EXPORTER)
    assert series["kafka_consumergroup_lag", "billing", "orders", "0"] == 20
    assert ("kafka_consumergroup_lag", "dark", "far", "0") not in series
    assert series["kafka_consumergroup_current_offset", "dark", "far", "0"] == 8
    assert series["kafka_consumergroup_lag_sum", "billing", "orders"] == 20
    assert series["kafka_consumergroup_current_offset_sum", "billing", "orders"] == 22
    assert {key[1:]: value for key, value in series.items() if key[0].endswith("_members")} == {
        ("billing",): 2,
        ("dark",): 0,
        ("idle",): 1,
    }
    assert series["kafka_topic_partition_current_offset", "orders", "0"] == 30
    assert series["kafka_topic_partition_oldest_offset", "payments", "3"] == 4
    assert not any(name.startswith(("kafka_consumergroup_group", "burrow")) for name, *_ in series)


def test_names_of_kafka_lag_exporter() -> None:
    series = read_names_of(KAFKA_LAG_EXPORTER)
    own = 'our "own"'
    assert series["kafka_consumergroup_group_lag", own, "billing", "orders", "0"] == 20
    assert series["kafka_consumergroup_group_offset", own, "billing", "orders", "0"] == 10
    assert series["kafka_consumergroup_group_lag_seconds", own, "billing", "orders", "1"] == 0
    assert series["kafka_consumergroup_group_max_lag", own, "billing"] == 20
    assert series["kafka_consumergroup_group_max_lag_seconds", own, "billing"] == 2.5
    assert series["kafka_consumergroup_group_sum_lag", own, "billing"] == 25
    assert series["kafka_consumergroup_group_topic_sum_lag", own, "billing", "payments"] == 5
    assert series["kafka_partition_latest_offset", own, "orders", "1"] == 10
    assert series["kafka_partition_earliest_offset", own, "payments", "3"] == 4
    assert ("kafka_consumergroup_group_max_lag", own, "dark") not in series


def test_names_of_burrow() -> None:
    series = read_names_of(BURROW)
    own = 'our "own"'
    assert series["burrow_kafka_consumer_lag_total", own, "billing"] == 25
    assert series["burrow_kafka_consumer_status", own, "billing"] == 3
    assert ("burrow_kafka_consumer_status", own, "dark") not in series
    assert series["burrow_kafka_consumer_partition_lag", own, "billing", "payments", "3"] == 5
    assert series["burrow_kafka_topic_partition_offset", own, "orders", "0"] == 30


def test_the_look_itself() -> None:
    registry = CollectorRegistry()

    class Looks:
        def collect(self) -> Iterable[object]:
            return collect_lag(make_lag(), 160.0)

    registry.register(Looks())  # type: ignore[arg-type]  # what a collector has to have
    assert registry.get_sample_value("muster_lag_age_seconds") == 60
    assert registry.get_sample_value("muster_lag_look_seconds") == 1.5
    assert registry.get_sample_value("muster_lag_groups_omitted") == 3
    assert registry.get_sample_value("muster_lag_groups_failed") == 4
    status = "muster_groups_by_status"
    assert registry.get_sample_value(status, {"status": "ERR"}) == 1
    assert registry.get_sample_value(status, {"status": "OK"}) == 0
