"""What administrators change in what all log partitions share: topics, configs, access.

Such a command is carried out at once, so that what it changes is looked at before and after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, assert_never

from coordinator.core.groups.quota_changes import compute_entity
from coordinator.runtime.audit import State
from coordinator.runtime.commands.audited_commands import CataloguedCommand, find_deleted
from coordinator.runtime.topics.topic_images import TopicCatalogueRuntime
from model.access.acls import Acl
from model.access.quotas import QuotaEntity
from model.access.scram import ScramCredential, ScramMechanism
from model.commands.access import CreateAcls, DeleteAcls
from model.commands.configs import AlterGroupConfigs
from model.commands.quotas import AlterQuotas
from model.commands.topics import CreateTopic, DeleteTopic, GrowTopic, SetTopicRacks
from model.commands.users import AlterUserScramCredentials, SetUser
from model.errors import GroupError
from model.topics import Topic
from storage.codec.kinds import uuid_to_json

PART: Final = 100
"""Offsets, ACLs and members in one line of the log."""

_Users: TypeAlias = Mapping[str, Mapping[ScramMechanism, ScramCredential]]
_Quotas: TypeAlias = Mapping[QuotaEntity, Mapping[str, float]]
Looked: TypeAlias = State | _Users | _Quotas | frozenset[Acl] | None
Pair: TypeAlias = tuple[State | None, State | None]


def look_in_catalogue(catalogue: TopicCatalogueRuntime, command: CataloguedCommand) -> Looked:
    """What the command is about, as it is now."""
    match command:
        case CreateTopic(name=name) | GrowTopic(name=name) | SetTopicRacks(name=name):
            return _describe_topic(catalogue.image.by_name.get(name))
        case DeleteTopic():
            return _describe_topic(find_deleted(command, catalogue.image))
        case AlterGroupConfigs(group_id=group_id):
            return dict(catalogue.group_configs.get(group_id, {}))
        case CreateAcls(acls=acls) | DeleteAcls(acls=acls):
            return frozenset(acl for acl in acls if acl in catalogue.acls)
        case AlterUserScramCredentials() | SetUser():
            return _find_users(catalogue, command)
        case AlterQuotas():
            return _find_quotas(catalogue, command)
        case _:
            assert_never(command)


def _find_users(
    catalogue: TopicCatalogueRuntime, command: AlterUserScramCredentials | SetUser
) -> _Users:
    """The credentials of the users, to be compared: they are never noted themselves."""
    if isinstance(command, SetUser):
        users = {command.user}
    else:
        users = {each.user for each in command.deletions}
        users |= {each.user for each in command.upsertions}
    find = catalogue.scram_credentials.find_mechanisms
    return {user: dict(find(user)) for user in users if find(user)}


def _find_quotas(catalogue: TopicCatalogueRuntime, command: AlterQuotas) -> _Quotas:
    found: dict[QuotaEntity, Mapping[str, float]] = {}
    for alteration in command.alterations:
        with suppress(GroupError):  # The command itself says so.
            entity = compute_entity(alteration)
            found[entity] = catalogue.quotas.find(entity)
    return found


def compute_catalogued(command: CataloguedCommand, before: Any, after: Any) -> Iterator[Pair]:
    """What was before and what is after, in parts that fit a line."""
    match command:
        case CreateTopic() | GrowTopic() | SetTopicRacks() | DeleteTopic() | AlterGroupConfigs():
            yield before, after
        case CreateAcls():
            acls = [_describe_acl(acl) for acl in dict.fromkeys(command.acls)
                    if acl in after and acl not in before]  # fmt: skip
            yield from ((None, {"acls": part}) for part in split(acls))
        case DeleteAcls():
            acls = [_describe_acl(acl) for acl in dict.fromkeys(command.acls)
                    if acl in before and acl not in after]  # fmt: skip
            yield from (({"acls": part}, None) for part in split(acls))
        case AlterUserScramCredentials() | SetUser():
            users = [user for user in sorted({*before, *after})
                     if before.get(user) != after.get(user)]  # fmt: skip
            for part in split(users):
                yield _describe_users(before, part), _describe_users(after, part)
        case AlterQuotas():
            changed = [entity for entity in after if before[entity] != after[entity]]
            for part in split(changed):
                yield _describe_quotas(before, part), _describe_quotas(after, part)
        case _:
            assert_never(command)


def _describe_users(users: _Users, names: Sequence[str]) -> State | None:
    """The iterations by mechanism: nothing else of a credential."""
    described = {
        name: {mechanism.value: found.iterations for mechanism, found in users[name].items()}
        for name in names
        if name in users
    }
    return {"users": described} if described else None


def _describe_quotas(quotas: _Quotas, entities: Sequence[QuotaEntity]) -> State | None:
    """The quotas of each entity; an empty name stands for all without quotas of their own."""
    described = [
        {
            **{kind: name for kind, name in entity._asdict().items() if name is not None},
            **quotas[entity],
        }
        for entity in entities
        if quotas[entity]
    ]
    return {"quotas": described} if described else None


def _describe_topic(topic: Topic | None) -> State | None:
    if topic is None:
        return None
    described: dict[str, object] = {
        "topic_id": uuid_to_json(topic.topic_id),
        "partitions": topic.partitions,
    }
    return described | {"racks": topic.racks} if topic.racks else described


def _describe_acl(acl: Acl) -> State:
    return {
        "principal": acl.rule.principal,
        "host": acl.rule.host,
        "operation": acl.rule.operation.value,
        "permission": acl.rule.permission.value,
        "resource_type": acl.pattern.resource_type.value,
        "resource_name": acl.pattern.name,
        "pattern_type": acl.pattern.pattern_type.value,
    }


def split(rows: Sequence[Any]) -> Iterator[Any]:
    """The rows in parts that fit a line."""
    return (rows[begin : begin + PART] for begin in range(0, len(rows), PART))
