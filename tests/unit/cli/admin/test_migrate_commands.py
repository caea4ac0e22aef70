"""`muster migrate` against a real AdminService, and against the folder of a stopped server."""

import json
from pathlib import Path

import pytest

from cli.data_folder import DataFolder
from coordinator.core.replay.group_records import replay
from coordinator.core.replay.offset_records import replay_offset_group
from coordinator.runtime.commit.partition_encoder import PartitionEncoder
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.classic import ClassicHeartbeat
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import RebalanceInProgress
from model.ids import GroupId, InstanceId, LogOffset, MemberId, TopicName, compute_log_partition
from model.log.records import (
    ClassicGroupMember,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
)
from muster.assignors import embedded
from storage.codec.record_codec import decode_value, encode_key
from storage.log_store import LogStore
from storage.rocks.rocks_opening import open_store
from tests.support.virtual.scheduler import VirtualScheduler
from tests.unit.cli.admin.test_admin_commands import CALLER, Result, Server, invoke, server
from tests.unit.cli.admin.test_group_administration import commit, list_offsets

__all__ = ("server",)

ORDERS = TopicName("orders")


def says(version: int = embedded.HIGHEST_VERSION) -> bytes:
    return embedded.encode_subscription(embedded.Subscription((ORDERS,), None, (), -1), version)


def has(*partitions: int, user_data: bytes | None = None) -> bytes:
    given = (embedded.TopicPartitions(ORDERS, partitions),)
    return embedded.encode_assignment(
        embedded.Assignment(given, user_data), embedded.HIGHEST_VERSION
    )


def make_member(
    name: str,
    assignment: bytes,
    subscription: bytes | None = None,
    instance: str | None = None,
    session_ms: int = 10_000,
) -> ClassicGroupMember:
    return ClassicGroupMember(
        MemberId(name),
        None if instance is None else InstanceId(instance),
        f"client-{name}",
        "/127.0.0.1",
        60_000,
        session_ms,
        says() if subscription is None else subscription,
        assignment,
    )


def plant(
    server: Server,
    group: str,
    *members: ClassicGroupMember,
    strategy: str = "cooperative-sticky",
    protocol_type: str = "consumer",
) -> None:
    """A classic group as in its record."""
    record = Record(
        GroupMetadataKey(GroupId(group)),
        GroupMetadataValue(
            protocol_type, 1, strategy, members[0].member_id if members else None, -1, members
        ),
    )
    replay(server.runtime.shards[server.runtime.partition_of(GroupId(group))], record)


