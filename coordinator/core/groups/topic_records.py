"""The topic catalogue: topics, deletions in progress, producer id blocks, group configs, access."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from coordinator.core.groups.acl_changes import handle_acl_command
from coordinator.core.groups.config_changes import (
    compute_described_configs,
    compute_group_settings,
    handle_alter_group_configs,
)
from coordinator.core.groups.quota_changes import handle_quota_command
from coordinator.core.groups.user_changes import handle_user_command, replay_user
from coordinator.core.state.outcome import Outcome, RefreshGroups
from model.commands.access import CreateAcls, DeleteAcls, DescribeAcls
from model.commands.command import CatalogueCommand, ConfigCommand, TopicCommand
from model.commands.configs import AlterGroupConfigs, DescribeGroupConfigs, ListGroupConfigs
from model.commands.quotas import AlterQuotas, DescribeQuotas
from model.commands.topics import (
    CreateTopic,
    DeleteTopic,
    ForgetDeletedTopic,
    GrowTopic,
    SetTopicRacks,
)
from model.commands.transactions import AllocateProducerId
from model.commands.users import AlterUserScramCredentials, DescribeUserScramCredentials, SetUser
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import (
    InvalidPartitions,
    InvalidRequest,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from model.ids import GroupId, LogOffset, TopicId, TopicName
from model.log.side_records import (
    AclSideKey,
    AclSideValue,
    FakeSaltSecretKey,
    GroupConfigsSideKey,
    GroupConfigsSideValue,
    ImportGraceKey,
    ImportGraceValue,
    ProducerIdBlockKey,
    ProducerIdBlockValue,
    QuotaSideKey,
    QuotaSideValue,
    ScramCredentialKey,
    ShardSideKey,
    SideRecord,
    TokenStartKey,
    TokenStartValue,
    TopicDeletionKey,
    TopicDeletionValue,
    TopicSideKey,
    TopicSideValue,
)
from model.now import Now
from model.responses.configs import ListGroupConfigsResponse
from model.responses.response import Done
from model.responses.topics import TopicResponse
from model.responses.transactions import ProducerIdResponse
from model.topics import (
    NAME_LENGTH_MAX,
    Topic,
    TopicImage,
    compute_image_with,
    compute_image_without,
    compute_metric_name,
)
from security.acl_index import AclIndex
from security.quotas.quota_index import QuotaIndex
from security.scram_credentials import ScramCredentials

PARTITIONS_MAX = 100_000
PRODUCER_ID_BLOCK = 1_000

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(slots=True)
class Catalogue:
    """The catalogue of a server. Only ``replay_side`` modifies it.

    Producer ids below ``producer_id_end`` are reserved durably; a restart begins with a new block.
    ``imported_at_ms`` is the wall time of the last import of a log, 0 for none: no offset expires
    before the retention has passed since then. ``group_configs`` are the configs set on groups;
    ``group_settings`` are the effective settings of these groups on a server with ``settings``.
    ``longest_session_timeouts_ms`` has the former session timeout of groups that shortened it.
    ``acls``, ``quotas`` and ``scram_credentials`` are in force with the record, before that is
    durable. ``new_fake_salt_secret`` is written with the first change of credentials.
    """

    settings: CoordinatorSettings = field(default_factory=CoordinatorSettings)
    image: TopicImage = field(default_factory=TopicImage)
    deleted: dict[TopicId, TopicDeletionValue] = field(default_factory=dict)
    producer_id_end: int = 0
    imported_at_ms: int = 0
    token_start_ms: int = 0
    group_configs: dict[GroupId, Mapping[str, str]] = field(default_factory=dict)
    group_settings: dict[GroupId, CoordinatorSettings] = field(default_factory=dict)
    longest_session_timeouts_ms: dict[GroupId, int] = field(default_factory=dict)
    acls: AclIndex = field(default_factory=AclIndex)
    quotas: QuotaIndex = field(default_factory=QuotaIndex)
    scram_credentials: ScramCredentials = field(default_factory=ScramCredentials)
    new_fake_salt_secret: bytes = field(default=b"", repr=False)


def replay_side(catalogue: Catalogue, record: SideRecord) -> None:
    """Apply one side record to the catalogue; those of a log partition change nothing here."""
    if isinstance(record.key, ShardSideKey):
        return
    match record.key, record.value:
        case TopicSideKey() as key, TopicSideValue() as value:
            catalogue.image = compute_image_with(catalogue.image, make_topic(key, value))
        case TopicSideKey(name), None:
            catalogue.image = compute_image_without(catalogue.image, name)
        case TopicDeletionKey(topic_id), TopicDeletionValue() as deletion:
            catalogue.deleted[topic_id] = deletion
        case TopicDeletionKey(topic_id), None:
            catalogue.deleted.pop(topic_id, None)
        case ProducerIdBlockKey(), ProducerIdBlockValue(end):
            catalogue.producer_id_end = end
        case ImportGraceKey(), ImportGraceValue(imported_at_ms):
            catalogue.imported_at_ms = imported_at_ms
        case TokenStartKey(), TokenStartValue(wall_ms):
            catalogue.token_start_ms = wall_ms
        case GroupConfigsSideKey(group_id), value:
            assert value is None or isinstance(value, GroupConfigsSideValue)
            _replay_group_configs(catalogue, group_id, value or GroupConfigsSideValue(()))
        case ((AclSideKey() | QuotaSideKey() | ScramCredentialKey() | FakeSaltSecretKey()), _):
            _replay_access(catalogue, record)
        case _:
            raise AssertionError(f"unexpected side record: {record}")


def _replay_access(catalogue: Catalogue, record: SideRecord) -> None:
    match record.key, record.value:
        case AclSideKey(acl), AclSideValue():
            catalogue.acls.add(acl)
        case AclSideKey(acl), None:
            catalogue.acls.discard(acl)
        case QuotaSideKey(entity), QuotaSideValue(quotas):
            catalogue.quotas.put(entity, dict(quotas))
        case QuotaSideKey(entity), None:
            catalogue.quotas.discard(entity)
        case ((ScramCredentialKey() | FakeSaltSecretKey()), _):
            replay_user(catalogue.scram_credentials, record)
        case _:
            raise AssertionError(f"unexpected side record: {record}")


def _replay_group_configs(
    catalogue: Catalogue, group_id: GroupId, value: GroupConfigsSideValue
) -> None:
    own = dict(value.configs)
    catalogue.group_configs.pop(group_id, None)
    catalogue.group_settings.pop(group_id, None)
    catalogue.longest_session_timeouts_ms.pop(group_id, None)
    if own:
        catalogue.group_configs[group_id] = own
        catalogue.group_settings[group_id] = compute_group_settings(catalogue.settings, own)
    if value.longest_session_timeout_ms:
        catalogue.longest_session_timeouts_ms[group_id] = value.longest_session_timeout_ms


def make_topic(key: TopicSideKey, value: TopicSideValue) -> Topic:
    """Build the topic of a side record."""
    return Topic(key.topic, value.topic_id, value.partitions, value.racks)


def handle_server_command(
    catalogue: Catalogue, command: CatalogueCommand, now: Now, log_ends: tuple[LogOffset, ...] = ()
) -> Outcome:
    """Handle a command about what all shards share; see ``handle_topic_command``."""
    match command:
        case AlterGroupConfigs() | DescribeGroupConfigs() | ListGroupConfigs():
            return handle_config_command(catalogue, command)
        case CreateAcls() | DeleteAcls() | DescribeAcls():
            return handle_acl_command(catalogue.acls, command)
        case AlterQuotas() | DescribeQuotas():
            return handle_quota_command(catalogue.quotas, command)
        case AlterUserScramCredentials() | SetUser() | DescribeUserScramCredentials():
            secret = catalogue.new_fake_salt_secret
            return handle_user_command(catalogue.scram_credentials, command, secret)
        case _:
            return handle_topic_command(catalogue, command, now, log_ends)


def handle_topic_command(
    catalogue: Catalogue, command: TopicCommand, now: Now, log_ends: tuple[LogOffset, ...] = ()
) -> Outcome:
    """Handle a command of the catalogue. Raises a ``GroupError``, and has changed nothing then.

    ``log_ends`` are the end offsets of all log partitions, which the record of a deletion keeps.
    """
    match command:
        case CreateTopic():
            return handle_create_topic(catalogue, command)
        case GrowTopic():
            return handle_grow_topic(catalogue, command)
        case SetTopicRacks():
            return handle_set_topic_racks(catalogue, command)
        case DeleteTopic():
            return handle_delete_topic(catalogue, command, now, log_ends)
        case ForgetDeletedTopic():
            key = TopicDeletionKey(command.topic_id)
            return Outcome(side=(SideRecord(key, None),), response=Done())
        case AllocateProducerId():
            return handle_allocate_producer_id(catalogue)
        case _:
            assert_never(command)


def handle_config_command(catalogue: Catalogue, command: ConfigCommand) -> Outcome:
    """Handle a command about group configs; errors are as of ``handle_topic_command``."""
    match command:
        case AlterGroupConfigs():
            own = catalogue.group_configs.get(command.group_id, {})
            longest_ms = catalogue.longest_session_timeouts_ms.get(command.group_id, 0)
            return handle_alter_group_configs(catalogue.settings, own, longest_ms, command)
        case DescribeGroupConfigs(group_id=group_id):
            own = catalogue.group_configs.get(group_id, {})
            return Outcome(response=compute_described_configs(catalogue.settings, own, group_id))
        case ListGroupConfigs():
            group_ids = tuple(sorted(catalogue.group_configs))
            return Outcome(response=ListGroupConfigsResponse(group_ids))
        case _:
            assert_never(command)


def check_topic_name(image: TopicImage, name: TopicName) -> None:
    """Raise ``InvalidTopic`` for a name that Kafka refuses.

    As in Kafka, it must not differ from another topic's only by ``.`` and ``_``: metric names
    would collide.
    """
    if not name or name in (".", ".."):
        raise InvalidTopic(f"Topic name is invalid: {name!r} is not allowed.")
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidTopic(
            f"Topic name is invalid: it is longer than the max allowed length {NAME_LENGTH_MAX}."
        )
    if _LEGAL_NAME.fullmatch(name) is None:
        raise InvalidTopic(
            f"Topic name is invalid: {name!r} contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'."
        )
    metric_name = compute_metric_name(name)
    other = None if metric_name is None else image.by_metric_name.get(metric_name)
    if other is not None and other != name:
        raise InvalidTopic(f"Topic {name!r} collides with the existing topic {other!r}.")


def check_partition_count(partitions: int) -> None:
    """Raise ``InvalidPartitions`` unless the count is between 1 and ``PARTITIONS_MAX``."""
    if partitions < 1:
        raise InvalidPartitions("The number of partitions must be larger than 0.")
    if partitions > PARTITIONS_MAX:
        raise InvalidPartitions(f"A topic cannot have more than {PARTITIONS_MAX} partitions.")


def _topic_outcome(topic: Topic, validate_only: bool) -> Outcome:
    if validate_only:
        return Outcome(response=TopicResponse(topic))
    value = TopicSideValue(topic.topic_id, topic.partitions, topic.racks)
    return Outcome(
        side=(SideRecord(TopicSideKey(topic.name), value),),
        response=TopicResponse(topic),
        effects=(RefreshGroups(topic.name),),
    )


def handle_create_topic(catalogue: Catalogue, command: CreateTopic) -> Outcome:
    if command.name in catalogue.image.by_name:
        raise TopicAlreadyExists(f"Topic '{command.name}' already exists.")
    check_topic_name(catalogue.image, command.name)
    check_partition_count(command.partitions)
    assert command.topic_id not in catalogue.image.by_id
    topic = Topic(command.name, command.topic_id, command.partitions)
    return _topic_outcome(topic, command.validate_only)


def handle_grow_topic(catalogue: Catalogue, command: GrowTopic) -> Outcome:
    old = catalogue.image.by_name.get(command.name)
    if old is None:
        raise UnknownTopicOrPartition(f"Topic '{command.name}' does not exist.")
    check_partition_count(command.partitions)
    if command.partitions <= old.partitions:
        raise InvalidPartitions(
            f"The topic {old.name} currently has {old.partitions} partition(s); "
            f"{command.partitions} would not be an increase."
        )
    topic = Topic(old.name, old.topic_id, command.partitions, old.racks)
    return _topic_outcome(topic, command.validate_only)


def handle_set_topic_racks(catalogue: Catalogue, command: SetTopicRacks) -> Outcome:
    """Set the racks of a topic; subscribed groups get a new epoch and target (KIP-1101)."""
    old = catalogue.image.by_name.get(command.name)
    if old is None:
        raise UnknownTopicOrPartition(f"Topic '{command.name}' does not exist.")
    check_racks(command.racks, old.partitions)
    racks = command.racks if any(command.racks) else ()
    topic = Topic(old.name, old.topic_id, old.partitions, racks)
    return _topic_outcome(topic, command.validate_only or topic == old)


def check_racks(racks: tuple[tuple[str, ...], ...], partitions: int) -> None:
    """Raise ``InvalidRequest`` for racks of missing partitions, empty names, or duplicates."""
    if len(racks) > partitions:
        raise InvalidRequest(
            f"Racks are given for {len(racks)} partitions, but the topic has {partitions}."
        )
    for partition, names in enumerate(racks):
        if "" in names:
            raise InvalidRequest(f"Partition {partition} has a rack with an empty name.")
        if len(set(names)) < len(names):
            # A second replica in the same rack adds no information.
            raise InvalidRequest(f"Partition {partition} lists a rack twice.")


def handle_delete_topic(
    catalogue: Catalogue, command: DeleteTopic, now: Now, log_ends: tuple[LogOffset, ...]
) -> Outcome:
    image = catalogue.image
    if command.name is not None:
        topic = image.by_name.get(command.name)
        if topic is None:
            raise UnknownTopicOrPartition(f"Topic '{command.name}' does not exist.")
    elif command.topic_id is not None:
        topic = image.by_id.get(command.topic_id)
        if topic is None:
            raise UnknownTopicId("No topic has that topic id.")
    else:
        raise InvalidRequest("Neither a topic name nor a topic id was given.")
    value = TopicDeletionValue(topic.name, now.wall_ms, log_ends)
    deletion = SideRecord(TopicDeletionKey(topic.topic_id), value)
    return Outcome(
        side=(SideRecord(TopicSideKey(topic.name), None), deletion),
        response=TopicResponse(topic),
        effects=(RefreshGroups(topic.name),),
    )


def handle_allocate_producer_id(catalogue: Catalogue) -> Outcome:
    """Reserve a block of producer ids. The response has the first; the runtime assigns the rest."""
    first = catalogue.producer_id_end
    value = ProducerIdBlockValue(first + PRODUCER_ID_BLOCK)
    return Outcome(
        side=(SideRecord(ProducerIdBlockKey(), value),), response=ProducerIdResponse(first)
    )
