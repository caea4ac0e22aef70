"""What members send while their group is on its way here.

Heartbeats, joins and syncs are held until the members are adopted, and are then answered together:
a member hears of one rebalance and of nothing else. Commits and fetches are made in the cluster in
the member's own name, in order, as long as the cluster still has the member. All that is held has a
deadline, and is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import structlog

from coordinator.runtime.api import Answer, Reply
from model.commands.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from model.commands.command import Command
from model.commands.consumer import LeaveGroup
from model.commands.offsets import OffsetCommit, OffsetFetch
from model.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    GroupError,
    IllegalGeneration,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from model.responses.classic import ClassicHeartbeatResponse, LeaveGroupResponse
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.offsets.offset_requests import compute_code
from upstream.sentinel.sentinel_requests import make_leave, make_member_heartbeat
from upstream.takeover.asking.passed_offsets import PASS_TIMEOUT_MS, PassedOffsets
from upstream.takeover.machine.move import HEARD_MAX
from upstream.takeover.machine.takeover_events import MemberTimes

log = structlog.get_logger("muster.upstream")

HELD_MAX: Final = 100_000
"""Most commands that are held at once, of all groups."""
QUEUED_MAX: Final = 10_000
"""Most commits and fetches of one group that wait for the cluster."""
_HELD_MAX_MS: Final = 20_000
"""Clients give up a request after thirty seconds, most of them."""
_SHORTEST_SESSION_MS: Final = 6_000
_BUSY: Final = "The group is being taken over from the cluster."
_Key: TypeAlias = tuple[type[Command], str]
Heard: TypeAlias = Callable[[str, str, int], None]


@dataclass(slots=True, eq=False)
class _Held:
    command: Command
    reply: Reply
    timer: asyncio.TimerHandle


@dataclass(slots=True)
class _Group:
    """The commands of one group. ``passes``: the cluster still has its members."""

    passes: bool = True
    held: dict[object, _Held] = field(default_factory=dict)
    queue: deque[_Held] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None
    times: dict[str, MemberTimes] = field(default_factory=dict)


class MembersOnTheWay:
    """The commands of all groups that are on their way here.

    ``on_heard`` is told of each member that is heard. Admitted commands go to ``submit_here``.
    """

    def __init__(self, cluster: Cluster, passed: PassedOffsets, on_heard: Heard) -> None:
        self._cluster = cluster
        self._passed = passed
        self._on_heard = on_heard
        self._groups: dict[str, _Group] = {}
        self._held_count = 0
        self._beats: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.submit_here: Callable[[Command, Reply], None] | None = None

    # ------------------------------------------------------------------------------- the members

    def submit(self, command: Command, reply: Reply) -> None:
        """Take a command. ``reply`` is called exactly once."""
        match command:
            case ClassicHeartbeat():
                self._hear(command.group_id, command.member_id, command.generation)
                self._hold_heartbeat(command, reply)
            case JoinGroup():
                self._note_times(command)
                if command.member_id is not None:
                    self._hear(command.group_id, command.member_id, -1)
                key = (JoinGroup, command.member_id or command.new_member_id)
                wait_ms = min(command.rebalance_timeout_ms // 2, _HELD_MAX_MS)
                self._hold(key, command, reply, wait_ms)
            case SyncGroup():
                self._hear(command.group_id, command.member_id, command.generation)
                self._hold((SyncGroup, command.member_id), command, reply, _HELD_MAX_MS)
            case OffsetCommit():
                if command.member_id:
                    epoch = command.member_epoch
                    self._hear(command.group_id, command.member_id, -1 if epoch is None else epoch)
                self._queue(command, reply)
            case OffsetFetch() | LeaveGroup():
                self._queue(command, reply)
            case _:
                reply(CoordinatorLoadInProgress(_BUSY))

    def find_times(self, group_id: str) -> Mapping[str, MemberTimes]:
        """The timeouts of members that joined here."""
        group = self._groups.get(group_id)
        return {} if group is None else dict(group.times)

    def _hear(self, group_id: str, member_id: str, generation: int) -> None:
        self._on_heard(group_id, member_id, generation)

    def _note_times(self, command: JoinGroup) -> None:
        if command.member_id is not None:
            times = MemberTimes(command.session_timeout_ms, command.rebalance_timeout_ms)
            known = self._group(command.group_id).times
            if command.member_id in known or len(known) < HEARD_MAX:
                known[command.member_id] = times

    # ---------------------------------------------------------------------------------- the take

    async def hold_commits(self, group_id: str) -> None:
        """Pass nothing on any more, and wait until what was passed on is answered."""
        group = self._group(group_id)
        group.passes = False
        if group.worker is not None:
            await asyncio.wait({group.worker})

    def pass_again(self, group_id: str) -> None:
        """The cluster still has the members, or has them again."""
        group = self._groups.get(group_id)
        if group is not None:
            group.passes = True
            self._work(group_id, group)

    def admit(self, group_id: str) -> None:
        """The members are adopted: everything goes to the coordinator here, in order."""
        assert self.submit_here is not None
        for command, reply in self._take_all(group_id):
            self.submit_here(command, reply)

    def turn_away(self, group_id: str) -> None:
        """The cluster has the group: the members are sent there."""
        for _, reply in self._take_all(group_id):
            reply(NotCoordinator("The cluster coordinates the group."))

    def close(self) -> None:
        """Answer all that is held: the server stops."""
        for group_id in tuple(self._groups):
            for _, reply in self._take_all(group_id):
                reply(CoordinatorNotAvailable("The server is stopping."))
        for beat in self._beats.values():
            beat.cancel()

    def _take_all(self, group_id: str) -> list[tuple[Command, Reply]]:
        group = self._groups.pop(group_id, None)
        if group is None:
            return []
        group.passes = False
        taken = []
        for held in group.held.values():
            held.timer.cancel()
            taken.append((held.command, held.reply))
        self._held_count -= len(group.held)
        for queued in group.queue:
            queued.timer.cancel()
            taken.append((queued.command, queued.reply))
        group.held.clear()
        group.queue.clear()
        return taken

    # ----------------------------------------------------------------------------------- holding

    def _group(self, group_id: str) -> _Group:
        return self._groups.setdefault(group_id, _Group())

    def _hold(self, key: object, command: Command, reply: Reply, wait_ms: int) -> None:
        """Hold a command; one before it with the same key gets its answer now."""
        group_id: str = command.group_id  # type: ignore[union-attr]
        group = self._group(group_id)
        self._end(group_id, group, key)
        if self._held_count >= HELD_MAX:
            return reply(CoordinatorLoadInProgress(_BUSY))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(wait_ms / 1_000, self._end, group_id, group, key)
        group.held[key] = _Held(command, reply, timer)
        self._held_count += 1
        return None

    def _end(self, group_id: str, group: _Group, key: object, answer: Answer | None = None) -> None:
        held = group.held.pop(key, None)
        if held is None:
            return
        held.timer.cancel()
        self._held_count -= 1
        held.reply(_compute_patience(held.command) if answer is None else answer)

    def _hold_heartbeat(self, command: ClassicHeartbeat, reply: Reply) -> None:
        group = self._group(command.group_id)
        known = group.times.get(command.member_id)
        session_ms = _SHORTEST_SESSION_MS if known is None else known.session_timeout_ms
        key = (ClassicHeartbeat, command.member_id)
        self._hold(key, command, reply, min(session_ms // 2, _HELD_MAX_MS))
        if group.passes:
            self._beat(command, key)

    def _beat(self, command: ClassicHeartbeat, key: object) -> None:
        """Keep the member's session in the cluster alive while its heartbeat is held."""
        task_key = (command.group_id, command.member_id)
        if task_key in self._beats:
            return
        task = asyncio.get_running_loop().create_task(self._pass_heartbeat(command, key))
        self._beats[task_key] = task
        task.add_done_callback(lambda _: self._beats.pop(task_key, None))

    async def _pass_heartbeat(self, command: ClassicHeartbeat, key: object) -> None:
        request = make_member_heartbeat(
            command.group_id, command.member_id, command.generation, command.instance_id
        )
        try:
            response = await self._cluster.ask_coordinator(
                command.group_id, request, timeout_ms=PASS_TIMEOUT_MS
            )
        except ClusterUnreachable:
            return
        group = self._groups.get(command.group_id)
        if group is None or not group.passes:
            return
        error: GroupError
        match compute_code(response.error_code):
            case ErrorCode.UNKNOWN_MEMBER_ID:
                error = UnknownMemberId("The cluster's group has no such member.")
            case ErrorCode.ILLEGAL_GENERATION:
                error = IllegalGeneration("The cluster's group is in another generation.")
            case _:
                return
        self._end(command.group_id, group, key, error)

    # ----------------------------------------------------------------------------------- passing

    def _queue(self, command: OffsetCommit | OffsetFetch | LeaveGroup, reply: Reply) -> None:
        group = self._group(command.group_id)
        if len(group.queue) >= QUEUED_MAX:
            return reply(CoordinatorLoadInProgress(_BUSY))
        loop = asyncio.get_running_loop()
        # The oldest is the first, and all wait as long.
        timer = loop.call_later(_HELD_MAX_MS / 1_000, _expire_first, group)
        queued = _Held(command, reply, timer)
        group.queue.append(queued)
        self._work(command.group_id, group)
        return None

    def _work(self, group_id: str, group: _Group) -> None:
        if group.passes and group.queue and (group.worker is None or group.worker.done()):
            group.worker = asyncio.get_running_loop().create_task(self._run(group))

    async def _run(self, group: _Group) -> None:
        """One request in flight a group, so that nothing overtakes."""
        while group.passes and group.queue:
            queued = group.queue.popleft()
            queued.timer.cancel()
            command, reply = queued.command, queued.reply
            try:
                reply(await self._pass(command))
            except GroupError as error:
                reply(error)
            except asyncio.CancelledError:
                reply(CoordinatorNotAvailable("The server is stopping."))
                raise
            except Exception:
                # An answer that is not as it should be must not hold up the commands behind it.
                log.exception("command_not_passed_on", command=type(command).__name__)
                reply(UnknownServerError("The cluster's answer could not be read."))

    async def _pass(self, command: Command) -> Answer:
        match command:
            case OffsetCommit():
                return await self._passed.commit(command)
            case OffsetFetch():
                return await self._passed.fetch(command)
            case LeaveGroup():
                return await self._leave(command)
            case _:
                raise AssertionError(command)

    async def _leave(self, command: LeaveGroup) -> LeaveGroupResponse:
        rows = [(str(each.member_id or ""), each.instance_id) for each in command.members]
        try:
            response = await self._cluster.ask_coordinator(
                command.group_id,
                make_leave(command.group_id, rows, "the member left"),
                timeout_ms=PASS_TIMEOUT_MS,
            )
        except ClusterUnreachable as cause:
            raise CoordinatorNotAvailable(f"The cluster did not answer: {cause}") from None
        code = compute_code(response.error_code)
        codes = tuple(compute_code(each.error_code) for each in response.members)
        if code is not ErrorCode.NONE or len(codes) != len(rows):
            codes = (code,) * len(rows)
        return LeaveGroupResponse(codes)


def _expire_first(group: _Group) -> None:
    """A commit or fetch that the client does not await any more must not be made later."""
    queued = group.queue.popleft()
    queued.reply(_compute_patience(queued.command))


def _compute_patience(command: Command) -> Answer:
    """The answer to a command that cannot be held any longer: the client asks again."""
    match command:
        case ClassicHeartbeat():
            return ClassicHeartbeatResponse()
        case SyncGroup():
            return RebalanceInProgress("The group is being taken over: the member has to rejoin.")
        case _:
            return CoordinatorLoadInProgress(_BUSY)
