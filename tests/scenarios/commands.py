"""The commands of a scenario, one a line: ``heartbeat g a epoch=2 owned=foo:0,1``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from model.caller import INTERNAL
from model.commands.classic import (
    AssignmentFailure,
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.commands.client_assignment import (
    ComputedAssignment,
    InstallAssignment,
    PrepareAssignment,
)
from model.commands.command import Command
from model.commands.configs import (
    AlterGroupConfigs,
    ConfigChange,
    ConfigOperation,
    DescribeGroupConfigs,
    ListGroupConfigs,
)
from model.commands.consumer import (
    UNCHANGED,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    LeaveGroup,
    LeavingMember,
)
from model.commands.groups import (
    ConsumerGroupDescribe,
    ConvertToClassicGroup,
    DeleteGroup,
    DescribeGroups,
    ListGroups,
    PlanMigration,
)
from model.commands.offsets import (
    DeleteOffsets,
    OffsetCommit,
    OffsetFetch,
    TopicOffsets,
    TopicToFetch,
)
from model.commands.resets import DescribeReset
from model.commands.topics import CreateTopic, DeleteTopic, GrowTopic, SetTopicRacks
from model.commands.transactions import ListTransactions, TxnOffsetCommit, WriteTxnMarkers
from model.errors import ErrorCode
from model.ids import GroupId, InstanceId, MemberId, ProducerId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import TopicPartitions
from tests.scenarios import place_text, quota_text
from tests.scenarios.acl_text import make_create, make_delete, make_list
from tests.scenarios.client_assignor_text import parse_assignors, parse_computed
from tests.scenarios.embedded_text import parse_said
from tests.scenarios.freeze_text import make_freeze, make_resume
from tests.scenarios.removal_text import make_removal
from tests.scenarios.reset_text import make_reset
from tests.scenarios.server import ScenarioServer
from tests.scenarios.user_text import make_alter, make_list_users, make_set_user
from tests.scenarios.why_text import make_why
from tests.support.imported_groups import make_imported
from tests.support.virtual.server import CALLER, REBALANCE_TIMEOUT_MS, Pending, make_topic_id


@dataclass(frozen=True)
class Line:
    """``words`` without ``=``, ``options`` with, of one line."""

    verb: str
    words: tuple[str, ...]
    options: dict[str, str]


def parse_line(text: str) -> Line:
    verb, *rest = shlex.split(text)
    words = tuple(word for word in rest if "=" not in word)
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    return Line(verb, words, options)


def parse_ms(text: str) -> int:
    """``45s``, ``1.5s``, ``20ms``."""
    if text.endswith("ms"):
        return int(text[:-2])
    return int(float(text.removesuffix("s")) * 1_000)


def parse_numbers(text: str) -> tuple[int, ...]:
    """``0-2,5``."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def parse_names(text: str) -> tuple[TopicName, ...]:
    """``foo,bar``; ``-`` for none."""
    return () if text == "-" else tuple(TopicName(name) for name in text.split(","))


def parse_offsets(options: Mapping[str, str]) -> tuple[TopicOffsets, ...]:
    """``foo:0=5``, each with the text of ``metadata=``, ``times=`` so often."""
    metadata = options.get("metadata", "") * int(options.get("times", "1"))
    topics = []
    for place, offset in options.items():
        name, colon, partition = place.partition(":")
        if colon:
            topic_id = make_topic_id(name[3:]) if name.startswith("id/") else None
            topic = None if topic_id is not None else TopicName(name)
            partitions = make_offset_columns([(int(partition), int(offset), -1, metadata)])
            topics.append(TopicOffsets(topic, topic_id, partitions))
    return tuple(topics)


