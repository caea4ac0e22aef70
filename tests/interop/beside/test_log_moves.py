"""Groups move from a real Kafka into Muster and back: `muster log import` and `export`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupListing, NewTopic

from tests.kafka.broker import KafkaBroker
from tests.kafka.tools import run_dump_log
from tests.server import MusterServer
from tests.support.cli.log_files import SEGMENTS, invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

PARTITIONS = 4
PER_PARTITION = 10
SETTINGS = {
    "offsets.topic.num.partitions": 50,
    "offsets.retention.minutes": 2_000_000_000,
    "transaction.state.log.num.partitions": 1,
    "log.cleaner.enable": False,
}
PROTOCOLS = {"live-classic": "classic", "live-consumer": "consumer"}

_DEADLINE_S = 30.0
_QUIET = {"log_level": 0}
_NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)

T = TypeVar("T")
Offsets = dict[tuple[str, int], int]


class View(NamedTuple):
    """What a coordinator says: type and state of each group, and what each has committed."""

    groups: dict[str, tuple[str, str]]
    offsets: dict[str, Offsets]


def wait_for_coordinator(ask: Callable[[], T]) -> T:
    """What is answered once the log is loaded; an error of another kind is raised at once."""
    answers: list[T] = []
    errors: list[KafkaException] = []

    def is_answered() -> bool:
        try:
            answers.append(ask())
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET:
                raise
            errors.append(error)
        return bool(answers)

    wait_until(is_answered, lambda: f"the log is loaded: {errors[-1]}", _DEADLINE_S)
    return answers[0]


def list_groups(admin: AdminClient) -> list[ConsumerGroupListing]:
    listed = admin.list_consumer_groups(request_timeout=_DEADLINE_S).result(_DEADLINE_S)
    if listed.errors:
        raise KafkaException(listed.errors[0])
    return list(listed.valid)


def look(bootstrap: str) -> View:
    """Of classic and consumer groups, whose states are settled."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    listed = wait_for_coordinator(lambda: list_groups(admin))
    groups = {
        each.group_id: (each.type.name, each.state.name)
        for each in listed
        if each.type.name in ("CLASSIC", "CONSUMER")
    }
    # The client asks for no group without a name, though there may be one.
    names = [group for group in groups if group]
    described = admin.describe_consumer_groups(names, request_timeout=_DEADLINE_S)
    for group, answer in described.items():
        found = answer.result(_DEADLINE_S)
        assert (found.type.name, found.state.name) == groups[group]
        assert not found.members
    return View(groups, {group: fetch(admin, group) for group in names})


def fetch(admin: AdminClient, group: str) -> Offsets:
    answers = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = answers[group].result(_DEADLINE_S).topic_partitions
    return {(each.topic, each.partition): each.offset for each in found if each.error is None}


def make_consumer(bootstrap: str, group: str) -> Consumer:
    protocol = PROTOCOLS.get(group, "classic")
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        **_QUIET,
    }
    return Consumer(settings)


def go_on(bootstrap: str, group: str, *, reads: bool) -> None:
    """A member joins, finds where the group was, and commits one more for each partition."""
    consumer = make_consumer(bootstrap, group)
    try:
        consumer.subscribe(["orders"])
        before: dict[int, int] = {}
        for _ in range(300):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                before.setdefault(message.partition(), message.offset())
            assigned = consumer.assignment()
            if len(assigned) == PARTITIONS and (not reads or len(before) == PARTITIONS):
                break
        else:
            pytest.fail(f"{group} holds {consumer.assignment()} and has read {before}")
        committed = {each.partition: each.offset for each in consumer.committed(assigned, 10)}
        if reads:
            assert before == committed
        places = [TopicPartition("orders", p, offset + 1) for p, offset in committed.items()]
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def commit(bootstrap: str, group: str, offset: int) -> None:
    """Commits for all partitions without being a member."""
    consumer = make_consumer(bootstrap, group)
    places = [TopicPartition("orders", partition, offset) for partition in range(PARTITIONS)]
    wait_for_coordinator(lambda: consumer.commit(offsets=places, asynchronous=False))
    consumer.close()


