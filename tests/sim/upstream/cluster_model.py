"""The coordinator of a cluster with classic groups only, on virtual time.

It follows Kafka's ``ClassicGroup`` in what a sentinel and stock members can see: protocols that all
members must share, static members, the initial delay, join phases, LeaveGroup, eviction, and
commits with their checks. Replies are called at once or when a wait ends; a reply may be lost.
"""

from __future__ import annotations

from dataclasses import replace

from model.errors import ErrorCode
from muster.assignors.embedded import decode_subscription
from tests.sim.upstream.cluster_values import (
    COMPLETING,
    EMPTY,
    NEVER_MS,
    PREPARING,
    STABLE,
    Joined,
    ModelGroup,
    ModelMember,
    OnJoined,
    OnSynced,
    Synced,
)


class ClusterModel:
    """All groups. ``now_ms`` only moves by ``advance``."""

    def __init__(self, initial_delay_ms: int = 3_000, session_max_ms: int = 1_800_000) -> None:
        self.now_ms = 0
        self.initial_delay_ms = initial_delay_ms
        self.session_max_ms = session_max_ms
        self.answers_removed_syncs = False
        self.groups: dict[str, ModelGroup] = {}
        self._names = 0
        self._handed_out: set[str] = set()

    def group(self, group_id: str) -> ModelGroup:
        """The group, made if it is not there."""
        return self.groups.setdefault(group_id, ModelGroup(group_id))

    # ------------------------------------------------------------------------------------- requests

    def join(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        protocols: dict[str, bytes],
        on_joined: OnJoined,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        """JoinGroup in its newest version."""
        group = self.group(group_id)
        for metadata in protocols.values():
            if metadata:
                decode_subscription(metadata)  # anything else wedges a real group
        if not 6_000 <= session_timeout_ms <= self.session_max_ms:
            return on_joined(Joined(ErrorCode.INVALID_SESSION_TIMEOUT))
        static = group.find_instance(instance_id)
        code = self._check_join(group, member_id, instance_id, static, protocols)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            return on_joined(Joined(code, self._name(client_id)))
        if code is not ErrorCode.NONE:
            return on_joined(Joined(code))
        if static is not None and member_id == "":
            return self._replace_static(
                group, static, protocols, on_joined, session_timeout_ms, rebalance_timeout_ms
            )
        member = group.members.get(member_id)
        if member is None:
            member = ModelMember(
                member_id or self._name(instance_id or client_id),
                instance_id,
                client_id,
                session_timeout_ms,
                rebalance_timeout_ms,
                dict(protocols),
                self.now_ms,
            )
            group.members[member.member_id] = member
            self._handed_out.discard(member.member_id)
            group.protocol_type = "consumer"
            return self._wait_for_join(group, member, on_joined)
        self._rejoin(group, member, protocols, on_joined, session_timeout_ms, rebalance_timeout_ms)
        return None

    def sync(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        assignments: dict[str, bytes],
        on_synced: OnSynced,
    ) -> None:
        """SyncGroup."""
        group = self.group(group_id)
        code = self._check_member(group, member_id, instance_id, generation)
        if code is ErrorCode.NONE and group.state == PREPARING:
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code is not ErrorCode.NONE:
            return on_synced(Synced(code))
        member = group.members[member_id]
        member.heard_ms = self.now_ms
        if group.state == STABLE:
            return on_synced(Synced(code, member.assignment))
        member.on_synced = on_synced
        if member_id == group.leader:
            group.state = STABLE
            group.phase_ends_ms = NEVER_MS
            for each in group.members.values():
                each.assignment = assignments.get(each.member_id, b"")
            group.keep()
            for each in tuple(group.members.values()):
                waiting, each.on_synced = each.on_synced, None
                if waiting is not None:
                    each.heard_ms = self.now_ms
                    waiting(Synced(ErrorCode.NONE, each.assignment))
        return None

    def move_coordinator(self, group_id: str) -> None:
        """Another broker loads the group: what waits is never answered, sessions begin anew."""
        group = self.group(group_id)
        kept = group.kept or ModelGroup(group_id)
        members = {name: replace(member) for name, member in kept.members.items()}
        for member in members.values():
            member.heard_ms = self.now_ms
        offsets = group.offsets
        self.groups[group_id] = replace(kept, members=members, offsets=offsets, kept=kept)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat."""
        group = self.group(group_id)
        code = self._check_member(group, member_id, instance_id, generation)
        if code is ErrorCode.NONE:
            group.members[member_id].heard_ms = self.now_ms
            if group.state == PREPARING:
                return ErrorCode.REBALANCE_IN_PROGRESS
        return code

    def leave(self, group_id: str, identities: list[tuple[str, str | None]]) -> list[ErrorCode]:
        """LeaveGroup of several members by member id or instance id."""
        group = self.group(group_id)
        codes = []
        for member_id, instance_id in identities:
            static = group.find_instance(instance_id)
            if static is not None and member_id not in ("", static.member_id):
                codes.append(ErrorCode.FENCED_INSTANCE_ID)
                continue
            gone = static or group.members.get(member_id)
            codes.append(ErrorCode.UNKNOWN_MEMBER_ID if gone is None else ErrorCode.NONE)
            if gone is not None:
                self._remove(group, gone)
        self._settle(group)
        return codes

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: dict[tuple[str, int], int],
    ) -> ErrorCode:
        """OffsetCommit of a member, or, with generation -1 and no member id, of nobody."""
        group = self.group(group_id)
        if member_id or generation >= 0 or instance_id is not None or group.members:
            code = self._check_member(group, member_id, instance_id, generation)
            if code is ErrorCode.NONE and group.state == COMPLETING:
                code = ErrorCode.REBALANCE_IN_PROGRESS
            if code is not ErrorCode.NONE:
                return code
            group.members[member_id].heard_ms = self.now_ms
        group.offsets.update(offsets)
        return ErrorCode.NONE

    # ----------------------------------------------------------------------------------------- time

    def next_deadline_ms(self) -> int:
        """When something happens by itself."""
        ends = [NEVER_MS]
        for group in self.groups.values():
            ends += (group.phase_ends_ms, group.delay_ends_ms)
            ends += (self._expires_ms(member) for member in group.members.values())
        return min(ends)

    def advance(self, now_ms: int) -> None:
        """Let time pass; what is due happens in order."""
        while (due_ms := self.next_deadline_ms()) <= now_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for group in list(self.groups.values()):
                self._expire(group)
        self.now_ms = max(self.now_ms, now_ms)

    def _expires_ms(self, member: ModelMember) -> int:
        if member.on_joined is not None:
            return NEVER_MS
        return member.heard_ms + member.session_timeout_ms

    def _expire(self, group: ModelGroup) -> None:
        for member in list(group.members.values()):
            if self._expires_ms(member) <= self.now_ms:
                self._remove(group, member)
        if group.delay_ends_ms <= self.now_ms:
            group.delay_ends_ms = NEVER_MS
        if group.phase_ends_ms <= self.now_ms:
            if group.state == PREPARING:
                return self._end_join_phase(group)
            group.phase_ends_ms = NEVER_MS
            for member in list(group.members.values()):
                if member.on_synced is None:
                    self._remove(group, member)
        self._settle(group)
        return None

    # --------------------------------------------------------------------------------------- phases

    def _check_join(
        self,
        group: ModelGroup,
        member_id: str,
        instance_id: str | None,
        static: ModelMember | None,
        protocols: dict[str, bytes],
    ) -> ErrorCode:
        if static is not None and member_id not in ("", static.member_id):
            return ErrorCode.FENCED_INSTANCE_ID
        rest = [each for each in group.members.values() if each is not static]
        if member_id:
            rest = [each for each in rest if each.member_id != member_id]
        shared = set(protocols).intersection(*(each.protocols for each in rest))
        if not shared:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if member_id and member_id not in group.members and instance_id is not None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_id and member_id not in group.members and member_id not in self._handed_out:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not member_id and instance_id is None:
            return ErrorCode.MEMBER_ID_REQUIRED
        return ErrorCode.NONE

    def _replace_static(
        self,
        group: ModelGroup,
        old: ModelMember,
        protocols: dict[str, bytes],
        on_joined: OnJoined,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        """A static member returns with a new member id; the requests of the old one are fenced."""
        del group.members[old.member_id]
        if old.on_joined is not None:
            old.on_joined(Joined(ErrorCode.FENCED_INSTANCE_ID))
        if old.on_synced is not None:
            old.on_synced(Synced(ErrorCode.FENCED_INSTANCE_ID))
        was_leader = group.leader == old.member_id
        same = protocols.get(group.protocol) == old.protocols.get(group.protocol)
        member = ModelMember(
            self._name(old.instance_id or ""),
            old.instance_id,
            old.client_id,
            session_timeout_ms,
            rebalance_timeout_ms,
            dict(protocols),
            self.now_ms,
            old.assignment,
        )
        group.members[member.member_id] = member
        if was_leader:
            group.leader = member.member_id
        if group.state == STABLE and same and group.protocol in protocols:
            group.keep()
            return on_joined(self._answer(group, member, skip=was_leader))
        self._wait_for_join(group, member, on_joined)
        return None

    def _rejoin(
        self,
        group: ModelGroup,
        member: ModelMember,
        protocols: dict[str, bytes],
        on_joined: OnJoined,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        changed = member.protocols != protocols
        member.protocols = dict(protocols)
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.heard_ms = self.now_ms
        is_leader = member.member_id == group.leader
        if group.state == STABLE and not changed and not is_leader:
            return on_joined(self._answer(group, member))
        if group.state == COMPLETING and not changed:
            return on_joined(self._answer(group, member))
        self._wait_for_join(group, member, on_joined)
        return None

    def _wait_for_join(self, group: ModelGroup, member: ModelMember, on_joined: OnJoined) -> None:
        if member.on_joined is not None:
            member.on_joined(Joined(ErrorCode.UNKNOWN_MEMBER_ID))
        member.on_joined = on_joined
        if group.state != PREPARING:
            self._begin_rebalance(group)
        self._settle(group)

    def _begin_rebalance(self, group: ModelGroup) -> None:
        if group.state == EMPTY:
            group.delay_ends_ms = self.now_ms + self.initial_delay_ms
        if group.state == COMPLETING:
            for each in group.members.values():
                waiting, each.on_synced = each.on_synced, None
                if waiting is not None:
                    waiting(Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        group.state = PREPARING
        longest = max(each.rebalance_timeout_ms for each in group.members.values())
        group.phase_ends_ms = self.now_ms + longest

    def _remove(self, group: ModelGroup, member: ModelMember) -> None:
        group.members.pop(member.member_id, None)
        if member.on_joined is not None:
            member.on_joined(Joined(ErrorCode.UNKNOWN_MEMBER_ID))
        if member.on_synced is not None and self.answers_removed_syncs:
            member.on_synced(Synced(ErrorCode.UNKNOWN_MEMBER_ID))
        if group.leader == member.member_id:
            group.leader = next(iter(group.members), "")
        if group.state in (STABLE, COMPLETING):
            if group.members:
                self._begin_rebalance(group)
            else:
                self._end_join_phase(group)

    def _settle(self, group: ModelGroup) -> None:
        """End the join phase if all have joined."""
        if group.state != PREPARING or group.delay_ends_ms != NEVER_MS:
            return
        if all(member.on_joined is not None for member in group.members.values()):
            self._end_join_phase(group)

    def _end_join_phase(self, group: ModelGroup) -> None:
        for member in list(group.members.values()):
            if member.on_joined is None and member.instance_id is None:
                del group.members[member.member_id]
        group.phase_ends_ms = group.delay_ends_ms = NEVER_MS
        group.generation += 1
        if not group.members:
            group.state, group.protocol, group.leader = EMPTY, "", ""
            group.keep()
            return
        group.state = COMPLETING
        sets = [set(member.protocols) for member in group.members.values()]
        shared = sets[0].intersection(*sets[1:])
        first = next(iter(group.members.values()))
        group.protocol = next(name for name in first.protocols if name in shared)
        joined = [each for each in group.members.values() if each.on_joined is not None]
        if group.leader not in {each.member_id for each in joined}:
            group.leader = joined[0].member_id if joined else next(iter(group.members))
        group.phase_ends_ms = self.now_ms + max(
            each.rebalance_timeout_ms for each in group.members.values()
        )
        for member in joined:
            waiting, member.on_joined = member.on_joined, None
            member.heard_ms = self.now_ms
            assert waiting is not None
            waiting(self._answer(group, member))

    def _answer(self, group: ModelGroup, member: ModelMember, *, skip: bool = False) -> Joined:
        members: tuple[tuple[str, bytes], ...] = ()
        if member.member_id == group.leader:
            members = tuple(
                (each.member_id, each.protocols[group.protocol]) for each in group.members.values()
            )
        return Joined(
            ErrorCode.NONE,
            member.member_id,
            group.generation,
            group.protocol,
            group.leader,
            members,
            skip,
        )

    def _check_member(
        self, group: ModelGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        static = group.find_instance(instance_id)
        if static is not None and static.member_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in group.members or (instance_id is not None and static is None):
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    def _name(self, prefix: str) -> str:
        name = f"{prefix}-{self._names}"
        self._names += 1
        self._handed_out.add(name)
        return name