class Commands:
    """Makes commands of lines and carries out what is none."""

    def __init__(self, server: ScenarioServer) -> None:
        self.server = server
        self._incarnations: dict[str, int] = {}

    def submit(self, line: Line) -> Pending | None:
        """Submit a command; ``None`` for a line that asks nothing of the coordinator."""
        acts: dict[str, Callable[[Line], None]] = {
            "advance": lambda line: self.server.advance(parse_ms(line.words[0])),
            "crash": lambda line: self.server.crash(int(line.options.get("survivors", "0"))),
            "start": lambda line: self.server.start(place_text.parse_topics(line)),
            "import": self._import,
            "fsync": self._fsync,
            "assignor": self._assignor,
            "hide": lambda line: self.server.hide(*line.words),
            "show": lambda line: self.server.show(*line.words),
            "offer": lambda line: self.server.offer(*line.words),
            "withdraw": lambda line: self.server.withdraw(*line.words),
        }
        if line.verb in acts:
            acts[line.verb](line)
            return None
        return self.server.submit(self.make(line))

    def _import(self, line: Line) -> None:
        kind, group = line.words
        self.server.import_records(GroupId(group), make_imported(kind, group, line.options))

    def _fsync(self, line: Line) -> None:
        takes_ms = parse_ms(line.options["takes"])
        self.server.scheduler.blocking_ms = lambda: takes_ms

    def _assignor(self, line: Line) -> None:
        takes_ms = parse_ms(line.options["takes"])
        self.server.scheduler.computing_ms = lambda: takes_ms

    def make(self, line: Line) -> Command:
        """The command of a line."""
        makers: dict[str, Callable[[Line], Command]] = {
            "topic": self._topic,
            "grow": self._grow,
            "racks": lambda line: SetTopicRacks(
                INTERNAL,
                TopicName(line.words[0]),
                tuple(() if text == "-" else tuple(text.split(",")) for text in line.words[1:]),
            ),
            "delete": lambda line: DeleteTopic(INTERNAL, TopicName(line.words[0])),
            "join": self._join,
            "heartbeat": self._heartbeat,
            "leave": self._leave,
            "prepare": self._prepare,
            "install": self._install,
            "remove": self._remove,
            "remove-members": self._remove_members,
            "join-group": self._join_group,
            "sync": self._sync,
            "beat": self._beat,
            "commit": self._commit,
            "txn-commit": self._txn_commit,
            "freeze": lambda line: make_freeze(line.words),
            "resume": lambda line: make_resume(line.words),
            "reset": lambda line: make_reset(line.words, line.options, parse_offsets(line.options)),
            "reset-state": lambda line: DescribeReset(CALLER, GroupId(line.words[0])),
            "marker": self._marker,
            "fetch": self._fetch,
            "delete-group": lambda line: DeleteGroup(CALLER, GroupId(line.words[0])),
            "delete-offsets": self._delete_offsets,
            "configure": self._configure,
            "configs": lambda line: DescribeGroupConfigs(CALLER, GroupId(line.words[0])),
            "plan": lambda line: PlanMigration(CALLER, GroupId(line.words[0])),
            "convert": lambda line: ConvertToClassicGroup(
                CALLER, GroupId(line.words[0]), "validate-only" in line.words
            ),
            "why": lambda line: make_why(line.words[0]),
            "list-configs": lambda line: ListGroupConfigs(CALLER),
            "transactions": lambda line: ListTransactions(CALLER),
            "allow": make_create,
            "deny": make_create,
            "acls": make_list,
            "delete-acls": make_delete,
            "place": place_text.make_place,
            "adopt": place_text.make_adopt,
            "return": place_text.make_return,
            "give-up": place_text.make_give_up,
            "places": place_text.make_list_places,
            "check": lambda line: place_text.make_check(self._commit(line)),
            "txn-check": lambda line: place_text.make_check(self._txn_commit(line)),
            "topics": place_text.make_replace,
            "quota": quota_text.make_alter,
            "quotas": quota_text.make_list,
            "scram": make_alter,
            "set-user": make_set_user,
            "users": make_list_users,
            "describe": lambda line: ConsumerGroupDescribe(
                CALLER, tuple(GroupId(word) for word in line.words)
            ),
            "describe-classic": lambda line: DescribeGroups(
                CALLER, tuple(GroupId(word) for word in line.words)
            ),
            "list": lambda line: ListGroups(
                CALLER,
                tuple(filter(None, line.options.get("states", "").split(","))),
                tuple(filter(None, line.options.get("types", "").split(","))),
            ),
        }
        return makers[line.verb](line)

    # ---------------------------------------------------------------------------------- topics

    def _topic(self, line: Line) -> Command:
        ((name, partitions),) = line.options.items()
        incarnation = self._incarnations[name] = self._incarnations.get(name, -1) + 1
        topic_id = make_topic_id(name, incarnation)
        return CreateTopic(INTERNAL, TopicName(name), topic_id, int(partitions))

    def _grow(self, line: Line) -> Command:
        ((name, partitions),) = line.options.items()
        return GrowTopic(INTERNAL, TopicName(name), int(partitions))

    def _topic_id(self, name: str) -> TopicId:
        """Of the topic of that name; ``foo'`` is the second that had the name."""
        plain = name.rstrip("'")
        if plain != name:
            return make_topic_id(plain, len(name) - len(plain))
        topic = self.server.runtime.image.by_name.get(TopicName(plain))
        return make_topic_id(plain) if topic is None else topic.topic_id

    def _owned(self, text: str) -> tuple[TopicPartitions, ...]:
        if text == "-":
            return ()
        parts = [part.partition(":") for part in text.split(";")]
        return tuple(
            TopicPartitions(self._topic_id(name), parse_numbers(numbers))
            for name, _, numbers in parts
        )

    # ----------------------------------------------------------------------------------- group

    def _join(self, line: Line) -> Command:
        """Everything that a join must say, where the line does not say it otherwise."""
        options = {"epoch": "0", "owned": "-", "timeout": f"{REBALANCE_TIMEOUT_MS}ms"}
        return self._heartbeat(replace(line, options={**options, **line.options}))

    def _heartbeat(self, line: Line) -> ConsumerGroupHeartbeat:
        group, member = line.words[:2]
        said = line.options
        timeout, sub, regex = said.get("timeout"), said.get("sub"), said.get("regex")
        instance = said.get("instance")
        return ConsumerGroupHeartbeat(
            replace(
                CALLER,
                client_id=said.get("client", CALLER.client_id),
                principal=said.get("user", CALLER.principal),
            ),
            GroupId(group),
            MemberId(member),
            int(said["epoch"]),
            rebalance_timeout_ms=UNCHANGED if timeout is None else parse_ms(timeout),
            subscribed_topic_names=UNCHANGED if sub is None else parse_names(sub),
            owned=self._owned(said["owned"]) if "owned" in said else None,
            rack_id=said.get("rack", UNCHANGED),
            server_assignor=said.get("assignor", UNCHANGED),
            instance_id=None if instance is None else InstanceId(instance),
            subscribed_topic_regex=UNCHANGED if regex is None else regex,
            client_assignors=parse_assignors(said["local"]) if "local" in said else UNCHANGED,
        )

    def _prepare(self, line: Line) -> Command:
        """``prepare g a epoch=2``."""
        group, member = line.words
        epoch = int(line.options["epoch"])
        return PrepareAssignment(CALLER, GroupId(group), MemberId(member), epoch)

    def _install(self, line: Line) -> Command:
        """``install g a epoch=2 for=3 to/a=foo:0-1@0/bytes``; or ``failed=why``."""
        (group, member), said = line.words, line.options
        computed = []
        for name, text in said.items():
            if name.startswith("to/"):
                partitions, version, metadata = parse_computed(text)
                member_id = MemberId(name.removeprefix("to/"))
                owned = self._owned(partitions)
                computed.append(ComputedAssignment(member_id, owned, version, metadata))
        return InstallAssignment(
            CALLER,
            GroupId(group),
            MemberId(member),
            int(said["epoch"]),
            int(said["for"]),
            tuple(computed),
            said.get("failed"),
        )

    def _leave(self, line: Line) -> Command:
        """For good; with ``epoch=-2`` and its instance a static member means to come back."""
        group, member = line.words
        epoch, instance = line.options.get("epoch", "-1"), line.options.get("instance")
        return ConsumerGroupLeave(
            CALLER,
            GroupId(group),
            MemberId(member),
            int(epoch),
            None if instance is None else InstanceId(instance),
        )

    def _remove(self, line: Line) -> Command:
        """``remove g a /i b/j``: a member, an instance, a member that must be an instance.

        ``?`` is an empty member id.
        """
        group, *members = line.words
        return LeaveGroup(CALLER, GroupId(group), self._list_leaving(members, line))

    def _remove_members(self, line: Line) -> Command:
        members = [word for word in line.words[1:] if word != "validate-only"]
        return make_removal(line.words, self._list_leaving(members, line), line.options)

    def _list_leaving(self, members: Sequence[str], line: Line) -> tuple[LeavingMember, ...]:
        leaving = []
        for word in members:
            member, slash, instance = word.partition("/")
            leaving.append(
                LeavingMember(
                    MemberId(member.strip("?")) if member or not slash else None,
                    InstanceId(instance) if slash else None,
                    line.options.get("reason"),
                )
            )
        return tuple(leaving)

    # -------------------------------------------------------------------------- classic groups

    def _join_group(self, line: Line) -> Command:
        """``join-group g a says=range:x,sticky:y``; with ``new=a`` a client without an id yet.

        ``version=3`` is a client that need not come again with its id, 8 one that assigns always.
        """
        (group, *member), said = line.words, line.options
        instance, version = said.get("instance"), int(said.get("version", "9"))
        protocols = []
        for text in filter(None, said.get("says", "range:").split(",")):
            name, _, metadata = text.partition(":")
            protocols.append(JoinProtocol(name, parse_said(metadata)))
        return JoinGroup(
            CALLER,
            GroupId(group),
            MemberId(member[0]) if member else None,
            MemberId(said.get("new", "new")),
            parse_ms(said.get("session", "10s")),
            parse_ms(said.get("rebalance", "60s")),
            said.get("type", "consumer"),
            tuple(protocols),
            None if instance is None else InstanceId(instance),
            requires_member_id=version >= 4,
            may_skip_assignment=version >= 9,
            reason=said.get("reason"),
        )

    def _sync(self, line: Line) -> Command:
        """``sync g a generation=1 to/a=x to/b=y``; the leader may say ``failed=why`` instead."""
        (group, member), said = line.words, line.options
        instance, failed = said.get("instance"), said.get("failed")
        return SyncGroup(
            CALLER,
            GroupId(group),
            MemberId(member),
            int(said["generation"]),
            tuple(
                MemberAssignment(MemberId(name.removeprefix("to/")), parse_said(text))
                for name, text in said.items()
                if name.startswith("to/")
            ),
            None if instance is None else InstanceId(instance),
            said.get("type"),
            said.get("protocol"),
            None if failed is None else AssignmentFailure(ErrorCode.UNKNOWN_SERVER_ERROR, failed),
        )

    def _beat(self, line: Line) -> Command:
        """``beat g a generation=1``."""
        (group, member), instance = line.words, line.options.get("instance")
        return ClassicHeartbeat(
            CALLER,
            GroupId(group),
            MemberId(member),
            int(line.options["generation"]),
            None if instance is None else InstanceId(instance),
        )

    # --------------------------------------------------------------------------------- offsets

    def _commit(self, line: Line) -> OffsetCommit:
        """``commit g a epoch=2 foo:0=5``; without an epoch it is not by a member."""
        options = dict(line.options)
        epoch = options.pop("epoch", None)
        retention = options.pop("retention", None)
        instance = options.pop("instance", None)
        topics = parse_offsets(options)
        group, *rest = line.words
        is_old = "before-v9" in rest
        member = [word for word in rest if word != "before-v9"]
        return OffsetCommit(
            CALLER,
            GroupId(group),
            MemberId(member[0] if member else ""),
            None if epoch is None else int(epoch),
            topics,
            None if instance is None else InstanceId(instance),
            by_consumer_protocol=not is_old,
            retention_time_ms=None if retention is None else parse_ms(retention),
        )

    def _txn_commit(self, line: Line) -> TxnOffsetCommit:
        """``txn-commit g 7@0 a epoch=2 foo:0=5``: of producer 7 at its epoch 0."""
        options = dict(line.options)
        epoch, instance = options.pop("epoch", None), options.pop("instance", None)
        group, producer, *member = line.words
        producer_id, _, producer_epoch = producer.partition("@")
        return TxnOffsetCommit(
            CALLER,
            GroupId(group),
            ProducerId(int(producer_id)),
            int(producer_epoch),
            parse_offsets(options),
            MemberId(member[0] if member else ""),
            None if epoch is None else int(epoch),
            None if instance is None else InstanceId(instance),
        )

    def _marker(self, line: Line) -> Command:
        """``marker g 7@0 commit by=1 version=2``: in the log partition that has the group."""
        group, producer, result = line.words
        producer_id, _, producer_epoch = producer.partition("@")
        return WriteTxnMarkers(
            CALLER,
            self.server.runtime.partition_of(GroupId(group)),
            ProducerId(int(producer_id)),
            int(producer_epoch),
            coordinator_epoch=int(line.options.get("by", "0")),
            committed={"commit": True, "abort": False}[result],
            transaction_version=int(line.options.get("version", "0")),
        )

    def _delete_offsets(self, line: Line) -> Command:
        """``delete-offsets g foo:0-1``."""
        group, *places = line.words
        topics = []
        for place in places:
            name, _, partitions = place.partition(":")
            topics.append((TopicName(name), parse_numbers(partitions)))
        return DeleteOffsets(CALLER, GroupId(group), tuple(topics))

    def _configure(self, line: Line) -> Command:
        """``configure g consumer.max.size=2 !consumer.assignors``; ``+=`` and ``-=`` for lists."""
        group, *deleted = line.words
        validate_only = "validate-only" in deleted
        changes = [
            ConfigChange(name[1:], ConfigOperation.DELETE)
            for name in deleted
            if name != "validate-only"
        ]
        operations = {"+": ConfigOperation.APPEND, "-": ConfigOperation.SUBTRACT}
        for name, text in line.options.items():
            operation = operations.get(name[-1:], ConfigOperation.SET)
            changes.append(ConfigChange(name.rstrip("+-"), operation, text))
        return AlterGroupConfigs(CALLER, GroupId(group), tuple(changes), validate_only)

    def _fetch(self, line: Line) -> Command:
        """``fetch g foo:0-1``; ``stable`` for stable offsets only."""
        group, *rest = line.words
        places = [word for word in rest if word != "stable"]
        topics = []
        for place in places:
            name, _, partitions = place.partition(":")
            topic_id = self._topic_id(name[3:]) if name.startswith("id/") else None
            topic = None if topic_id is not None else TopicName(name)
            topics.append(TopicToFetch(topic, topic_id, parse_numbers(partitions)))
        member, epoch = line.options.get("member"), line.options.get("epoch")
        return OffsetFetch(
            CALLER,
            GroupId(group),
            tuple(topics) if places else None,
            None if member is None else MemberId(member),
            None if epoch is None else int(epoch),
            require_stable="stable" in rest,
        )
