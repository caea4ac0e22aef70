"""What a start loads: groups, topics, the groups with offsets, and unfinished work."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.core.groups.topic_records import Catalogue
from coordinator.core.state.shard import Shard
from coordinator.runtime.loading.shard_loader import ShardLoader, read_last_timestamp
from model.caller import INTERNAL
from model.commands.topics import GrowTopic
from model.commands.transactions import AllocateProducerId
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogOffset, LogPartition, TopicName
from model.responses.transactions import ProducerIdResponse
from storage.codec.batch_encoding import encode_batch
from storage.log_store import PartitionAppend, pack_latest
from tests.support.memory import MemoryLogStore
from tests.support.shadow import describe_shards
from tests.support.storage.appends import offset_key, offset_value
from tests.support.targets_in_threads import never_quick
from tests.support.virtual.server import VirtualServer, error_name


def busy() -> VirtualServer:
    """Two groups, one of them reconciling, and offsets of a third."""
    server = VirtualServer({"foo": 4, "bar": 2})
    server.join("g", "a", ["foo", "bar"])
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    server.join("h", "c", ["bar"])
    server.ask(server.commit_command("s", "", None, "foo", {0: 7, 3: 8}))
    server.ask(server.commit_command("g", "a", 2, "foo", {1: 9}))
    return server


def test_a_restart_finds_the_state_as_it_was() -> None:
    server = busy()
    before = describe_shards(server.runtime.shards)
    offset_groups = [set(shard.offset_groups) for shard in server.runtime.shards]
    image = server.runtime.image
    server.restart()
    assert describe_shards(server.runtime.shards) == before
    assert [shard.offset_groups for shard in server.runtime.shards] == offset_groups
    assert server.runtime.image.by_name == image.by_name
    assert server.runtime.stats.records_written == 0


def test_offsets_are_not_loaded_and_are_there() -> None:
    server = busy()
    for offset in range(100):
        server.ask(server.commit_command("s", "", None, "foo", {2: offset}))
    server.restart()
    # Group: 4 + 2 members with three records each, and their epochs, targets.
    assert server.runtime.stats.records_loaded == 3 * 3 + 2 * 2
    assert [server.fetch("s", "foo", partition) for partition in range(4)] == [7, -1, 99, 8]
    assert server.fetch("g", "foo", 1) == 9


def test_a_target_that_was_not_computed_is_computed() -> None:
    """Trigger: the group epoch is durable, its target was still being computed."""
    server = VirtualServer({"foo": 2})
    never_quick(server.runtime)
    server.scheduler.computing_ms = lambda: 10_000
    server.join("g", "a", ["foo"])
    assert server.group("g").target_epoch == 1
    server.restart()
    assert server.group("g").target_epoch == server.group("g").group_epoch == 2


def test_a_group_that_did_not_hear_of_a_change_of_its_topics_does() -> None:
    """Trigger: the topic change is durable, the group's new epoch is not."""
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.runtime.parts.refresh.refresh = lambda *_: None  # type: ignore[method-assign]
    server.ask(GrowTopic(INTERNAL, TopicName("foo"), 3))
    assert server.group("g").group_epoch == 2
    server.restart()
    server.advance(10)
    group = server.group("g")
    assert (group.group_epoch, group.target_epoch, len(group.target)) == (3, 3, 3)


def test_an_empty_group_is_left_alone() -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.leave("g", "a")
    server.restart()
    server.advance(60_000)
    assert (server.group("g").group_epoch, server.group("g").target_epoch) == (3, 2)
    assert server.runtime.stats.records_written == 0


def test_producer_ids_are_never_handed_out_twice() -> None:
    server = VirtualServer()
    seen: list[int] = []
    for _ in range(3):
        for _ in range(1_200):
            answer = server.ask(AllocateProducerId(INTERNAL))
            assert isinstance(answer, ProducerIdResponse), error_name(answer)
            seen.append(answer.producer_id)
        server.restart()
    assert len(set(seen)) == len(seen)


def test_the_time_of_the_last_batch_is_known() -> None:
    server = VirtualServer({"foo": 2})
    assert read_last_timestamp(server.store) == 0
    server.join("g", "a", ["foo"])
    server.advance(5_000)
    server.ask(server.commit_command("z", "", None, "foo", {0: 1}))
    assert read_last_timestamp(server.store) == server.scheduler.wall_ms()


def test_groups_come_back_in_their_own_shards() -> None:
    server = busy()
    server.restart()
    for shard in server.runtime.shards:
        for group_id in (*shard.consumer_groups, *shard.offset_groups):
            assert server.runtime.partition_of(GroupId(group_id)) == shard.partition


class CountingStore(MemoryLogStore):
    """Counts the batches read from the log."""

    read = 0

    def read_log(
        self,
        partition: LogPartition,
        start: LogOffset = LogOffset(0),  # noqa: B008
    ) -> Iterator[bytes]:
        for batch in super().read_log(partition, start):
            self.read += 1
            yield batch


def test_a_batch_is_read_once_for_all_that_waits_in_it() -> None:
    """Bug: it was read for each of its offsets in one iteration: 0.9 s for 8,000."""
    store = CountingStore(1)
    partition = LogPartition(0)
    for producer in (7, 8):
        first = store.next_offset(partition)
        pairs = [(offset_key("g", n), offset_value(n)) for n in range(500)]
        batch = encode_batch(
            first, pairs, 5, producer_id=producer, producer_epoch=3, is_transactional=True
        )
        pending = {
            (producer, key): pack_latest(first + n, 5, value)
            for n, (key, value) in enumerate(pairs)
        }
        store.write([PartitionAppend(partition, first, batch, len(pairs), {}, pending)])
    catalogue = Catalogue(CoordinatorSettings())
    shard = Shard(partition, catalogue.settings, catalogue.image, catalogue.group_settings)
    loader = ShardLoader(store, shard)
    assert sum(1 for _ in loader.steps()) >= 1_000, "others have their turns in between"
    assert loader.records == 1_000
    assert store.read <= 4
