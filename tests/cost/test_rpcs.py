"""Each RPC with very many elements in each repeated field of its request, and of its answer.

What is asked for is derived from the descriptors, so that an RPC or a field that is new is in it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from coordinator.core.groups.acl_changes import ACLS_MAX
from coordinator.core.groups.quota_changes import ENTITIES_MAX
from coordinator.core.replay.group_records import replay
from coordinator.runtime.as_of.history_reads import HistoryReads
from coordinator.runtime.as_of.history_worker import PastOwnerships
from coordinator.runtime.as_of.log_reads import LogReads, PartitionDescription
from coordinator.runtime.authorizer import AclAuthorizer
from coordinator.service.admin.access.access_service import AccessService
from coordinator.service.admin.access.quota_service import QuotaService
from coordinator.service.admin.access.user_service import UserService
from coordinator.service.admin.admin_service import AdminService
from coordinator.service.admin.backup_service import BackupService
from coordinator.service.admin.freeze_service import FreezeService
from coordinator.service.admin.group_descriptions import make_describe
from coordinator.service.admin.past.explain_service import ExplainService
from coordinator.service.admin.past.history_service import HistoryService
from coordinator.service.admin.past.log_service import LogService
from coordinator.service.admin.past.record_service import RecordService
from coordinator.service.admin.resets.reset_service import ResetService
from coordinator.service.admin.upstream.upstream_service import UpstreamService
from coordinator.service.admin.what_if_service import WhatIfService
from coordinator.service.calls.access import Access
from coordinator.service.calls.services import Services
from coordinator.service.calls.throttle import Throttle
from coordinator.service.calls.waits import Waits
from coordinator.service.classic.classic_service import ClassicService
from coordinator.service.ends.end_reports import EndReports, ReportLimits
from coordinator.service.ends.known_ends import KnownEnds
from coordinator.service.grpc_server import SERVICES
from coordinator.service.session.group_service import GroupService
from coordinator.service.session.ownership_service import OwnershipService
from coordinator.service.settings import GrpcSettings
from coordinator.service.streams.backlog import Backlog
from coordinator.service.streams.pinger import Pinger
from coordinator.service.streams.session_turns import Turns
from coordinator.service.streams.sessions import SessionRegistry
from coordinator.service.watch.watched_groups import WatchedGroups
from coordinator.service.wire.limits import compute_limits
from model.access.scram import USERS_MAX
from model.caller import ANONYMOUS, INTERNAL
from model.commands.access import ACLS_PER_COMMAND_MAX
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogOffset, LogPartition, MemberId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.past.as_of import LogPosition
from model.past.causes import Cause, CauseKind
from model.past.offset_changes import OffsetChange, OffsetChangeKind
from model.past.ownerships import Lane, Moment, Ownerships, OwningMember
from model.past.rebalances import Rebalance
from storage.causes_codec import encode_causes_key, encode_rebalance
from storage.log.trim import HistoryStart
from storage.offset_changes_codec import encode_change_key, encode_offset_change
from tests.cost.server import CostServer, cost_server
from tests.cost.test_acls import fill as fill_acls
from tests.cost.test_apis import G
from tests.cost.test_core import ASSIGNMENT, SUBSCRIPTION, ids
from tests.cost.test_quotas import fill as fill_quotas
from tests.cost.test_starts import (
    AT_REST,
    Prepare,
    make_offsets,
    make_one_group,
    make_simple_groups,
    make_topics,
    make_transactions,
)
from tests.cost.test_users import fill as fill_users
from tests.cost.turns import Counted, check_law
from tests.support.service.methods import METHODS

ELEMENTS: Final = 2_000
"""Of what a call asks for; what many more take is one command in most."""
MORE: Final = {"LeaveGroup.members": 2_000_000, "CreateAcls.acls": ACLS_PER_COMMAND_MAX}
"""Of these a message of 4 MiB, or a call, may have so many."""
SAID: Final[dict[str, Any]] = {
    "group_id": G, "request_id": str(uuid.UUID(int=7)), "client_id": "c", "member_epoch": -1,
    "partition_count": 1, "new_partition_count": 2,
    "resource_type": "GROUP", "pattern_type": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permission": "ALLOW", "assignor": "uniform", "page_token": "",
}  # fmt: skip


class Asked(NamedTuple):
    """A repeated field of a request."""

    method: MethodDescriptor
    path: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.method.name}.{'.'.join(self.path)}"


def find_repeated(message: Descriptor, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in message.fields:
        if field.is_repeated:
            yield (*path, field.name)
        if field.message_type is not None:
            yield from find_repeated(field.message_type, (*path, field.name))


ASKED: Final = [
    Asked(method, path)
    for method in METHODS.values()
    if not method.client_streaming
    for path in find_repeated(method.input_type)
]


def fill(message: Any, path: tuple[str, ...], count: int, number: int = 0) -> Any:
    """A message with ``count`` elements in the field at ``path``."""
    for field in message.DESCRIPTOR.fields:
        is_on_path = path[:1] == (field.name,)
        if field.is_repeated:
            times = count if is_on_path and len(path) == 1 else 1
            inner = path[1:] if is_on_path else ()
            _fill_repeated(message, field, inner, count, times)
        elif field.message_type is not None:
            if is_on_path:
                fill(getattr(message, field.name), path[1:], count, number)
        elif field.name in SAID:
            setattr(message, field.name, SAID[field.name])
        elif field.type == FieldDescriptor.TYPE_STRING:
            if field.containing_oneof is None or field.name in ("name", "topic", "topic_name"):
                setattr(message, field.name, f"t{number}")
        elif field.name in ("partition", "partition_index", "index"):
            setattr(message, field.name, number)
    return message


def _fill_repeated(
    message: Any, field: FieldDescriptor, path: tuple[str, ...], count: int, times: int
) -> None:
    found = getattr(message, field.name)
    if field.message_type is not None:
        for number in range(times):
            fill(found.add(), path, count, number)
    elif field.type == FieldDescriptor.TYPE_STRING:
        found.extend(f"t{number}" for number in range(times))
    elif field.type == FieldDescriptor.TYPE_ENUM:
        found.extend([1] * times)
    else:
        found.extend(range(times))


# ------------------------------------------------------------------------------------ calls


class Context:
    """As much of a ``ServicerContext`` as unary methods use."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:50000"

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        pass

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def set_trailing_metadata(self, metadata: object) -> None:
        pass

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Any = ()) -> None:
        raise grpc.aio.AbortError(code, details)