async def join(server: Server, group: str, member: str) -> None:
    await server.runtime.call(
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


async def leave(server: Server, group: str, member: str) -> None:
    await server.runtime.call(ConsumerGroupLeave(CALLER, GroupId(group), MemberId(member), -1))


async def find_type(server: Server, group: str) -> str:
    listed = await server.run("group", "list", "-o", "csv")
    rows = [line.split(",") for line in listed.out.splitlines()]
    return next(row[1] for row in rows if row[0] == group)


# ------------------------------------------------------------------------------------------ plan


async def test_a_plan_says_what_is_in_the_way_of_each_member(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    plant(
        server,
        "g",
        make_member("a", has(0)),
        # As kafka-go, platformatic and faust write it.
        make_member("b", has(1), b"\0\1" + says(0)[2:]),
        make_member("c", has(2, user_data=b"x"), instance="i", session_ms=600_000),
    )
    shown = await server.run("migrate", "plan", "g")
    lines = shown.out.splitlines()
    assert shown.exit_code == 0
    assert lines[0] == (
        "g: BLOCKED: Stable, cooperative-sticky, consumer.migration.policy bidirectional"
    )
    assert "  group.protocol=consumer: the client uses the consumer protocol" in lines
    assert "  group.remote.assignor=uniform: the server computes the assignment" in lines
    assert any(line.startswith("  remove partition.assignment.strategy:") for line in lines)
    ready, warned, blocked = lines[-3:]
    assert ready.split() == ["g", "client-a", "READY", "-"]
    assert warned.split()[:3] == ["g", "client-b", "WARN"]
    assert "its client library writes version 1 without owned partitions" in warned
    assert blocked.split()[:3] == ["g", "client-c", "BLOCKED"]
    assert "its assignment has user data of an assignor, which would be lost" in blocked
    content = json.loads((await server.run("migrate", "plan", "g", "-o", "json")).out)
    assert content["_command"] == "migrate.plan"
    assert content["verdict"] == "MIGRATION_VERDICT_BLOCKED"
    kinds = [[reason["kind"] for reason in member["reasons"]] for member in content["members"]]
    assert kinds == [
        [],
        ["owned_left_out"],
        ["assignment_user_data", "session_timeout", "static_member"],
    ]
    changes = {change["name"]: change.get("value") for change in content["members"][2]["changes"]}
    assert changes["group.protocol"] == "consumer"
    assert changes["session.timeout.ms"] is None
    assert changes["group.instance.id"] == "i"


async def test_what_is_of_the_group_is_of_every_member(server: Server) -> None:
    plant(server, "eager", make_member("a", has(0)), strategy="range")
    plant(server, "connect", make_member("a", b"x", b"y"), protocol_type="connect")
    eager = await server.run("migrate", "plan", "eager")
    assert eager.out.startswith("eager: WARN: Stable, range")
    assert "  WARN: range is eager" in eager.out
    assert "  group.remote.assignor=range: the server computes the assignment" in eager.out
    assert eager.out.splitlines()[-1].split()[:3] == ["eager", "client-a", "WARN"]
    other = await server.run("migrate", "plan", "connect")
    assert "  BLOCKED: the protocol type is connect, not consumer" in other.out
    assert other.out.splitlines()[-1].split()[:3] == ["connect", "client-a", "BLOCKED"]
    await server.run("config", "set", "--group", "eager", "consumer.migration.policy=downgrade")
    refused = await server.run("migrate", "plan", "eager")
    assert refused.out.startswith("eager: BLOCKED: Stable, range")
    assert "  BLOCKED: the migration policy (consumer.migration.policy of" in refused.out
    assert refused.out.splitlines()[-1].split(maxsplit=3)[3] == "its group: migration_policy"


async def test_a_plan_of_what_is_no_classic_group_with_members(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    await commit(server, "offsets", "orders", 0)
    await join(server, "new", "m")
    empty = await server.run("migrate", "plan", "offsets")
    assert empty.out.startswith("offsets: READY: it has no members")
    done = await server.run("migrate", "plan", "new")
    assert done.out.startswith("new is a consumer group already")
    assert "new: READY: " in done.out
    assert "  remove group.remote.assignor: the clients compute the assignment" in done.out
    assert done.out.splitlines()[-1].split()[:3] == ["new", "client-7", "READY"]
    missing = await server.run("migrate", "plan", "nobody")
    assert missing.exit_code == 3
    assert missing.error.startswith(
        "GROUP_ID_NOT_FOUND: Group nobody not found: `muster group list`"
    )
    plant(server, "connect", make_member("a", b"x", b"y"), protocol_type="connect")
    plant(server, "connect", protocol_type="connect")
    deserted = await server.run("migrate", "plan", "connect")
    assert deserted.out.startswith("connect: WARN: it has no members")
    assert "use the protocol type connect and stay classic" in deserted.out


# ---------------------------------------------------------------------------------------- status


async def test_status_says_who_is_left_and_what_moves(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    plant(server, "g", make_member("a", has(0, 1)), make_member("b", has(2, 3)))
    before = await server.run("migrate", "status", "g")
    assert before.out.splitlines()[0] == (
        "g: Classic, Stable, generation 1, consumer.migration.policy bidirectional"
    )
    await join(server, "g", "n")
    shown = await server.run("migrate", "status", "g", "-o", "wide")
    head, summary, _, *rows = shown.out.splitlines()
    assert head == (
        "g: Consumer, Reconciling, group epoch 2, target assignment epoch 2, "
        "consumer.migration.policy bidirectional"
    )
    assert summary == (
        "1 of 3 members speak the consumer protocol, 2 to replace; partitions still to move: 1"
    )
    assert [row.split()[1:4] for row in rows] == [
        ["client-a", "classic", "yes"],
        ["client-b", "classic", "yes"],
        ["client-7", "consumer", "no"],
    ]
    content = json.loads((await server.run("migrate", "status", "g", "-o", "json")).out)
    assert content["to_replace"] == ["a", "b"]
    assert content["partitions_moving"] == 1
    assert [member["protocol"] for member in content["members"]] == [
        "MEMBER_PROTOCOL_CLASSIC",
        "MEMBER_PROTOCOL_CLASSIC",
        "MEMBER_PROTOCOL_CONSUMER",
    ]


# -------------------------------------------------------------------------------------- rollback


async def test_a_group_goes_back_when_its_last_member_leaves(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    await server.run("config", "set", "--group", "g", "consumer.migration.policy=upgrade")
    plant(server, "g", make_member("a", has(0, 1, 2, 3)))
    await commit_as_nobody(server, "g")
    await join(server, "g", "n")
    tried = await server.run("migrate", "rollback", "g", "--dry-run")
    assert tried.exit_code == 0
    assert "would be downgrade" in tried.out
    assert await find_policy(server, "g") == "upgrade"
    refused = await server.run("migrate", "rollback", "g", "--offline")
    assert refused.exit_code == 4
    assert refused.error == (
        "NON_EMPTY_GROUP: 1 members of group g use the consumer protocol: stop them first (n)."
    )
    assert await find_policy(server, "g") == "upgrade"
    begun = await server.run("migrate", "rollback", "g")
    assert begun.exit_code == 0
    assert begun.out.splitlines()[0] == (
        "g: consumer.migration.policy is downgrade: the group becomes a classic group when "
        "the last of these 1 members leaves."
    )
    assert begun.out.splitlines()[-1].split()[:2] == ["g", "client-7"]
    assert await find_type(server, "g") == "Consumer"
    under_way = await server.run("migrate", "status", "g")
    assert "1 of 2 members speak the classic protocol, 1 to replace" in under_way.out
    await leave(server, "g", "n")
    assert await find_type(server, "g") == "Classic"
    assert await list_offsets(server, "g") == [["orders", "0", "40"]]
    planned = await server.run("migrate", "plan", "g")
    assert "does not allow an upgrade" in planned.out


async def test_a_group_without_such_members_goes_back_at_once(server: Server) -> None:
    await server.run("topic", "create", "orders=4")
    await server.run("config", "set", "--group", "mixed", "consumer.migration.policy=upgrade")
    plant(server, "mixed", make_member("a", has(0, 1, 2, 3)))
    for group in ("mixed", "empty"):
        await commit_as_nobody(server, group)
        await join(server, group, "n")
        await leave(server, group, "n")
        assert await find_type(server, group) == "Consumer"
        done = await server.run("migrate", "rollback", group, "-o", "json")
        # The server's own messages stand before it.
        content = json.loads(done.out[done.out.index("{\n") :])
        assert (content["is_classic"], content["to_replace"]) == (True, [])
        assert await find_type(server, group) == "Classic"
        assert await list_offsets(server, group) == [["orders", "0", "40"]]
    again = await server.run("migrate", "rollback", "mixed")
    assert again.exit_code == 0
    missing = await server.run("migrate", "rollback", "nobody")
    assert missing.exit_code == 3
    assert await find_policy(server, "nobody") == "bidirectional"


async def commit_as_nobody(server: Server, group: str) -> None:
    """An offset in the log before the group has members."""
    place = server.runtime.partition_of(GroupId(group))
    store: LogStore = server.runtime._around.store
    write(store, GroupId(group), [make_offset(group)])
    replay_offset_group(server.runtime.shards[place], GroupId(group))


def make_offset(group: str) -> Record:
    key = OffsetCommitKey(GroupId(group), ORDERS, 0)
    return Record(key, OffsetCommitValue(40, -1, "", 1))


def write(store: LogStore, group: GroupId, records: list[Record]) -> None:
    partition = compute_log_partition(group, store.partitions)
    encoder = PartitionEncoder(partition, store.next_offset(partition), 1, store)
    for record in records:
        encoder.add_record(record)
    appends = encoder.finish()
    store.write(appends)
    store.sync()
    store.mark_durable({partition: LogOffset(appends[-1].base_offset + appends[-1].records)})


async def find_policy(server: Server, group: str) -> str:
    shown = await server.run("config", "get", "--group", group, "-o", "csv")
    rows = [line.split(",") for line in shown.out.splitlines()]
    return next(row[1] for row in rows if row[0] == "consumer.migration.policy")


# --------------------------------------------------------------------------------------- offline


EVERYTHING = {"empty", "live", "hosted"}


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a stopped server.

    Group `empty` has no members, `live` one of the consumer protocol, `hosted` a classic one.
    """
    folder = DataFolder(tmp_path / "data")
    folder.prepare()
    store = open_store(folder.store, partitions=4)
    for group in ("empty", "live"):
        write(
            store,
            GroupId(group),
            [
                make_offset(group),
                Record(ConsumerGroupMetadataKey(GroupId(group)), ConsumerGroupMetadataValue(7, 0)),
            ],
        )
    write(store, GroupId("live"), make_live_member())
    write(store, GroupId("hosted"), make_hosted_group())
    store.close()
    return folder.path


def make_live_member() -> list[Record]:
    group, member = GroupId("live"), MemberId("m")
    return [
        Record(
            ConsumerGroupMemberMetadataKey(group, member),
            ConsumerGroupMemberMetadataValue(
                None, None, "client", "/127.0.0.1", (ORDERS,), None, 60_000, None, None
            ),
        ),
        Record(
            ConsumerGroupCurrentMemberAssignmentKey(group, member),
            ConsumerGroupCurrentMemberAssignmentValue(7, 7, 0, (), ()),
        ),
    ]


def make_hosted_group() -> list[Record]:
    group, member = GroupId("hosted"), MemberId("c")
    spoken = ClassicMemberMetadata(10_000, (ClassicProtocol("range", says()),))
    return [
        make_offset("hosted"),
        Record(
            ConsumerGroupMemberMetadataKey(group, member),
            ConsumerGroupMemberMetadataValue(
                None, None, "client", "/127.0.0.1", (ORDERS,), None, 60_000, None, spoken
            ),
        ),
        Record(ConsumerGroupMetadataKey(group), ConsumerGroupMetadataValue(9, 0)),
        Record(
            ConsumerGroupCurrentMemberAssignmentKey(group, member),
            ConsumerGroupCurrentMemberAssignmentValue(9, 9, 0, (), ()),
        ),
    ]


def roll_back(folder: Path, group: str, *options: str) -> Result:
    return invoke("migrate", "rollback", group, "--offline", "--data-dir", str(folder), *options)


def read_groups(folder: Path) -> tuple[set[str], set[str], dict[GroupId, str]]:
    """Consumer groups, groups with offsets, and the policies of groups, as a server loads them."""
    store = open_store(DataFolder(folder).store, partitions=4)
    scheduler = VirtualScheduler()
    runtime = Runtime(store, CoordinatorSettings(), clock=scheduler, scheduler=scheduler)
    runtime.load()
    try:
        return (
            {group_id for shard in runtime.shards for group_id in shard.consumer_groups},
            {group_id for shard in runtime.shards for group_id in shard.offset_groups},
            {
                group_id: settings.group_consumer_migration_policy
                for shard in runtime.shards
                for group_id, settings in shard.group_settings.items()
            },
        )
    finally:
        store.close()


def test_a_group_of_a_stopped_server_goes_back(stopped: Path) -> None:
    tried = roll_back(stopped, "empty", "--dry-run")
    assert tried.exit_code == 0
    assert read_groups(stopped) == (EVERYTHING, EVERYTHING, {})
    done = roll_back(stopped, "empty")
    assert (done.exit_code, done.error) == (0, "")
    assert done.out.startswith("empty is a classic group, with its offsets;")
    assert read_groups(stopped) == (EVERYTHING - {"empty"}, EVERYTHING, {"empty": "downgrade"})
    assert invoke("log", "verify", str(stopped)).exit_code == 0
    offsets = invoke("log", "offsets", str(stopped), "--group", "empty", "-o", "csv")
    assert "orders,0,40" in offsets.out


def test_classic_members_go_back_with_their_group(stopped: Path) -> None:
    assert roll_back(stopped, "hosted").exit_code == 0
    assert read_groups(stopped)[0] == EVERYTHING - {"hosted"}
    assert invoke("log", "verify", str(stopped)).exit_code == 0
    store = open_store(DataFolder(stopped).store, partitions=4)
    entry = store.get_latest(
        compute_log_partition(GroupId("hosted"), 4), encode_key(GroupMetadataKey(GroupId("hosted")))
    )
    store.close()
    assert entry is not None
    group = decode_value(2, entry.value)[1]
    assert isinstance(group, GroupMetadataValue)
    assert (group.generation, group.protocol, group.leader) == (9, "range", None)
    assert [member.member_id for member in group.members] == ["c"]


def test_classic_members_are_told_to_join_again_when_the_server_is_back(stopped: Path) -> None:
    """No member knows that it leads, so none checks whether topics grow."""
    assert roll_back(stopped, "hosted").exit_code == 0
    store = open_store(DataFolder(stopped).store, partitions=4)
    scheduler = VirtualScheduler()
    runtime = Runtime(store, CoordinatorSettings(), clock=scheduler, scheduler=scheduler)
    runtime.load()
    answers: list[object] = []
    member = GroupId("hosted"), MemberId("c")
    runtime.submit(ClassicHeartbeat(INTERNAL, *member, generation=9), answers.append)
    store.close()
    assert [type(answer) for answer in answers] == [RebalanceInProgress]


def test_members_of_the_consumer_protocol_keep_it_where_it_is(stopped: Path) -> None:
    refused = roll_back(stopped, "live")
    assert refused.exit_code == 4
    assert refused.error == (
        "NON_EMPTY_GROUP: 1 members of group live use the consumer protocol: stop them first (m)."
    )
    assert read_groups(stopped) == (EVERYTHING, EVERYTHING, {})


def test_what_cannot_be_rolled_back_offline(stopped: Path, tmp_path: Path) -> None:
    assert roll_back(stopped, "nobody").exit_code == 3
    assert roll_back(tmp_path / "elsewhere", "empty").exit_code == 3
    usage = invoke("migrate", "rollback", "empty", "--data-dir", str(stopped))
    assert (usage.exit_code, usage.error) == (2, "--data-dir requires --offline")
    store = open_store(DataFolder(stopped).store, partitions=4)
    try:
        assert roll_back(stopped, "empty").exit_code == 4
    finally:
        store.close()
