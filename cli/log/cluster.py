"""A live Kafka cluster: reads its ``__consumer_offsets``, commits offsets for a group.

Uses confluent-kafka (the extra `kafka`). A consumer sees neither control records nor producer ids,
so this cannot fold the log as segments are folded. Below the last stable offset it need not: all
transactions there have ended, ``read_committed`` returns what was committed, and the last record of
a key wins. Above the last stable offset only the broker can tell the commits of an open transaction
from plain ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from cli.errors import CommandError, ExitCode
from cli.settings.masking import hide, looks_secret
from model.ids import GroupId, LogPartition, TopicId, TopicName, compute_log_partition
from model.log.side_records import TopicSideValue
from security.client.config_providers import ProviderError, read_client_properties_file
from storage.codec.batches import BatchRecord
from storage.codec.errors import CodecError
from storage.log.group_offsets import GroupOffset, GroupOffsetsFold
from wording.topics import Racks

if TYPE_CHECKING:
    from concurrent.futures import Future

kafka: Any
kafka_admin: Any
try:
    kafka = import_module("confluent_kafka")
    kafka_admin = import_module("confluent_kafka.admin")
except ImportError:
    kafka = kafka_admin = None

TOPIC = "__consumer_offsets"

_READER = "muster-log-offsets"
"""librdkafka requires a group id; the reader never joins or commits under it."""

_POLL_S = 0.5
_FETCH_MESSAGES = 10_000


class ClusterOffsets(NamedTuple):
    """The result. ``left_out`` records of the group lie at or above ``stable_offset``."""

    offsets: list[GroupOffset]
    log_partition: LogPartition
    stable_offset: int
    left_out: int


class Cluster:
    """A cluster, by its bootstrap servers. Methods raise ``CommandError``.

    ``config`` is a file of librdkafka settings; ``timeout`` (seconds) bounds each request and
    each period without records while the topic is read.
    """

    def __init__(self, bootstrap: str, config: Path | None, timeout: float) -> None:
        if kafka is None:
            raise CommandError(
                "Kafka clusters need confluent-kafka: install muster-server[kafka]",
                ExitCode.PRECONDITION,
            )
        self._bootstrap = bootstrap
        self._timeout = timeout
        self._settings = {
            "log_level": 0,
            **_read_config(config),
            "bootstrap.servers": bootstrap,
        }
        try:
            self._admin = kafka_admin.AdminClient(self._settings)
        except (kafka.KafkaException, ValueError, TypeError) as error:
            secrets = [str(value) for name, value in self._settings.items() if looks_secret(name)]
            reason = hide(_describe(error), secrets)
            raise CommandError(f"{config or bootstrap}: {reason}", ExitCode.USAGE) from error

    def read_offsets(self, group_id: GroupId, *, include_undecided: bool) -> ClusterOffsets:
        """Read the committed offsets of a group from the partition it hashes to."""
        partition = compute_log_partition(group_id, self._count_partitions())
        start, stable, end = self._find_bounds(partition)
        fold = GroupOffsetsFold(group_id)
        left_out = 0
        try:
            for record in self._consume(partition, start, stable, "read_committed"):
                fold.apply_committed(record)
            for record in self._consume(partition, stable, end, "read_uncommitted"):
                if include_undecided:
                    fold.apply_committed(record)
                elif fold.concerns(record.key):
                    left_out += 1
            offsets = fold.compute_offsets()
        except CodecError as error:
            raise CommandError(f"{self._bootstrap}, partition {partition}: {error}") from error
        return ClusterOffsets(offsets, partition, stable, left_out)

    def list_topics(self) -> dict[TopicName, TopicSideValue]:
        """Names, ids, partition counts and racks of all topics except internal ones (``__*``)."""
        names = [name for name in sorted(self._list_all_topics()) if not name.startswith("__")]
        if not names:
            return {}
        answers = self._ask(self._admin.describe_topics, kafka.TopicCollection(names))
        described = [self._wait(answers[name]) for name in names]
        return {
            TopicName(each.name): TopicSideValue(
                _read_id(each.topic_id), len(each.partitions), _read_racks(each.partitions)
            )
            for each in described
        }

    def list_offsets(self, group_id: GroupId) -> dict[tuple[str, int], int]:
        """The committed offsets of the group, from its coordinator."""
        request = [kafka.ConsumerGroupTopicPartitions(group_id)]
        answers = self._ask(self._admin.list_consumer_group_offsets, request)
        found = self._wait(answers[group_id])
        return {
            (each.topic, each.partition): each.offset
            for each in found.topic_partitions
            if each.error is None and each.offset >= 0
        }

    def list_end_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """End offsets of these partitions; those that the cluster does not have are left out."""
        known = self.list_topics()
        there = [
            (topic, number)
            for topic, number in places
            if topic in known and number < known[TopicName(topic)].partitions
        ]
        return self.list_offsets_at(there, None) if there else {}

    def list_offsets_at(
        self, places: Iterable[tuple[str, int]], at_ms: int | None
    ) -> dict[tuple[str, int], int]:
        """The first offset at or after this wall-clock time in each partition; -1 if there is none.

        ``None`` asks for the end offset.
        """
        latest, at = kafka_admin.OffsetSpec.latest, kafka_admin.OffsetSpec.for_timestamp
        spec = latest() if at_ms is None else at(at_ms)
        asked = {kafka.TopicPartition(topic, number): spec for topic, number in places}
        answers = self._ask(self._admin.list_offsets, asked)
        return {
            (place.topic, place.partition): self._wait(answer).offset
            for place, answer in answers.items()
        }

    def commit(
        self, group_id: GroupId, offsets: Sequence[GroupOffset], *, with_metadata: bool
    ) -> None:
        """Commit offsets for a group without members, with or without their metadata.

        Leader epochs are not committed: they belong to the cluster that wrote the log. Raises
        ``CommandError`` with exit code 4 if the group has members. One failed partition does not
        keep the others from being committed.
        """
        wanted = [
            kafka.TopicPartition(each.topic, each.partition, each.offset)
            if not with_metadata or (metadata := _compute_metadata(each)) is None
            else kafka.TopicPartition(each.topic, each.partition, each.offset, metadata)
            for each in offsets
        ]
        request = [kafka.ConsumerGroupTopicPartitions(group_id, wanted)]
        answers = self._ask(self._admin.alter_consumer_group_offsets, request)
        try:
            results = answers[group_id].result(self._timeout)
        except kafka.KafkaException as error:
            self._check_members(group_id, error.args[0])
            self._fail(error)
        except FutureTimeout as error:
            self._fail(error)
        failed = [each for each in results.topic_partitions if each.error is not None]
        for each in failed:
            self._check_members(group_id, each.error)
        if failed:
            raise CommandError(_compute_failures(failed))

    def _check_members(self, group_id: GroupId, error: Any) -> None:
        if error.code() in (kafka.KafkaError.UNKNOWN_MEMBER_ID, kafka.KafkaError.NON_EMPTY_GROUP):
            raise CommandError(
                f"group {group_id} at {self._bootstrap} has members, so nothing was committed: "
                "stop its consumers first",
                ExitCode.PRECONDITION,
            )

    def _list_all_topics(self) -> dict[str, Any]:
        """All topics. The request names none, because a broker may create topics that it names."""
        try:
            topics: dict[str, Any] = self._admin.list_topics(timeout=self._timeout).topics
        except kafka.KafkaException as error:
            self._fail(error)
        return topics

    def _count_partitions(self) -> int:
        found = self._list_all_topics().get(TOPIC)
        if found is None or not found.partitions:
            raise CommandError(f"{self._bootstrap} has no topic {TOPIC}", ExitCode.NOT_FOUND)
        return len(found.partitions)

    def _find_bounds(self, partition: LogPartition) -> tuple[int, int, int]:
        """The first offset, the last stable offset and the end offset of a partition."""
        return (
            self._find_offset(partition, kafka_admin.OffsetSpec.earliest(), False),
            self._find_offset(partition, kafka_admin.OffsetSpec.latest(), True),
            self._find_offset(partition, kafka_admin.OffsetSpec.latest(), False),
        )

    def _find_offset(self, partition: LogPartition, spec: Any, is_stable: bool) -> int:
        level = kafka.IsolationLevel
        answers = self._ask(
            self._admin.list_offsets,
            {kafka.TopicPartition(TOPIC, partition): spec},
            isolation_level=level.READ_COMMITTED if is_stable else level.READ_UNCOMMITTED,
        )
        (answer,) = answers.values()
        offset: int = self._wait(answer).offset
        return offset

    def _consume(
        self, partition: LogPartition, start: int, end: int, level: str
    ) -> Iterator[BatchRecord]:
        """Consume the records from ``start`` to before ``end``."""
        if start >= end:
            return
        consumer = kafka.Consumer(
            {
                **self._settings,
                "group.id": _READER,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": level,
            }
        )
        try:
            consumer.assign([kafka.TopicPartition(TOPIC, partition, start)])
            deadline = time.monotonic() + self._timeout
            while time.monotonic() < deadline:
                messages = consumer.consume(_FETCH_MESSAGES, _POLL_S)
                for message in messages:
                    error = message.error()
                    if error is None and message.offset() < end:
                        yield _compute_record(message)
                    elif error is None or error.code() == kafka.KafkaError._PARTITION_EOF:
                        return
                    elif error.code() not in _coordinator_errors():
                        self._fail(kafka.KafkaException(error))
                if messages:
                    deadline = time.monotonic() + self._timeout
            self._fail(TimeoutError())
        finally:
            consumer.close()

    def _ask(self, method: Any, request: Any, **more: Any) -> Any:
        try:
            return method(request, request_timeout=self._timeout, **more)
        except (kafka.KafkaException, ValueError, TypeError) as error:
            raise CommandError(f"{self._bootstrap}: {_describe(error)}") from error

    def _wait(self, answer: Future[Any]) -> Any:
        try:
            return answer.result(self._timeout)
        except (kafka.KafkaException, FutureTimeout) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(error, TimeoutError) or _is_unreachable(error):
            raise CommandError(
                f"{self._bootstrap} cannot be reached, or did not answer within "
                f"{self._timeout:g} s",
                ExitCode.UNREACHABLE,
            ) from error
        raise CommandError(f"{self._bootstrap}: {_describe(error)}") from error


def _read_id(topic_id: Any) -> TopicId:
    """confluent-kafka represents the two halves of a topic id as signed integers."""
    halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    return TopicId(b"".join((half & (1 << 64) - 1).to_bytes(8, "big") for half in halves))


def _read_racks(partitions: Sequence[Any]) -> Racks:
    """The distinct racks of each partition's replicas; empty if the brokers have no racks."""
    racks = tuple(
        tuple(dict.fromkeys(node.rack for node in each.replicas if node.rack))
        for each in sorted(partitions, key=lambda each: each.id)
    )
    return racks if any(racks) else ()


