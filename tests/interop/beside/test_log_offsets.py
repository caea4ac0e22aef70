"""`muster log offsets` beside a real Kafka: topic and folder read, groups committed for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cli.errors import ExitCode
from tests.kafka.broker import KafkaBroker
from tests.kafka.tools import run_consumer_groups
from tests.support.cli.log_files import Result, invoke
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.kafka]

PARTITIONS = 4
PLAIN = {0: 3, 1: 6}
"""What the group `plain` has committed, the second one over an older commit."""

Offsets = dict[int, int]
_QUIET = {"log_level": 0}
_DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    settings = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 1}
    with KafkaBroker(settings) as broker:
        missing = invoke("offsets", "--group", "plain", "--bootstrap-server", broker.bootstrap)
        assert missing.exit_code == ExitCode.NOT_FOUND
        assert "has no topic __consumer_offsets" in missing.error
        _create_orders(broker)
        # A broker creates a topic that is asked for by its name, a moment later.
        assert _list_topics(broker) == {"orders"}
        commit(broker, "plain", {0: 3, 1: 5})
        commit(broker, "plain", {1: 6})
        yield broker


def _create_orders(broker: KafkaBroker) -> None:
    admin = _make_admin(broker)
    admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(_DEADLINE_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **_QUIET})
    for number in range(10 * PARTITIONS):
        producer.produce("orders", b"x", partition=number % PARTITIONS)
    assert producer.flush(_DEADLINE_S) == 0


def _make_admin(broker: KafkaBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **_QUIET})


def _list_topics(broker: KafkaBroker) -> set[str]:
    return set(_make_admin(broker).list_topics(timeout=_DEADLINE_S).topics)


def make_consumer(broker: KafkaBroker, group: str, **settings: str) -> Consumer:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    common = {"bootstrap.servers": broker.bootstrap, "group.id": group}
    return Consumer({**common, "enable.auto.commit": False, **_QUIET, **names})


def commit(broker: KafkaBroker, group: str, offsets: Offsets) -> None:
    consumer = make_consumer(broker, group)
    places = [TopicPartition("orders", *each) for each in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def send_offsets(broker: KafkaBroker, group: str, name: str, offsets: Offsets) -> Producer:
    """A transaction with offsets of a group, not ended yet."""
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": name, **_QUIET}
    producer = Producer(settings)
    producer.init_transactions(_DEADLINE_S)
    producer.begin_transaction()
    consumer = make_consumer(broker, group)
    places = [TopicPartition("orders", *each) for each in offsets.items()]
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), _DEADLINE_S)
    consumer.close()
    return producer


def fetch(broker: KafkaBroker, group: str) -> Offsets:
    """What the coordinator says."""
    # Without a name it would be gone before its answer.
    admin = _make_admin(broker)
    answers = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = answers[group].result(_DEADLINE_S).topic_partitions
    return {each.partition: each.offset for each in found if each.offset >= 0}


def read(source: Path | KafkaBroker, group: str, *options: str) -> tuple[Offsets, Result]:
    """What `muster log offsets` says, out of a folder or a cluster."""
    where: tuple[str | Path, ...] = (source,) if isinstance(source, Path) else ()
    if isinstance(source, KafkaBroker):
        where = ("--bootstrap-server", source.bootstrap)
    result = invoke("offsets", *where, "--group", group, "-o", "csv", *options)
    rows = [line.split(",") for line in result.out.splitlines()]
    assert all(row[0] == "orders" for row in rows)
    return {int(partition): int(offset) for _, partition, offset in rows}, result


def commit_to(broker: KafkaBroker, group: str, *options: str) -> Result:
    target = ("--commit-to", f"{broker.bootstrap}/{group}", "--quiet", *options)
    return read(broker, "plain", *target)[1]


# ------------------------------------------------------------------------------------- reading


def test_commits_are_read_from_the_topic_and_from_the_brokers_folder(broker: KafkaBroker) -> None:
    assert fetch(broker, "plain") == PLAIN
    assert read(broker, "plain")[0] == PLAIN
    assert read(broker.log_dir, "plain")[0] == PLAIN
    assert read(broker, "nobody")[1].exit_code == ExitCode.NOT_FOUND


def test_transactions_count_once_they_are_committed(broker: KafkaBroker) -> None:
    send_offsets(broker, "eos", "committed", {0: 1, 1: 2}).commit_transaction(_DEADLINE_S)
    send_offsets(broker, "eos", "aborted", {0: 7, 2: 7}).abort_transaction(_DEADLINE_S)
    commit(broker, "eos", {1: 4})
    expected = {0: 1, 1: 4}
    assert fetch(broker, "eos") == expected
    assert read(broker, "eos") == (expected, Result(0, "orders,0,1\norders,1,4\n", ""))
    assert read(broker.log_dir, "eos")[0] == expected


def test_commits_behind_an_open_transaction_are_left_out_of_a_topic(broker: KafkaBroker) -> None:
    """A folder has the markers and tells them apart; a consumer cannot."""
    commit(broker, "stuck", {0: 1})
    producer = send_offsets(broker, "stuck", "open", {2: 9})
    commit(broker, "stuck", {3: 4})
    stable, result = read(broker, "stuck")
    assert stable == {0: 1}
    assert "has an open transaction since offset" in result.error
    assert "the 2 records of group stuck" in result.error
    everything, result = read(broker, "stuck", "--include-undecided")
    assert (everything, result.error) == ({0: 1, 2: 9, 3: 4}, "")
    assert read(broker.log_dir, "stuck")[0] == fetch(broker, "stuck") == {0: 1, 3: 4}
    producer.abort_transaction(_DEADLINE_S)
    assert read(broker, "stuck")[0] == {0: 1, 3: 4}


# ------------------------------------------------------------------------------------- committing


def test_offsets_are_committed_for_another_group(broker: KafkaBroker) -> None:
    before = fetch(broker, "copy")
    dry = commit_to(broker, "copy", "--dry-run")
    assert (dry.exit_code, fetch(broker, "copy")) == (0, before)
    assert "would be committed: 2" in dry.error
    asked = commit_to(broker, "copy")
    assert (asked.exit_code, fetch(broker, "copy")) == (ExitCode.USAGE, before)
    assert "add --yes" in asked.error
    done = commit_to(broker, "copy", "--yes")
    assert (done.exit_code, done.out, done.error) == (0, "", "")
    assert fetch(broker, "copy") == read(broker, "copy")[0] == PLAIN


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_refused(broker: KafkaBroker, protocol: str) -> None:
    group = f"busy-{protocol}"
    consumer = make_consumer(broker, group, group_protocol=protocol)
    consumer.subscribe(["orders"])
    wait_until(
        lambda: consumer.poll(0.1) is not None or len(consumer.assignment()) > 0,
        "the member has its partitions",
        _DEADLINE_S,
    )
    result = commit_to(broker, group, "--yes")
    consumer.close()
    assert result.exit_code == ExitCode.PRECONDITION
    assert result.error == (
        f"group {group} at {broker.bootstrap} has members, so nothing was committed: "
        "stop its consumers first"
    )
    assert fetch(broker, group) == {}


def test_topics_that_are_not_there_are_named(broker: KafkaBroker, tmp_path: Path) -> None:
    from tests.support.cli.log_files import encode_commits, write_segment

    commits = ("gone", 0, 1), ("orders", 0, 2), ("gone", 1, 3)
    write_segment(tmp_path, 0, encode_commits(0, "g", *commits))
    target = ("--commit-to", f"{broker.bootstrap}/partly", "--yes", "--quiet")
    result = invoke("offsets", tmp_path, "--group", "g", *target)
    assert result.exit_code == ExitCode.FAILED
    assert result.error == "gone:0,1: Broker: Unknown topic or partition"
    assert fetch(broker, "partly") == {0: 2}


def test_kafkas_own_tool_takes_the_csv(broker: KafkaBroker, tmp_path: Path) -> None:
    plan = tmp_path / "offsets.csv"
    plan.write_text(read(broker, "plain")[1].out)
    done = run_consumer_groups(
        broker.bootstrap,
        *("--reset-offsets", "--from-file", str(plan), "--group", "reset", "--execute"),
    )
    assert done.returncode == 0, done.stderr
    assert fetch(broker, "reset") == PLAIN