def make_groups(bootstrap: str) -> None:
    """A group of each protocol, one of offsets alone, and one with offsets of transactions."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(_DEADLINE_S)
    producer = Producer({"bootstrap.servers": bootstrap, **_QUIET})
    for number in range(PER_PARTITION * PARTITIONS):
        producer.produce("orders", b"x", partition=number % PARTITIONS)
    assert producer.flush(_DEADLINE_S) == 0
    for group in (*PROTOCOLS, "live-offsets"):
        commit(bootstrap, group, 2)
    for group in PROTOCOLS:
        go_on(bootstrap, group, reads=True)
    for name, offset in (("committed", 3), ("aborted", 7)):
        settings = {"bootstrap.servers": bootstrap, "transactional.id": name, **_QUIET}
        transactional = Producer(settings)
        transactional.init_transactions(_DEADLINE_S)
        transactional.begin_transaction()
        consumer = make_consumer(bootstrap, "live-transactions")
        sent = [TopicPartition("orders", 0, offset)]
        metadata = consumer.consumer_group_metadata()
        transactional.send_offsets_to_transaction(sent, metadata, _DEADLINE_S)
        consumer.close()
        if name == "committed":
            transactional.commit_transaction(_DEADLINE_S)
        else:
            transactional.abort_transaction(_DEADLINE_S)


@dataclass
class Moved:
    """A stopped broker, and the data folder in which its groups went on."""

    broker: KafkaBroker
    data: Path
    view: View


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    data = tmp_path_factory.mktemp("moved") / "data"
    with KafkaBroker(SETTINGS) as broker:
        make_groups(broker.bootstrap)
        in_kafka = look(broker.bootstrap)
        topics = data.with_name("topics.json")
        topics.write_text(describe_topics(broker.bootstrap))
        broker.stop()
        imported = invoke("import", broker.log_dir, "--data-dir", data, "--topics", topics)
        assert imported.exit_code == 0, imported.error
        with MusterServer(data) as server:
            # Kafka lists a group that only has offsets as classic, and so does Muster.
            assert look(server.kafka) == in_kafka
            assert in_kafka.offsets["live-transactions"] == {("orders", 0): 3}
            # Members of classic groups come with their protocol; the offsets go on before it.
            commit(server.kafka, "live-classic", 4)
            go_on(server.kafka, "live-consumer", reads=False)
            view = look(server.kafka)
            for group in PROTOCOLS:
                assert view.offsets[group] == {("orders", p): 4 for p in range(PARTITIONS)}
            assert server.terminate() == 0
        yield Moved(broker, data, view)


def describe_topics(bootstrap: str) -> str:
    """What `--bootstrap-server` would ask, for a broker that is about to stop."""
    from cli.log.cluster import Cluster
    from cli.messages import render_topic_id

    topics = Cluster(bootstrap, None, _DEADLINE_S).list_topics()
    return json.dumps(
        [
            {"name": name, "id": render_topic_id(topic.topic_id), "partitions": topic.partitions}
            for name, topic in topics.items()
        ]
    )


def boot_from(broker: KafkaBroker, export: Path, groups: Collection[str]) -> None:
    """Starts the broker on exported segments in place of its own, until it lists the groups."""
    broker.stop()
    for folder in broker.log_dir.glob("__consumer_offsets-*"):
        for file in folder.iterdir():
            if file.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
                file.unlink()
        (folder / "leader-epoch-checkpoint").unlink(missing_ok=True)
        for file in (export / folder.name).glob("*.log"):
            shutil.copy(file, folder / file.name)
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **_QUIET})

    def are_listed() -> bool:
        """A partition that is not loaded yet is left out of the list, without an error."""
        listed = {each.group_id for each in wait_for_coordinator(lambda: list_groups(admin))}
        return listed >= set(groups)

    wait_until(are_listed, lambda: f"all groups are listed\n{broker.read_log()[-4000:]}")


def check_dump(export: Path) -> None:
    """Kafka's own tool reads every segment to its end."""
    files = sorted(export.glob("*/*.log"))
    done = run_dump_log(
        "--offsets-decoder", "--print-data-log", "--files", ",".join(map(str, files))
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Dumping ") == len(files)
    assert "Found invalid" not in done.stdout


def test_kafka_goes_on_from_the_whole_history(moved: Moved, tmp_path: Path) -> None:
    export = tmp_path / "export"
    assert invoke("export", export, "--data-dir", moved.data, "--history").exit_code == 0
    boot_from(moved.broker, export, moved.view.groups)
    assert look(moved.broker.bootstrap) == moved.view
    for group in PROTOCOLS:
        go_on(moved.broker.bootstrap, group, reads=True)


def test_kafka_goes_on_from_the_present_of_a_store_that_took_in_another_log(
    moved: Moved, tmp_path: Path
) -> None:
    data, export = tmp_path / "data", tmp_path / "export"
    shutil.copytree(moved.data, data)
    merged = invoke("import", SEGMENTS, "--data-dir", data, "--abort-open")
    assert merged.exit_code == 0, merged.error
    with MusterServer(data, settings={"offsets.retention.minutes": 2_000_000_000}) as server:
        view = look(server.kafka)
        assert server.terminate() == 0
    # The client lists neither share and streams groups nor those of other protocol types.
    assert len(view.groups) == len(moved.view.groups) + 42
    assert invoke("export", export, "--data-dir", data).exit_code == 0
    check_dump(export)
    boot_from(moved.broker, export, view.groups)
    assert look(moved.broker.bootstrap) == view
    for group in PROTOCOLS:
        go_on(moved.broker.bootstrap, group, reads=True)
