"""The calls of most commands."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.errors import CommandError, ExitCode
from cli.server_calls import ServerCalls, open_calls
from cli.tool_security import ToolSecurity
from muster.v1 import (
    access_pb2,
    access_pb2_grpc,
    admin_pb2,
    admin_pb2_grpc,
    backup_pb2,
    backup_pb2_grpc,
    group_pb2,
    group_pb2_grpc,
    quota_pb2,
    quota_pb2_grpc,
    types_pb2,
    user_pb2,
    user_pb2_grpc,
)


class AdminClient:
    """The calls that commands make. Every error is raised as a ``CommandError``."""

    def __init__(self, calls: ServerCalls) -> None:
        self.calls = calls
        self._call = calls.call
        channel = calls.channel
        self._backups = backup_pb2_grpc.BackupServiceStub(channel)
        self._stub = admin_pb2_grpc.AdminServiceStub(channel)
        self._groups = group_pb2_grpc.GroupServiceStub(channel)
        self._access = access_pb2_grpc.AccessServiceStub(channel)
        self._quotas = quota_pb2_grpc.QuotaServiceStub(channel)
        self._users = user_pb2_grpc.UserServiceStub(channel)

    def list_topics(self) -> list[admin_pb2.Topic]:
        """All topics, by name."""
        found: list[admin_pb2.Topic] = []
        token = ""
        while True:
            request = admin_pb2.ListTopicsRequest(page_size=1_000, page_token=token)
            response = self._call(self._stub.ListTopics, request)
            found.extend(response.topics)
            token = response.next_page_token
            if not token:
                return found

    def list_groups(
        self, asked: admin_pb2.ListGroupsRequest, limit: int | None = None
    ) -> tuple[list[admin_pb2.GroupSummary], str]:
        """All groups that are asked for; at most ``limit``, with the token of those that follow."""
        found: list[admin_pb2.GroupSummary] = []
        request = admin_pb2.ListGroupsRequest()
        request.CopyFrom(asked)
        while True:
            request.page_size = 1_000 if limit is None else min(limit - len(found), 1_000)
            response = self._call(self._stub.ListGroups, request)
            found.extend(response.groups)
            request.page_token = response.next_page_token
            if not request.page_token or len(found) == limit:
                return found, request.page_token

    def describe_group(
        self, group_id: str, as_of: types_pb2.AsOf | None = None
    ) -> admin_pb2.DescribeGroupResponse:
        """One group and its members."""
        request = admin_pb2.DescribeGroupRequest(group_id=group_id, as_of=as_of)
        with _was_not_there(group_id, as_of):
            return self._call(self._stub.DescribeGroup, request)

    def watch_group(self, group_id: str) -> Any:
        """A call that has no end: the group now, and whenever it has changed."""
        return self._stub.WatchGroup(admin_pb2.WatchGroupRequest(group_id=group_id))

    def fetch_offsets(
        self,
        group_id: str,
        require_stable: bool,
        as_of: types_pb2.AsOf | None = None,
        partitions: Mapping[str, Sequence[int]] | None = None,
    ) -> group_pb2.FetchOffsetsResponse:
        """Committed offsets of a group and where the partitions end; of all, or of those given."""
        request = group_pb2.FetchOffsetsRequest(
            group_id=group_id, require_stable=require_stable, as_of=as_of, with_end_offsets=True
        )
        for name, numbers in (partitions or {}).items():
            request.partitions.topics.add(topic_name=name, partitions=numbers)
        with _was_not_there(group_id, as_of):
            response = self._call(self._groups.FetchOffsets, request)
        if response.HasField("error"):
            error = response.error
            raise CommandError(f"{error.reason}: {error.error_message}".removesuffix(": "))
        return response

    def report_end_offsets(
        self, name: str, ends: Mapping[int, int]
    ) -> group_pb2.ReportEndOffsetsResponse:
        """Tell where partitions of a topic end; the answer has what was not taken, and why."""
        request = group_pb2.ReportEndOffsetsRequest()
        topic = request.topics.add(topic_name=name)
        for partition, end in ends.items():
            topic.partitions.add(partition=partition, end_offset=end)
        return self._call(self._groups.ReportEndOffsets, request)

    def create_topic(self, name: str, partitions: int, validate_only: bool) -> admin_pb2.Topic:
        """Create a topic; with ``validate_only`` return it as it would be created."""
        request = admin_pb2.CreateTopicRequest(
            topic_name=name,
            num_partitions=partitions,
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        return self._call(self._stub.CreateTopic, request).topic

    def grow_topic(self, name: str, partitions: int, validate_only: bool) -> admin_pb2.Topic:
        """Add partitions to a topic; return the topic after the change."""
        request = admin_pb2.GrowTopicRequest(
            topic_name=name,
            num_partitions=partitions,
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        return self._call(self._stub.GrowTopic, request).topic

    def set_topic_racks(
        self, name: str, racks: Sequence[Sequence[str]], validate_only: bool
    ) -> admin_pb2.Topic:
        """Set the replica racks of a topic; return the topic after the change."""
        request = admin_pb2.SetTopicRacksRequest(
            topic_name=name,
            replica_racks=[admin_pb2.ReplicaRacks(names=names) for names in racks],
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        return self._call(self._stub.SetTopicRacks, request).topic

    def delete_topic(self, name: str, validate_only: bool) -> admin_pb2.Topic:
        """Delete a topic; return it as it was."""
        request = admin_pb2.DeleteTopicRequest(
            topic_name=name, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        return self._call(self._stub.DeleteTopic, request).topic

    def delete_group(self, group_id: str, validate_only: bool) -> None:
        """Delete an empty group with its offsets, or check that it can be deleted."""
        request = admin_pb2.DeleteGroupRequest(
            group_id=group_id, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        self._call(self._stub.DeleteGroup, request)

    def remove_members(
        self, request: admin_pb2.RemoveMembersRequest
    ) -> admin_pb2.RemoveMembersResponse:
        """Remove members of a group, or with ``validate_only`` describe them."""
        return self._call(self._stub.RemoveMembers, request)

    def delete_offsets(
        self, group_id: str, topics: Mapping[str, Sequence[int]], validate_only: bool
    ) -> list[types_pb2.TopicFailures]:
        """Delete offsets; return the failures."""
        request = admin_pb2.DeleteOffsetsRequest(
            group_id=group_id,
            topics=[
                types_pb2.TopicPartitions(topic_name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        return list(self._call(self._stub.DeleteOffsets, request).failures)

    def describe_group_configs(self, group_id: str) -> list[admin_pb2.GroupConfig]:
        """The configs of a group."""
        request = admin_pb2.DescribeGroupConfigsRequest(group_id=group_id)
        return list(self._call(self._stub.DescribeGroupConfigs, request).configs)

    def alter_group_configs(
        self, group_id: str, changes: Mapping[str, str | None], validate_only: bool
    ) -> None:
        """Set configs of a group; ``None`` removes one."""
        request = admin_pb2.AlterGroupConfigsRequest(
            group_id=group_id,
            changes=[
                admin_pb2.ConfigChange(name=name, value=value) for name, value in changes.items()
            ],
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        self._call(self._stub.AlterGroupConfigs, request)

    def plan_migration(self, group_id: str) -> admin_pb2.PlanMigrationResponse:
        """The obstacles to converting a group to the consumer protocol."""
        return self._call(
            self._stub.PlanMigration, admin_pb2.PlanMigrationRequest(group_id=group_id)
        )

    def convert_to_classic_group(self, group_id: str, validate_only: bool) -> None:
        """Convert a consumer group to a classic group, or check that it can be converted."""
        request = admin_pb2.ConvertToClassicGroupRequest(
            group_id=group_id, validate_only=validate_only, request_id=str(uuid.uuid4())
        )
        self._call(self._stub.ConvertToClassicGroup, request)

    def list_transactions(self) -> list[admin_pb2.Transaction]:
        """All open transactions."""
        request = admin_pb2.ListTransactionsRequest()
        return list(self._call(self._stub.ListTransactions, request).transactions)

    def end_transaction(self, transaction: admin_pb2.Transaction, commit: bool) -> None:
        """Commit or abort the pending offsets of a transaction in one log partition."""
        request = admin_pb2.EndTransactionRequest(
            log_partition=transaction.log_partition,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            commit=commit,
            request_id=str(uuid.uuid4()),
        )
        self._call(self._stub.EndTransaction, request)

    def list_acls(self, means: access_pb2.AclFilter) -> list[access_pb2.Acl]:
        """The ACLs that a filter means."""
        request = access_pb2.ListAclsRequest(filter=means)
        return list(self._call(self._access.ListAcls, request).acls)

    def create_acls(self, acls: Iterable[access_pb2.Acl]) -> None:
        """Put ACLs in force."""
        self._call(self._access.CreateAcls, access_pb2.CreateAclsRequest(acls=acls))

    def delete_acls(self, means: access_pb2.AclFilter, validate_only: bool) -> list[access_pb2.Acl]:
        """Delete the ACLs that a filter means, or only list them."""
        request = access_pb2.DeleteAclsRequest(filter=means, validate_only=validate_only)
        return list(self._call(self._access.DeleteAcls, request).acls)

    def check_access(
        self, request: access_pb2.CheckAccessRequest
    ) -> access_pb2.CheckAccessResponse:
        """Whether a principal may do something, and by which ACL."""
        return self._call(self._access.CheckAccess, request)

    def list_quotas(self, means: quota_pb2.QuotaEntity) -> list[quota_pb2.EntityQuotas]:
        """The quotas of the entities that have these names."""
        request = quota_pb2.ListQuotasRequest(entity=means)
        return list(self._call(self._quotas.ListQuotas, request).entities)

    def alter_quotas(
        self,
        entity: quota_pb2.QuotaEntity,
        changes: Mapping[str, float | None],
        validate_only: bool,
    ) -> None:
        """Set quotas of an entity; ``None`` removes one."""
        request = quota_pb2.AlterQuotasRequest(
            entity=entity,
            changes=[quota_pb2.QuotaChange(key=key, value=value) for key, value in changes.items()],
            validate_only=validate_only,
        )
        self._call(self._quotas.AlterQuotas, request)

    def create_backup(self, folder: str, with_credentials: bool) -> backup_pb2.CreateBackupResponse:
        """Back the server's store up into a new folder on its machine."""
        return self._call(
            self._backups.CreateBackup,
            backup_pb2.CreateBackupRequest(folder=folder, with_credentials=with_credentials),
        )

    def list_users(self, name: str = "") -> list[user_pb2.User]:
        """All users, by name; or the one of this name, if it exists."""
        found: list[user_pb2.User] = []
        token = ""
        while True:
            request = user_pb2.ListUsersRequest(page_size=1_000, page_token=token, name=name)
            response = self._call(self._users.ListUsers, request)
            found.extend(response.users)
            token = response.next_page_token
            if not token:
                return found

    def create_user(
        self, name: str, credentials: Iterable[user_pb2.ScramCredential], validate_only: bool
    ) -> None:
        """Create a user."""
        request = user_pb2.CreateUserRequest(
            name=name,
            credentials=credentials,
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        self._call(self._users.CreateUser, request)

    def alter_user(
        self, name: str, credentials: Iterable[user_pb2.ScramCredential], validate_only: bool
    ) -> None:
        """Give a user these credentials in place of its own."""
        request = user_pb2.AlterUserRequest(
            name=name,
            credentials=credentials,
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        self._call(self._users.AlterUser, request)

    def delete_user(self, name: str, mechanism: str, validate_only: bool) -> None:
        """Delete a user, or its credential for a mechanism."""
        request = user_pb2.DeleteUserRequest(
            name=name,
            mechanism=mechanism,
            validate_only=validate_only,
            request_id=str(uuid.uuid4()),
        )
        self._call(self._users.DeleteUser, request)


@contextmanager
def _was_not_there(group_id: str, as_of: types_pb2.AsOf | None) -> Iterator[None]:
    """Say that it was the past that had no such group, if that was asked for."""
    try:
        yield
    except CommandError as error:
        if as_of is None or error.exit_code is not ExitCode.NOT_FOUND:
            raise
        raise CommandError(
            f"GROUP_ID_NOT_FOUND: there was no group {group_id} then: `muster timeline {group_id} "
            "--since 30d` shows what is known of it",
            ExitCode.NOT_FOUND,
        ) from error


@contextmanager
def connect(
    server: str, timeout_s: float, command_config: Path | ToolSecurity | None = None
) -> Iterator[AdminClient]:
    """Connect to the server at ``HOST:PORT``: see ``open_calls``."""
    with open_calls(server, timeout_s, command_config) as calls:
        yield AdminClient(calls)
