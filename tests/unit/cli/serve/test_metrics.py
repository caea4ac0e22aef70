"""`/metrics` of a real runtime's state."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from cli.serve.figures.upstream_figures import UpstreamFigures, compute_upstream_figures
from cli.serve.metrics import SnapshotCollector, compute_folder_bytes
from cli.serve.snapshot import Snapshot, compute_snapshot
from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic_states import ClassicGroupState
from coordinator.runtime.loop.stats import Histogram
from coordinator.runtime.runtime import Runtime
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from tests.groups import CHECKOUT
from tests.support.imported_groups import make_imported
from tests.support.memory import MemoryLogStore
from upstream.statistics import UpstreamStatistics

CALLER = Caller("User:ANONYMOUS", "client", "/127.0.0.1")
ORDERS = TopicName("orders")
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Wire:
    """The Kafka listener, as the metrics see it."""

    connections = 3
    refusals = {"wrong_first_byte": 2}  # noqa: RUF012


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    runtime = Runtime(MemoryLogStore(4), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    await runtime.call(CreateTopic(CALLER, ORDERS, TopicId(b"t" * 16), 6))
    yield runtime
    await runtime.stop()


async def join(runtime: Runtime, group: str, member: str) -> None:
    await runtime.call(
        ConsumerGroupHeartbeat(
            CALLER,
            GroupId(group),
            MemberId(member),
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(ORDERS,),
            owned=(),
        )
    )


async def commit(runtime: Runtime, group: str, member: str, epoch: int | None) -> None:
    offsets = TopicOffsets(ORDERS, None, make_offset_columns([(0, 5, -1, "")]))
    await runtime.call(OffsetCommit(CALLER, GroupId(group), MemberId(member), epoch, (offsets,)))


def take(runtime: Runtime, upstream: UpstreamFigures | None = None) -> Snapshot:
    return compute_snapshot(
        runtime.shards,
        runtime.image,
        runtime.stats,
        loop_lag=Histogram(),
        collections=Histogram(),
        kafka=Wire(),
        throttled_s={},
        certificates_not_after={"SSL": 2e9},
        is_ready=runtime.ready(),
        upstream=upstream,
    )


def make_registry(snapshot: Snapshot, groups_max: int = 10) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(
        SnapshotCollector(
            snapshot,
            version="1.2.3",
            groups_max=groups_max,
            folder_bytes={"store": 10, "topics": 20},
            free_bytes=99,
        )
    )
    return registry


def read(runtime: Runtime, groups_max: int = 10) -> Series:
    text = generate_latest(make_registry(take(runtime), groups_max)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, tuple(sorted(labels.items()))]


async def test_groups_by_type_and_state(runtime: Runtime) -> None:
    await join(runtime, "billing", "m1")
    await join(runtime, "billing", "m2")
    await commit(runtime, "nightly", "", None)
    series = read(runtime)
    assert value(series, "muster_groups", type="consumer", state="Reconciling") == 1
    assert value(series, "muster_groups", type="consumer", state="Stable") == 0
    assert value(series, "muster_groups", type="classic", state="Empty") == 1
    assert value(series, "muster_members") == 2
    # The first one has not given up what is meant for the second one.
    assert value(series, "muster_members_unconverged") == 2
    assert value(series, "muster_group_members", group="billing") == 2
    (group,) = runtime.groups()
    assert value(series, "muster_group_epoch", group="billing") == group.group_epoch
    assert value(series, "muster_group_assignment_epoch", group="billing") == group.group_epoch


async def test_a_classic_group_has_the_series_that_a_consumer_group_has(runtime: Runtime) -> None:
    await join(runtime, "billing", "m1")
    shard = runtime.shards[runtime.partition_of(GroupId("full"))]
    for record in make_imported("classic", "full", {"members": "a,b"}):
        replay(shard, record)
    series = read(runtime)
    (group,) = (shard.classic_groups[GroupId("full")],)
    members = len(group.members)
    assert members > 0
    assert value(series, "muster_members") == 1 + members
    assert value(series, "muster_group_members", group="full") == members
    assert value(series, "muster_group_epoch", group="full") == group.generation
    assert value(series, "muster_group_assignment_epoch", group="full") == group.generation
    preparing = replace(group, state=ClassicGroupState.PREPARING_REBALANCE, awaiting_joins=0)
    shard.soft.live_classic_groups[GroupId("full")] = preparing
    series = read(runtime)
    assert value(series, "muster_groups", type="classic", state="PreparingRebalance") == 1
    assert value(series, "muster_group_members_unconverged", group="full") == members
    assert value(series, "muster_group_assignment_epoch", group="full") == group.generation - 1


async def test_groups_of_every_type_are_counted(runtime: Runtime) -> None:
    for kind, name, options in (
        ("classic", "full", {"members": "a"}),
        ("classic", "empty", {}),
        ("share", "s", {"epoch": "3", "members": "a"}),
        ("streams", "t", {"epoch": "3"}),
    ):
        shard = runtime.shards[runtime.partition_of(GroupId(name))]
        for record in make_imported(kind, name, options):
            replay(shard, record)
    await commit(runtime, "empty", "", None)
    await commit(runtime, "loose", "", None)
    await commit(runtime, "t", "", None)
    series = read(runtime)
    for kind, state, count in (
        ("classic", "Empty", 2),
        ("classic", "Stable", 1),
        ("share", "Stable", 1),
        ("streams", "Empty", 1),
    ):
        assert value(series, "muster_groups", type=kind, state=state) == count


async def test_what_happened_is_counted(runtime: Runtime) -> None:
    await join(runtime, "billing", "m1")
    (group,) = runtime.groups()
    await commit(runtime, "billing", "m1", group.group_epoch)
    with pytest.raises(GroupError):
        await commit(runtime, "billing", "m1", group.group_epoch + 7)
    with pytest.raises(GroupError):
        await commit(runtime, "billing", "m9", 1)
    series = read(runtime)
    assert value(series, "muster_commands_total", command="ConsumerGroupHeartbeat") == 1
    assert value(series, "muster_commands_total", command="OffsetCommit") == 3
    assert value(series, "muster_offsets_committed_total") == 1
    assert value(series, "muster_fences_total", error="UNKNOWN_MEMBER_ID") == 1
    assert value(series, "muster_errors_total", error="UNKNOWN_MEMBER_ID") == 1
    assert value(series, "muster_rebalances_total", cause="member_joined") >= 1
    assert value(series, "muster_target_assignments_total") >= 1
    assert value(series, "muster_assignor_seconds_count") >= 1
    assert value(series, "muster_log_records_written_total") >= 6
    assert value(series, "muster_log_written_bytes_total") > 0
    flushes = value(series, "muster_log_flush_seconds_count")
    assert flushes == value(series, "muster_log_flushes_total") >= 3
    assert value(series, "muster_log_flush_seconds_bucket", le="+Inf") == flushes


async def test_the_rest_of_the_server(runtime: Runtime) -> None:
    series = read(runtime)
    assert value(series, "muster_build_info", version="1.2.3") == 1
    assert value(series, "muster_ready") == 1
    assert value(series, "muster_topics") == 1
    assert value(series, "muster_topic_partitions") == 6
    assert value(series, "muster_kafka_connections") == 3
    assert value(series, "muster_kafka_connections_refused_total", reason="wrong_first_byte") == 2
    assert value(series, "muster_data_bytes", part="topics") == 20
    assert value(series, "muster_data_free_bytes") == 99


async def test_series_of_groups_are_bounded(runtime: Runtime) -> None:
    for number in range(5):
        await join(runtime, f"g{number}", "m")
    series = read(runtime, groups_max=2)
    shown = {dict(labels)["group"] for name, labels in series if name == "muster_group_members"}
    assert shown == {"g0", "g1"}
    assert value(series, "muster_metrics_groups_omitted") == 3
    assert value(series, "muster_members") == 5


async def test_no_series_names_a_member_or_client(runtime: Runtime) -> None:
    await join(runtime, "billing", "a-member")
    text = generate_latest(make_registry(take(runtime))).decode()
    assert "a-member" not in text
    assert CALLER.client_id not in text


async def test_openmetrics_takes_it_too(runtime: Runtime) -> None:
    await join(runtime, 'odd "name"\n', "m")
    assert b"# EOF" in generate_openmetrics(make_registry(take(runtime)))


async def test_a_snapshot_does_not_change_with_the_server(runtime: Runtime) -> None:
    snapshot = take(runtime)
    before = generate_latest(make_registry(snapshot))
    await join(runtime, "billing", "m1")
    assert generate_latest(make_registry(snapshot)) == before


async def test_the_page_lists_every_metric_and_no_other(runtime: Runtime) -> None:
    upstream = compute_upstream_figures(UpstreamStatistics(), is_reachable=True, places=())
    families = make_registry(take(runtime, upstream)).collect()
    served = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    page = (CHECKOUT / "docs/metrics.md").read_text()
    listed = set(re.findall(r"^\| `(muster_\w+)`", page, re.MULTILINE))
    assert listed == served


def test_the_size_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 5_000)
    (tmp_path / "c").write_bytes(b"y" * 10)
    assert compute_folder_bytes(tmp_path) - compute_folder_bytes(tmp_path / "a") >= 10
    assert compute_folder_bytes(tmp_path / "gone") == 0