def run_server(folder: Path) -> AbstractContextManager[CostServer]:
    """With access control, and a caller that may do everything."""
    authorizer = AclAuthorizer(frozenset({ANONYMOUS}))
    return cost_server(folder, settings=AT_REST, authorizer=authorizer)


def make_services(server: CostServer) -> dict[str, Any]:
    settings = GrpcSettings()
    access = Access(server.authorizer)
    services = Services(
        server.runtime,
        access,
        compute_limits(server.settings, settings),
        settings,
        SessionRegistry(),
        Pinger(5.0),
        5_000,
        Turns(),
        Backlog(1 << 30, server.loop.call_soon),
        Throttle(server.runtime),
        WatchedGroups(
            server.runtime, partial(make_describe, server.runtime, INTERNAL), 1_000_000, 5_000
        ),
        # Only ``read_ownerships`` is asked: the past of groups is read by another process.
        history=cast(HistoryReads, PAST),
        known_ends=KnownEnds(
            None,
            EndReports(ReportLimits(1_000_000, 60_000)),
            image=lambda: server.runtime.image,
            now_ms=lambda: 0,
        ),
    )
    return {
        "GroupService": GroupService(services),
        "ClassicService": ClassicService(services, Waits()),
        "AdminService": AdminService(services),
        "BackupService": BackupService(access, None),
        "AccessService": AccessService(services),
        "QuotaService": QuotaService(services),
        "UserService": UserService(services),
        "UpstreamService": UpstreamService(services),
        "OwnershipService": OwnershipService(services),
        "ResetService": ResetService(services),
        "WhatIfService": WhatIfService(services),
        "ExplainService": ExplainService(services),
        "FreezeService": FreezeService(services),
        "HistoryService": HistoryService(services),
        "RecordService": RecordService(services),
        "LogService": LogService(services, cast(LogReads, LOG)),
    }