def _coordinator_errors() -> tuple[int, ...]:
    """Errors of the reader's own group, which it does not use."""
    codes = kafka.KafkaError
    return (
        codes.COORDINATOR_NOT_AVAILABLE,
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes.NOT_COORDINATOR,
        codes.GROUP_AUTHORIZATION_FAILED,
    )


def _compute_record(message: Any) -> BatchRecord:
    return BatchRecord(message.offset(), message.timestamp()[1], message.key(), message.value())


def _compute_metadata(offset: GroupOffset) -> str | None:
    """The metadata as confluent-kafka can send it, or ``None`` for empty metadata.

    It cuts text at the first NUL and appends one, so the metadata that its own consumers committed
    comes out unchanged. Raises ``CommandError`` if a NUL inside would cut the text.
    """
    text = offset.metadata.removesuffix("\0")
    if "\0" in text:
        raise CommandError(
            f"the metadata of {offset.topic}-{offset.partition} contains a NUL, which "
            "confluent-kafka cannot send: use --without-metadata"
        )
    return text or None


def _compute_failures(failed: Sequence[Any]) -> str:
    """One line for each topic and error, with the partitions."""
    partitions: dict[tuple[str, str], list[int]] = {}
    for each in failed:
        partitions.setdefault((each.topic, each.error.str()), []).append(each.partition)
    return "\n".join(
        f"{topic}:{','.join(map(str, numbers))}: {error}"
        for (topic, error), numbers in partitions.items()
    )


def _is_unreachable(error: Exception) -> bool:
    codes = kafka.KafkaError
    return isinstance(error, kafka.KafkaException) and error.args[0].code() in (
        codes._TRANSPORT,
        codes._ALL_BROKERS_DOWN,
        codes._TIMED_OUT,
        codes._RESOLVE,
        codes._MAX_POLL_EXCEEDED,
        codes.REQUEST_TIMED_OUT,
    )


def _describe(error: Exception) -> str:
    if isinstance(error, kafka.KafkaException):
        return str(error.args[0].str())
    return " ".join(str(error).split())


def _read_config(config: Path | None) -> Mapping[str, str]:
    if config is None:
        return {}
    try:
        return read_client_properties_file(config, os.environ)
    except (OSError, ProviderError) as error:
        raise CommandError(f"{config} cannot be read: {error}", ExitCode.USAGE) from error
