"""`/metrics` of a real runtime's state."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from cli.serve.figures import group_figures
from cli.serve.figures.snapshot import Snapshot, take_snapshot
from cli.serve.figures.upstream_figures import UpstreamFigures, compute_upstream_figures
from cli.serve.lag.lag_figures import LagFigures
from cli.serve.metrics.metrics_settings import (
    COMPATIBLE,
    KAFKA_EXPORTER,
    Granularity,
    MetricsSettings,
)
from cli.serve.metrics.scrapes import Scrapes, compute_folder_bytes
from cli.serve.traces.traces import TraceFigures
from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.runtime.loop.slices import Steps, run_at_once
from coordinator.runtime.loop.stats import Histogram, Histograms
from coordinator.runtime.runtime import Runtime
from model.caller import Caller
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from muster.assignors import embedded
from tests.groups import CHECKOUT
from tests.support.imported_groups import make_imported
from tests.support.memory import MemoryLogStore
from tests.unit.cli.serve.metrics.lag_cases import make_lag
from upstream.statistics import UpstreamStatistics

CALLER = Caller("User:ANONYMOUS", "client", "/127.0.0.1")
ORDERS = TopicName("orders")
OPEN_METRICS = "application/openmetrics-text"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Wire:
    """The Kafka listener, as the metrics see it."""

    connections = 3
    refusals = {"wrong_first_byte": 2}  # noqa: RUF012
    request_seconds = Histograms()

    def count_parked(self) -> int:
        return 4


class Calls:
    """The gRPC listener, likewise."""

    sessions = 5
    call_seconds = Histograms()


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


def take(runtime: Runtime, upstream: UpstreamFigures | None = None) -> Steps[Snapshot]:
    return take_snapshot(
        runtime,
        loop_lag=Histogram(),
        collections=Histogram(),
        kafka=Wire(),
        grpc=Calls(),
        throttled_s={},
        certificates_not_after={"SSL": 2e9},
        is_ready=runtime.ready(),
        upstream=upstream,
        traces=TraceFigures(3, {"queue_full": 2}),
    )


def make_scrapes(
    begin: Callable[[], Steps[Snapshot]],
    groups_max: int = 10,
    folder: Path = CHECKOUT,
    lag: LagFigures | None = None,
    compatible: Iterable[str] = (),
) -> Scrapes:
    """What answers scrapes; the data folder has nothing in it."""
    return Scrapes(
        begin,
        lambda: lag,
        MetricsSettings(Granularity.PARTITION, groups_max, frozenset(compatible), "c"),
        version="1.2.3",
        data=folder,
        folders={"store": folder / "none", "topics": folder / "neither"},
    )


async def scrape(runtime: Runtime, groups_max: int = 10, accept: str = "") -> str:
    _, parts = await make_scrapes(lambda: take(runtime), groups_max).answer(accept)
    return b"".join(parts).decode()


async def read(runtime: Runtime, groups_max: int = 10) -> Series:
    text = await scrape(runtime, groups_max)
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
    series = await read(runtime)
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
    series = await read(runtime)
    (group,) = (shard.classic_groups[GroupId("full")],)
    members = len(group.members)
    assert members > 0
    assert value(series, "muster_members") == 1 + members
    assert value(series, "muster_group_members", group="full") == members
    assert value(series, "muster_group_epoch", group="full") == group.generation
    assert value(series, "muster_group_assignment_epoch", group="full") == group.generation
    preparing = replace(group, state=ClassicGroupState.PREPARING_REBALANCE, awaiting_joins=0)
    shard.soft.live_classic_groups[GroupId("full")] = preparing
    series = await read(runtime)
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
    series = await read(runtime)
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
    series = await read(runtime)
    assert value(series, "muster_commands_total", command="ConsumerGroupHeartbeat") == 1
    assert value(series, "muster_commands_total", command="OffsetCommit") == 3
    assert value(series, "muster_offsets_committed_total") == 1
    assert value(series, "muster_fences_total", error="UNKNOWN_MEMBER_ID") == 1
    assert value(series, "muster_errors_total", error="UNKNOWN_MEMBER_ID") == 1
    assert value(series, "muster_rebalances_total", type="consumer", cause="member_joined") >= 1
    assert value(series, "muster_target_assignments_total") >= 1
    assert value(series, "muster_assignor_seconds_count") >= 1
    assert value(series, "muster_log_records_written_total") >= 6
    assert value(series, "muster_log_written_bytes_total") > 0
    flushes = value(series, "muster_log_flush_seconds_count")
    assert flushes == value(series, "muster_log_flushes_total") >= 3
    assert value(series, "muster_log_flush_seconds_bucket", le="+Inf") == flushes


async def test_a_rebalance_lasts_until_all_have_their_partitions(runtime: Runtime) -> None:
    await join(runtime, "billing", "m1")
    series = await read(runtime)
    # A lone member has its partitions with its answer.
    assert value(series, "muster_rebalance_seconds_count", type="consumer") == 1
    assert value(series, "muster_groups_rebalancing", type="consumer") == 0
    assert ("muster_rebalance_oldest_seconds", (("type", "consumer"),)) not in series
    await join(runtime, "billing", "m2")
    series = await read(runtime)
    assert value(series, "muster_rebalance_seconds_count", type="consumer") == 1
    assert value(series, "muster_groups_rebalancing", type="consumer") == 1
    assert value(series, "muster_rebalance_oldest_seconds", type="consumer") >= 0


async def test_requests_of_classic_members_of_consumer_groups_are_translated(
    runtime: Runtime,
) -> None:
    await join(runtime, "billing", "m1")
    subscription = embedded.encode_subscription(
        embedded.make_subscription((ORDERS,), None, [], 3), 3
    )
    await runtime.call(
        JoinGroup(
            CALLER,
            GroupId("billing"),
            None,
            MemberId("m2"),
            10_000,
            30_000,
            "consumer",
            (JoinProtocol("range", subscription),),
            requires_member_id=False,
        )
    )
    series = await read(runtime)
    assert value(series, "muster_translated_requests_total", command="JoinGroup") == 1


async def test_waits_are_timed(runtime: Runtime) -> None:
    await join(runtime, "billing", "m1")
    await commit(runtime, "nightly", "", None)
    series = await read(runtime)
    assert value(series, "muster_queue_seconds_count", queue="commands") >= 1
    assert value(series, "muster_queue_seconds_count", queue="batch") >= 2
    assert value(series, "muster_log_write_seconds_count") >= 2


async def test_the_rest_of_the_server(runtime: Runtime) -> None:
    series = await read(runtime)
    assert value(series, "muster_build_info", version="1.2.3") == 1
    assert value(series, "muster_ready") == 1
    assert value(series, "muster_topics") == 1
    assert value(series, "muster_topic_partitions") == 6
    assert value(series, "muster_kafka_connections") == 3
    assert value(series, "muster_kafka_connections_refused_total", reason="wrong_first_byte") == 2
    assert value(series, "muster_data_bytes", part="topics") == 0
    assert value(series, "muster_data_free_bytes") > 0
    assert value(series, "muster_parked_heartbeats") == 4
    assert value(series, "muster_grpc_sessions") == 5


async def test_series_of_groups_are_bounded(runtime: Runtime) -> None:
    for number in range(5):
        await join(runtime, f"g{number}", "m")
    series = await read(runtime, groups_max=2)
    shown = {dict(labels)["group"] for name, labels in series if name == "muster_group_members"}
    assert shown == {"g0", "g1"}
    assert value(series, "muster_metrics_groups_omitted") == 3
    assert value(series, "muster_members") == 5


async def test_no_series_names_a_member_or_client(runtime: Runtime) -> None:
    await join(runtime, "billing", "a-member")
    text = await scrape(runtime)
    assert "a-member" not in text
    assert CALLER.client_id not in text


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
async def test_any_name_is_text(runtime: Runtime, accept: str) -> None:
    odd = 'odd "name"\n\\ {x="y"}'
    await join(runtime, odd, "m")
    parse = parse_openmetrics if accept else text_string_to_metric_families
    text = await scrape(runtime, accept=accept)
    assert text.endswith("# EOF\n") == bool(accept)
    found = [
        (sample.labels, sample.value)
        for family in parse(text)
        for sample in family.samples
        if sample.name == "muster_group_members"
    ]
    assert found == [({"group": odd}, 1)]


async def test_a_snapshot_does_not_change_with_the_server(runtime: Runtime) -> None:
    snapshot = run_at_once(take(runtime))
    scrapes = make_scrapes(lambda: give(snapshot))
    _, before = await scrapes.answer("")
    await join(runtime, "billing", "m1")
    _, after = await scrapes.answer("")
    # Figures of the process and of the disk are of now.
    assert [line for line in b"".join(before).splitlines() if b"muster_group" in line] == [
        line for line in b"".join(after).splitlines() if b"muster_group" in line
    ]


def give(snapshot: Snapshot) -> Steps[Snapshot]:
    yield from ()
    return snapshot


async def test_scrapes_at_a_time_take_one_snapshot(runtime: Runtime) -> None:
    begun = 0

    def begin() -> Steps[Snapshot]:
        nonlocal begun
        begun += 1
        return take(runtime)

    scrapes = make_scrapes(begin)
    answers = await asyncio.gather(*(scrapes.answer("") for _ in range(5)))
    assert begun == 1
    assert len({parts for _, parts in answers}) == 1
    await scrapes.answer("")
    assert begun == 2
    await asyncio.gather(
        *(scrapes.answer(f"{OPEN_METRICS}; version=1.0.{number}") for number in range(5)),
        *(scrapes.answer(f"{OPEN_METRICS}; version=1.0.0; escaping=v{n}") for n in range(5)),
    )
    assert begun <= 4, "a client does not make it take more snapshots by asking in other words"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        (f"{OPEN_METRICS}; version=abc", "text/plain; version=0.0.4"),
        (f"{OPEN_METRICS};version=0.0.1, text/plain;version=0.0.4", "text/plain; version=0.0.4"),
        (";;;=,,;", "text/plain; version=0.0.4"),
        (OPEN_METRICS, "application/openmetrics-text; version=1.0.0"),
        (
            f"{OPEN_METRICS};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPEN_METRICS};version=0.0.1",
            "application/openmetrics-text; version=1.0.0",
        ),
    ],
)
async def test_whatever_is_accepted_is_answered(
    runtime: Runtime, accept: str, content_type: str
) -> None:
    found, parts = await make_scrapes(lambda: take(runtime)).answer(accept)
    assert found.startswith(content_type)
    assert parts[-1].endswith(b"# EOF\n") == found.startswith(OPEN_METRICS)


async def test_a_group_that_is_new_while_the_others_are_looked_at(runtime: Runtime) -> None:
    for number in range(8):
        await join(runtime, f"g{number}", "m")
    steps = take(runtime)
    next(steps)
    await join(runtime, "late", "m")
    await commit(runtime, "later", "", None)
    taken = run_at_once(steps)
    names = {group.group_id for shard in taken.groups.shards for group in shard}
    assert names - {"late"} == {f"g{number}" for number in range(8)}


async def test_a_large_group_is_looked_at_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_figures, "SLICE", 3)
    for number in range(7):
        await join(runtime, "large", f"m{number}")
    (group,) = runtime.groups()
    slices = sum(1 for _ in take(runtime))
    assert slices >= len(runtime.shards) + 7 // 3
    assert value(await read(runtime), "muster_group_members_unconverged", group="large") == sum(
        not member.is_reconciled_to(group.group_epoch) for member in group.members()
    )


async def test_the_page_lists_every_metric_and_no_other(runtime: Runtime) -> None:
    upstream = compute_upstream_figures(UpstreamStatistics(), is_reachable=True, places=())
    await join(runtime, "billing", "m1")
    scrapes = make_scrapes(lambda: take(runtime, upstream), lag=make_lag(), compatible=COMPATIBLE)
    _, parts = await scrapes.answer("")
    families = text_string_to_metric_families(b"".join(parts).decode())
    served = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families
        if family.name.startswith(("muster_", "kafka_", "burrow_"))
    }
    page = (CHECKOUT / "docs/metrics.md").read_text()
    listed = set(re.findall(r"^\| `(muster_\w+)`", page, re.MULTILINE))
    listed |= set(re.findall(r"`((?:kafka|burrow)_[a-z_]+_[a-z]+)`", page)) - {KAFKA_EXPORTER}
    assert listed == served


def test_other_pages_name_metrics_that_the_page_lists() -> None:
    page = (CHECKOUT / "docs/metrics.md").read_text()
    listed = set(re.findall(r"^\| `(muster_\w+)`", page, re.MULTILINE))
    named = {
        f"{path.name}: {name}"
        for path in (CHECKOUT / "docs").glob("*.md")
        for name in re.findall(r"`(muster_[a-z_]+[a-z])(?:\{[^`]*\})?`", path.read_text())
        if name not in listed and re.sub(r"_(bucket|count|sum)$", "", name) not in listed
    }
    assert named == set()


def test_the_size_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 5_000)
    (tmp_path / "c").write_bytes(b"y" * 10)
    assert compute_folder_bytes(tmp_path) - compute_folder_bytes(tmp_path / "a") >= 10
    assert compute_folder_bytes(tmp_path / "gone") == 0