def count_call(server: CostServer, method: MethodDescriptor, request: Any) -> Counted:
    """From the message to the bytes of its answer."""
    assert method.containing_service is not None
    data = request.SerializeToString()
    with server._on_loop():
        service = make_services(server)[method.containing_service.name]
    tasks: list[Any] = []

    async def call() -> bytes:
        asked = GetMessageClass(method.input_type).FromString(data)
        answer = await getattr(service, method.name)(asked, Context())
        told: bytes = answer.SerializeToString()
        return told

    counted = server.loop.count(
        lambda: tasks.append(server.loop.create_task(call())),
        lambda: bool(tasks) and tasks[0].done(),
    )
    failure = tasks[0].exception()
    assert failure is None or isinstance(failure, grpc.aio.AbortError), failure
    return counted


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.label)
def test_a_request_is_linear_and_has_short_turns(asked: Asked, tmp_path: Path) -> None:
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        with run_server(tmp_path / str(next(runs))) as server:
            make_offsets(server, 10)
            request = fill(GetMessageClass(asked.method.input_type)(), asked.path, count)
            return count_call(server, asked.method, request)

    check_law(measure, ELEMENTS // 4, MORE.get(asked.label, ELEMENTS))


def make_warned(server: CostServer, n: int) -> None:
    """A classic group; of each member there is something to say."""
    members = tuple(
        ClassicGroupMember(own, None, "c", "/1", 60_000, 99_000, SUBSCRIPTION, ASSIGNMENT)
        for own in ids(n)
    )
    value = GroupMetadataValue("consumer", 3, "range", ids(1)[0], 5, members)
    group_id = GroupId(G)
    replay(server.runtime._shard_of(group_id), Record(GroupMetadataKey(group_id), value))


def make_rebalances(server: CostServer, n: int) -> None:
    """A group that has rebalanced so often: each time a topic was created."""
    cause = Cause(CauseKind.TOPIC_CREATED, topic_name=TopicName("t"))
    rebalances = (
        Rebalance(1_000 + number, number, number + 1, False, cause) for number in range(n)
    )
    server.store.write(
        [],
        causes=[
            (encode_causes_key(GroupId(G), each.at_ms, each.epoch), encode_rebalance(each))
            for each in rebalances
        ],
    )


class Past:
    """What a process has read of the past: as many members, moments and lanes."""

    found = Ownerships(LogPosition(LogPartition(0), LogOffset(-1), -1), (), (), (), False, True)

    async def read_ownerships(self, *asked: object) -> PastOwnerships:
        return PastOwnerships(LogPosition(LogPartition(0), LogOffset(5), 5), self.found)


PAST: Final = Past()


def make_ownerships(server: CostServer, n: int) -> None:
    """Lanes with two owners each; all members and moments are others."""
    PAST.found = Ownerships(
        LogPosition(LogPartition(0), LogOffset(-1), -1),
        tuple(OwningMember(MemberId(own), "c", "/1", "") for own in ids(n)),
        tuple(Moment(number, number, number, 1, 1) for number in range(n)),
        tuple(
            (Lane(TopicName("t"), None, number), ((-1, 0, 0, False), (number, 1, 1, False)))
            for number in range(n)
        ),
        False,
        True,
    )


class Log:
    """A log of so many partitions."""

    cluster_id = "c"
    partitions = 0

    def describe(self) -> Iterator[PartitionDescription]:
        for number in map(LogPartition, range(self.partitions)):
            yield PartitionDescription(number, HistoryStart(LogOffset(0), -1), LogOffset(5))


LOG: Final = Log()


def make_log(server: CostServer, n: int) -> None:
    LOG.partitions = n


def make_offset_changes(server: CostServer, n: int) -> None:
    """A group whose offsets were reset so often."""
    resets = (
        OffsetChange(OffsetChangeKind.RESET, 1_000, "User:a", LogOffset(at), LogOffset(at), 1)
        for at in range(n)
    )
    server.store.write(
        [],
        causes=[
            (encode_change_key(GroupId(G), each.first), encode_offset_change(each))
            for each in resets
        ],
    )


ANSWERS: Final[dict[str, tuple[Prepare, int]]] = {
    "ListGroups": (make_simple_groups, 1_000),
    "DescribeGroup": (make_one_group, 200),
    "DeleteGroup": (make_offsets, 2_000),
    "DescribeGroupConfigs": (make_simple_groups, 500),
    "PlanMigration": (make_warned, 1_000),
    "ConvertToClassicGroup": (make_one_group, 100),
    "ListTransactions": (make_transactions, 1_000),
    "ListTopics": (make_topics, 1_000),
    "DeleteTopic": (make_offsets, 1_000),
    "FetchOffsets": (make_offsets, 2_000),
    "WhatIf": (make_one_group, 200),
    "ExplainGroup": (make_rebalances, 500),
    "ListOffsetChanges": (make_offset_changes, 500),
    "ListOwnerships": (make_ownerships, 500),
    "DescribeLog": (make_log, 500),
    "ListAcls": (fill_acls, 2_000),
    "DeleteAcls": (fill_acls, 2_000),
    "ListUsers": (fill_users, 2_000),
    "ListQuotas": (fill_quotas, 2_000),
}
LIMITS: Final = {
    "ExplainGroup": GrpcSettings().grpc_page_size_max,
    "ListOffsetChanges": GrpcSettings().grpc_page_size_max,
    "ListGroups": 100_000,
    "DescribeGroupConfigs": 100_000,
    "PlanMigration": CoordinatorSettings().group_max_size,
    "ConvertToClassicGroup": CoordinatorSettings().group_max_size,
    "ListTopics": 100_000,
    "DeleteTopic": 100_000,
    "ListAcls": ACLS_MAX,
    "DeleteAcls": ACLS_MAX,
    "ListUsers": USERS_MAX,
    "ListQuotas": ENTITIES_MAX,
}
"""How many of them there may be; with more the others make more slices, and no longer ones."""
OF_ONE_THING: Final = {
    "EndTransaction", "CreateTopic", "GrowTopic", "Heartbeat", "CreateBackup", "Session",
    "CheckAccess", "CreateUser", "AlterUser", "DeleteUser", "GetUpstream",
    "Check", "GetReset", "FreezeGroup", "ResumeGroup", "WatchGroup", "ReadLog",
}  # fmt: skip
"""Neither their requests nor their answers have very many; actions of a session and the looks of a
watch have turns of their own (test_sessions.py, test_watches.py), and the log is read by others."""


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_linear_and_has_short_turns(name: str, tmp_path: Path) -> None:
    prepare, n = ANSWERS[name]
    method = next(method for method in METHODS.values() if method.name == name)
    runs = iter(range(100))

    def measure(count: int) -> Counted:
        with run_server(tmp_path / str(next(runs))) as server:
            prepare(server, count)
            request = fill(GetMessageClass(method.input_type)(), (), 0)
            for field in request.DESCRIPTOR.fields:
                if field.is_repeated:
                    request.ClearField(field.name)
            return count_call(server, method, request)

    check_law(measure, n, LIMITS.get(name, 4 * n))


def test_every_rpc_is_counted() -> None:
    counted = {asked.method.name for asked in ASKED} | set(ANSWERS) | OF_ONE_THING
    assert {method.name for method in METHODS.values()} <= counted
    services = {method.containing_service.full_name for method in METHODS.values()}
    assert services == set(SERVICES)
