"""Answers, records and deadlines as text; partitions as ``foo:0-2,5``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from coordinator.runtime.api import Answer
from model.commands.client_assignment import PrepareAssignmentResponse
from model.errors import ErrorCode, GroupError
from model.ids import ZERO_TOPIC_ID, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberState,
    OffsetCommitKey,
    Record,
    TopicPartitions,
)
from model.log.side_records import (
    AclSideKey,
    FakeSaltSecretKey,
    GroupConfigsSideKey,
    GroupConfigsSideValue,
    GroupFreezeKey,
    GroupPlaceKey,
    GroupResetKey,
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerStateKey,
    ProducerStateValue,
    QuotaSideKey,
    QuotaSideValue,
    ScramCredentialKey,
    SideRecord,
    TopicDeletionKey,
    TopicSideKey,
    TopicSideValue,
)
from model.log.transaction_records import TransactionalOffsets, TransactionMarker, TransactionRecord
from model.responses.access import DeleteAclsResponse, DescribeAclsResponse
from model.responses.classic import (
    ClassicHeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from model.responses.configs import GroupConfigsResponse, ListGroupConfigsResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse, ConsumerGroupLeaveResponse
from model.responses.explain import ExplainGroupResponse
from model.responses.freezes import GroupFrozen, GroupResumed
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedClassicGroup,
    DescribedConsumerGroup,
    DescribedMember,
    DescribeGroupsResponse,
    ListGroupsResponse,
    MembersRemoved,
    NamedTopicPartitions,
)
from model.responses.migration import MigrationPlan
from model.responses.offsets import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from model.responses.places import PlacesResponse
from model.responses.quotas import AlterQuotasResponse, DescribeQuotasResponse
from model.responses.resets import OffsetsReset, ResetProgress
from model.responses.response import Done
from model.responses.topics import TopicResponse
from model.responses.transactions import ListedTransaction, ListTransactionsResponse
from model.responses.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)
from tests.scenarios.acl_text import format_acl
from tests.scenarios.client_assignor_text import (
    format_client_assignment,
    format_local_side,
    format_prepared,
)
from tests.scenarios.embedded_text import format_given, format_said
from tests.scenarios.freeze_text import format_freeze, format_freeze_answer
from tests.scenarios.place_text import format_place, format_places
from tests.scenarios.quota_text import format_quota_answer, format_quotas
from tests.scenarios.removal_text import format_removal
from tests.scenarios.reset_text import format_reset, format_reset_answer
from tests.scenarios.user_text import format_credential, format_users
from tests.scenarios.why_text import format_why
from tests.support.virtual.scheduler import START_WALL_MS

NOTHING = "-"
LONG_METADATA = 20


def format_ms(ms: int) -> str:
    """``45s``, ``1.5s``, ``20ms``."""
    if abs(ms) < 1_000:
        return f"{ms}ms"
    return f"{ms / 1_000:g}s"


def format_ranges(numbers: Iterable[int]) -> str:
    """``0-2,5``."""
    found = []
    for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        found.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ",".join(found)


def topic_name(topic_id: TopicId) -> str:
    """From the ids that scenarios make; a topic that was created again shows how often."""
    text = topic_id.decode()
    name, incarnation = text[:12].rstrip("_"), int(text[12:])
    return name + "'" * incarnation


def format_partitions(topics: Iterable[TopicPartitions | NamedTopicPartitions]) -> str:
    """``foo:0-2 bar:1``, or ``-``."""
    parts = [f"{topic_name(t.topic_id)}:{format_ranges(t.partitions)}" for t in topics]
    return " ".join(sorted(parts)) or NOTHING


def format_assigned(topics: Iterable[AssignedTopicPartitions]) -> str:
    """With assignment epochs: ``foo:0-2@4``."""
    parts = []
    for topic in topics:
        epochs = topic.assignment_epochs
        assert epochs is not None
        pairs = sorted(zip(epochs, topic.partitions, strict=True))
        for epoch, run in groupby(pairs, key=lambda pair: pair[0]):
            partitions = format_ranges(partition for _, partition in run)
            parts.append(f"{topic_name(topic.topic_id)}:{partitions}@{epoch}")
    return " ".join(sorted(parts)) or NOTHING


def format_subscription(names: Iterable[str], regex: str | None) -> str:
    """``foo,bar and /x.*/``, or ``-``."""
    parts = [",".join(names), f"/{regex}/" if regex else ""]
    return " and ".join(filter(None, parts)) or NOTHING


# ------------------------------------------------------------------------------------ answers


def format_answer(answer: Answer) -> list[str]:
    """The lines of an answer."""
    match answer:
        case GroupError():
            return [f"{answer.code.name}: {answer.message}"]
        case ConsumerGroupHeartbeatResponse():
            return [_format_heartbeat(answer)]
        case ConsumerGroupLeaveResponse():
            return [f"left with epoch {answer.member_epoch}"]
        case LeaveGroupResponse(errors):
            return ["removed: " + ", ".join(error.name for error in errors)]
        case OffsetCommitResponse():
            return _format_commit(answer)
        case OffsetFetchResponse():
            return _format_fetch(answer)
        case TopicResponse(topic):
            return [f"{topic_name(topic.topic_id)} has {topic.partitions} partitions"]
        case ListGroupsResponse(groups):
            return [
                f"{g.group_id}: {g.state}, {g.group_type}, protocol type {g.protocol_type!r}, "
                f"{g.members} members"
                for g in sorted(groups, key=lambda listed: listed.group_id)
            ] or ["no groups"]
        case ConsumerGroupDescribeResponse(groups):
            return [line for group in groups for line in _format_group(group)]
        case DescribeGroupsResponse(classic):
            return [line for group in classic for line in _format_classic(group)]
        case Done():
            return ["done"]
        case _:
            return _format_others(answer)


def _format_plan(plan: MigrationPlan) -> list[str]:
    """A line of the group, one of each member, and a line of each reason below."""
    strategy = f", {plan.protocol_name}" if plan.protocol_name else ""
    lines = [f"{plan.group_id}: {plan.group_type}, {plan.state}{strategy}: {plan.verdict}"]
    lines += (f"  {reason.detail}" for reason in plan.reasons)
    for member in plan.members:
        lines.append(f"  {member.member_id}: {member.verdict}")
        lines += (f"    {reason.detail}" for reason in member.reasons)
    return lines


def _format_membership(
    answer: JoinGroupResponse | SyncGroupResponse | ClassicHeartbeatResponse,
) -> str:
    match answer:
        case ClassicHeartbeatResponse():
            return "alive"
        case SyncGroupResponse():
            return f"assigned {format_given(answer.assignment)} by {answer.protocol_name}"
    text = (
        f"{answer.member_id} in generation {answer.generation} of {answer.protocol_type}, "
        f"{answer.protocol_name}, led by {answer.leader}"
    )
    if answer.members:
        told = (
            f"{member.member_id}{_instance(member.instance_id)} {format_said(member.metadata)}"
            for member in answer.members
        )
        text += f": {', '.join(told)}"
    return text + ("; assigns nothing" if answer.skip_assignment else "")


def _instance(instance_id: str | None) -> str:
    return f" (instance {instance_id})" if instance_id is not None else ""


def _format_others(answer: Answer) -> list[str]:
    match answer:
        case JoinGroupResponse() | SyncGroupResponse() | ClassicHeartbeatResponse():
            return [_format_membership(answer)]
        case OffsetDeleteResponse(topics):
            return [
                f"{topic.name}:{row.partition} {_error(row.error)}"
                for topic in topics
                for row in topic.partitions
            ] or ["no offsets"]
        case GroupConfigsResponse(group_id, configs):
            return [
                f"{group_id}: {config.name} is {config.value}"
                + (f", set to {config.own}" if config.own != config.value else "")
                for config in configs
                if config.own is not None
            ] or [f"{group_id}: nothing of its own"]
        case MigrationPlan() | MembersRemoved():
            return _format_administration(answer)
        case (
            PlacesResponse()
            | ListGroupConfigsResponse()
            | OffsetsReset()
            | ResetProgress()
            | GroupFrozen()
            | GroupResumed()
            | ExplainGroupResponse()
        ):
            return _format_listed(answer)
        case DescribeAclsResponse(acls):
            return [format_acl(acl) for acl in acls] or ["no ACLs"]
        case AlterQuotasResponse() | DescribeQuotasResponse():
            return format_quota_answer(answer)
        case AlterUserScramCredentialsResponse() | DescribeUserScramCredentialsResponse():
            return format_users(answer)
        case DeleteAclsResponse(acls):
            return [f"deleted: {format_acl(acl)}" for acl in acls] or ["no ACLs"]
        case ListTransactionsResponse(transactions):
            return [_format_transaction(listed) for listed in transactions] or ["none are open"]
        case PrepareAssignmentResponse(members=members):
            has = [format_partitions(member.partitions) for member in members]
            return list(format_prepared(answer, has))
        case _:
            raise AssertionError(f"no words for {answer}")


def _format_administration(answer: MigrationPlan | MembersRemoved) -> list[str]:
    if isinstance(answer, MigrationPlan):
        return _format_plan(answer)
    return format_removal(answer, format_partitions)


def _format_listed(
    answer: PlacesResponse
    | ListGroupConfigsResponse
    | OffsetsReset
    | ResetProgress
    | GroupFrozen
    | GroupResumed
    | ExplainGroupResponse,
) -> list[str]:
    if isinstance(answer, ExplainGroupResponse):
        return format_why(answer, format_ms)
    if isinstance(answer, GroupFrozen | GroupResumed):
        return format_freeze_answer(answer)
    if isinstance(answer, OffsetsReset | ResetProgress):
        return format_reset_answer(answer)
    if isinstance(answer, PlacesResponse):
        return format_places(answer)
    return [", ".join(answer.group_ids) or "no groups"]


def _format_transaction(listed: ListedTransaction) -> str:
    offsets = ", ".join(
        f"{waiting.group_id} {waiting.topic_name}:{waiting.partition} = {waiting.offset}"
        for waiting in listed.offsets
    )
    since_ms = listed.since_ms - START_WALL_MS
    until_ms = listed.times_out_at_ms - START_WALL_MS
    times = f"since {format_ms(since_ms)}, times out at {format_ms(until_ms)}"
    return f"{listed.producer_id}@{listed.producer_epoch} {times}: {offsets}"


def _format_heartbeat(answer: ConsumerGroupHeartbeatResponse) -> str:
    given = "unchanged" if answer.assignment is None else format_partitions(answer.assignment)
    flags = [
        word
        for word, is_so in (
            ("news", answer.has_changes),
            ("may be parked", answer.parkable),
            ("settled", answer.settled),
        )
        if is_so
    ]
    if answer.client_assignment is not None:
        flags.append(
            format_client_assignment(
                answer.client_assignment, format_partitions(answer.client_assignment.partitions)
            )
        )
    return f"epoch {answer.member_epoch}, assignment {given}; {', '.join(flags) or 'nothing new'}"


def _format_metadata(metadata: str) -> str:
    if len(metadata) > LONG_METADATA:
        return f" with {len(metadata)} characters"
    return f" with {metadata!r}" if metadata else ""


def _error(code: ErrorCode) -> str:
    return "ok" if code is ErrorCode.NONE else code.name


def _format_commit(answer: OffsetCommitResponse) -> list[str]:
    return [
        f"{topic.name}:{result.partition} {_error(result.error)}"
        for topic in answer.topics
        for result in topic.partitions
    ]


def _format_fetch(answer: OffsetFetchResponse) -> list[str]:
    return [
        f"{topic.name}:{fetched.partition} = {fetched.offset}"
        + _format_metadata(fetched.metadata)
        + ("" if fetched.error is ErrorCode.NONE else f" {fetched.error.name}")
        for topic in answer.topics
        for fetched in topic.partitions
    ] or ["no offsets"]


def _format_group(group: DescribedConsumerGroup) -> list[str]:
    if group.error is not ErrorCode.NONE:
        return [f"{group.group_id}: {group.error.name}: {group.error_message}"]
    head = (
        f"{group.group_id}: {group.state}, group epoch {group.group_epoch}, assignment epoch "
        f"{group.assignment_epoch}, {group.assignor_name}"
        f"{', frozen' if group.freeze is not None else ''}"
    )
    return [head, *(f"  {_format_member(member)}" for member in group.members)]


def _format_member(member: DescribedMember) -> str:
    names = format_subscription(member.subscribed_topic_names, member.subscribed_topic_regex)
    instance = f" (instance {member.instance_id})" if member.instance_id is not None else ""
    text = (
        f"{member.member_id}{instance}: {member.state} at {member.member_epoch}, "
        f"subscribes to {names}, has {format_partitions(member.assignment)}"
    )
    if member.pending_revocation:
        text += f", to revoke {format_partitions(member.pending_revocation)}"
    return f"{text}, target {format_partitions(member.target_assignment)}"


def _format_classic(group: DescribedClassicGroup) -> list[str]:
    if group.error is not ErrorCode.NONE:
        return [f"{group.group_id}: {group.state}, {group.error.name}: {group.error_message}"]
    head = f"{group.group_id}: {group.state}, protocol type {group.protocol_type!r}"
    if group.protocol:
        head += f", protocol {group.protocol!r}"
    if group.members:
        head += f", generation {group.generation}"
    return [
        head,
        *(
            f"  {member.member_id} as {member.client_id} from {member.client_host}, said "
            f"{format_said(member.metadata)}, has {format_given(member.assignment)}"
            for member in group.members
        ),
    ]


# ------------------------------------------------------------------------------------ records


def format_record(record: Record) -> str:
    """One line: what a record says, or that it deletes."""
    key, value = record
    name = _format_key(key)
    return f"delete {name}" if value is None else f"{name}: {_format_value(value)}"


def _format_key(key: Any) -> str:
    match key:
        case OffsetCommitKey():
            return f"offset {key.group or repr('')} {key.topic}:{key.partition}"
        case GroupMetadataKey():
            return f"classic group {key.group}"
        case ConsumerGroupMetadataKey():
            return f"group {key.group_id}"
        case ConsumerGroupPartitionMetadataKey():
            return f"partition metadata {key.group_id}"
        case ConsumerGroupMemberMetadataKey():
            return f"member {key.group_id}/{key.member_id}"
        case ConsumerGroupTargetAssignmentMetadataKey():
            return f"target {key.group_id}"
        case ConsumerGroupTargetAssignmentMemberKey():
            return f"target {key.group_id}/{key.member_id}"
        case ConsumerGroupCurrentMemberAssignmentKey():
            return f"current {key.group_id}/{key.member_id}"
        case ConsumerGroupRegularExpressionKey():
            return f"pattern {key.group_id} {key.regular_expression}"
        case _ if hasattr(key, "group_id"):
            # Of groups that are kept and not served.
            return f"{type(key).__name__} of {key.group_id}"
        case _:
            raise AssertionError(f"no words for {key}")


def _format_classic_value(value: GroupMetadataValue) -> str:
    at_ms = value.current_state_timestamp - START_WALL_MS
    text = (
        f"generation {value.generation} of {value.protocol_type!r}, {value.protocol or NOTHING}, "
        f"led by {value.leader or NOTHING}, since {format_ms(at_ms)}"
    )
    for member in value.members:
        text += (
            f"; {member.member_id}{_instance(member.group_instance_id)} "
            f"{format_said(member.subscription)} has {format_given(member.assignment)}"
        )
    return text


def _format_value(value: Any) -> str:
    match value:
        case ConsumerGroupMemberMetadataValue():
            names = format_subscription(value.subscribed_topic_names, value.subscribed_topic_regex)
            text = f"subscribes to {names}, rebalance {format_ms(value.rebalance_timeout_ms)}"
            extra = [
                value.server_assignor,
                value.rack_id and f"rack {value.rack_id}",
                value.instance_id and f"instance {value.instance_id}",
            ]
            return ", ".join([text, *filter(None, extra)])
        case ConsumerGroupRegularExpressionValue():
            at_ms = value.timestamp - START_WALL_MS
            names = ",".join(value.topics) or NOTHING
            return f"{names} of version {value.version} at {format_ms(at_ms)}"
        case GroupMetadataValue():
            return _format_classic_value(value)
        case _ if hasattr(value, "metadata_hash"):
            return f"epoch {value.epoch}, hash {value.metadata_hash & 0xFFFF:04x}"
        case _ if hasattr(value, "assignment_timestamp"):
            at_ms = value.assignment_timestamp - START_WALL_MS
            return f"epoch {value.assignment_epoch} at {format_ms(at_ms)}"
        case _ if hasattr(value, "topic_partitions"):
            return format_partitions(value.topic_partitions)
        case _ if hasattr(value, "partitions_pending_revocation"):
            return _format_current(value)
        case _ if hasattr(value, "commit_timestamp"):
            at_ms = value.commit_timestamp - START_WALL_MS
            metadata = _format_metadata(value.metadata)
            when = f"at {format_ms(at_ms)}"
            if value.expire_timestamp >= 0:
                # A record with an expiry of its own is of a version that has no topic id.
                until_ms = value.expire_timestamp - START_WALL_MS
                return f"{value.offset}{metadata} {when}, expires at {format_ms(until_ms)}"
            if value.topic_id == ZERO_TOPIC_ID:
                return f"{value.offset}{metadata} {when}"
            return f"{value.offset}{metadata} of {topic_name(value.topic_id)} {when}"
        case _:
            raise AssertionError(f"no words for {value}")


def _format_current(value: Any) -> str:
    text = (
        f"{MemberState(value.state).name} at {value.member_epoch} after "
        f"{value.previous_member_epoch}, has {format_assigned(value.assigned_partitions)}"
    )
    if value.partitions_pending_revocation:
        text += f", to revoke {format_assigned(value.partitions_pending_revocation)}"
    return text


def format_transactions(records: Iterable[TransactionRecord]) -> Iterator[str]:
    """One line for each offset that waits, and for each marker."""
    for record in records:
        name = f"transaction of {record.producer_id}@{record.producer_epoch}"
        match record:
            case TransactionalOffsets():
                for waiting in record.records:
                    yield f"{name}: {format_record(waiting)}"
            case TransactionMarker(committed=committed):
                yield f"{name}: {'commit' if committed else 'abort'}"


def format_side(record: SideRecord) -> str:
    """One line for a side record."""
    match record.key:
        case TopicSideKey(name):
            if record.value is None:
                return f"delete topic {name}"
            assert isinstance(record.value, TopicSideValue)
            racks = " ".join(",".join(names) or NOTHING for names in record.value.racks)
            where = f", in racks {racks}" if racks else ""
            return f"topic {name}: {record.value.partitions} partitions{where}"
        case TopicDeletionKey(topic_id):
            verb = "forget deletion of" if record.value is None else "deletion of"
            return f"{verb} topic {topic_name(topic_id)}"
        case GroupConfigsSideKey(group_id):
            if record.value is None:
                return f"delete settings of {group_id}"
            assert isinstance(record.value, GroupConfigsSideValue)
            said = [f"{name}={value}" for name, value in record.value.configs]
            longest_ms = record.value.longest_session_timeout_ms
            if longest_ms:
                said.append(f"sessions of {longest_ms} ms were promised")
            return f"settings of {group_id}: " + (", ".join(said) or NOTHING)
        case ProducerGroupKey() | ProducerStateKey():
            return _format_producer_side(record)
        case QuotaSideKey(entity):
            value = record.value
            quotas = dict(value.quotas) if isinstance(value, QuotaSideValue) else {}
            return format_quotas(entity, quotas)
        case GroupPlaceKey() | GroupResetKey() | GroupFreezeKey():
            return _format_group_side(record)
        case ScramCredentialKey() | FakeSaltSecretKey():
            return format_credential(record)
        case AclSideKey(acl):
            return ("no longer " if record.value is None else "") + format_acl(acl)
        case _:
            return format_local_side(record)


def _format_group_side(record: SideRecord) -> str:
    match record.key:
        case GroupPlaceKey():
            return format_place(record)
        case GroupResetKey():
            return format_reset(record)
        case _:
            return format_freeze(record)


def _format_producer_side(record: SideRecord) -> str:
    match record:
        case (ProducerGroupKey(_, producer_id, group_id), None):
            return f"forget producer {producer_id} in {group_id}"
        case (ProducerGroupKey(_, producer_id, group_id), ProducerGroupValue() as value):
            epoch, timed_out_epoch = value.producer_epoch, value.timed_out_epoch
            timed_out = "" if timed_out_epoch < 0 else f", timed out at {timed_out_epoch}"
            return f"producer {producer_id} in {group_id}: epoch {epoch}{timed_out}"
        case (ProducerStateKey(_, producer_id), None):
            return f"forget producer {producer_id}"
        case (ProducerStateKey(_, producer_id), ProducerStateValue() as state):
            return _format_producer(producer_id, state)
        case _:
            raise AssertionError(f"not of a producer: {record}")


def _format_producer(producer_id: int, state: ProducerStateValue) -> str:
    epochs = f"epoch {state.producer_epoch}, coordinator {state.coordinator_epoch}"
    since_ms = state.transaction_since_ms
    return f"producer {producer_id}: {epochs}" + (
        "" if since_ms < 0 else f", open since {format_ms(since_ms - START_WALL_MS)}"
    )


def format_deadlines(changed: Mapping[str, int | None]) -> list[str]:
    """Deadlines by the time at which they come, from the start of the scenario."""
    return [
        f"{name} timeout {'ends' if at_ms is None else 'at ' + format_ms(at_ms)}"
        for name, at_ms in changed.items()
    ]
