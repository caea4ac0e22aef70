"""Polls the server's descriptions of the groups while the demo runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from cli.secure_channel import CHANNEL_OPTIONS
from muster.v1 import admin_pb2, admin_pb2_grpc, types_pb2

if TYPE_CHECKING:
    from muster.v1.admin_pb2_grpc import AdminServiceAsyncStub

POLL_S = 0.2
_CALL_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the server describes it; ``name`` is its client id."""

    name: str
    epoch: int
    state: str
    assigned: tuple[int, ...]
    pending_revocation: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group at one moment as the server describes it."""

    at_s: float
    group_id: str
    state: str
    group_epoch: int
    target_epoch: int
    members: tuple[MemberView, ...]

    def epochs(self) -> tuple[int, dict[str, int]]:
        """The group epoch and the epoch of each member."""
        return self.group_epoch, {member.name: member.epoch for member in self.members}


@dataclass
class Observer:
    """Polls groups. ``double`` lists partitions that the server gave to two members at once."""

    target: str
    group_ids: tuple[str, ...]
    latest: dict[str, GroupView] = field(default_factory=dict)
    polls: int = 0
    double: list[str] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Poll until ``stop``."""
        self._task = asyncio.create_task(self._run(), name="demo-observer")

    async def stop(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        options = (
            *CHANNEL_OPTIONS,
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
        )
        async with grpc.aio.insecure_channel(self.target, options=options) as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            while True:
                for group_id in self.group_ids:
                    await self._poll(stub, group_id)
                await asyncio.sleep(POLL_S)

    async def _poll(self, stub: AdminServiceAsyncStub, group_id: str) -> None:
        request = admin_pb2.DescribeGroupRequest(group_id=group_id)
        try:
            response = await stub.DescribeGroup(request, timeout=_CALL_TIMEOUT_S)
        except grpc.RpcError:
            # The group does not exist yet, or the server does not answer.
            return
        view = decode_group(response.group, time.monotonic())
        self.latest[group_id] = view
        self.polls += 1
        self.double.extend(find_double(view))


def decode_group(group: admin_pb2.Group, at_s: float) -> GroupView:
    """A description as the demo needs it: partition numbers of its one topic."""
    members = tuple(
        MemberView(
            member.client_id,
            member.member_epoch,
            admin_pb2.MemberState.Name(member.state).removeprefix("MEMBER_STATE_"),
            _numbers(member.assignment),
            _numbers(member.pending_revocation),
        )
        for member in sorted(group.members, key=lambda member: member.client_id)
    )
    state = admin_pb2.GroupState.Name(group.state).removeprefix("GROUP_STATE_").capitalize()
    return GroupView(
        at_s, group.group_id, state, group.group_epoch, group.assignment_epoch, members
    )


def find_double(view: GroupView) -> list[str]:
    """Partitions that two members own or still have to revoke, one line for each."""
    owners: dict[int, str] = {}
    found = []
    for member in view.members:
        for partition in (*member.assigned, *member.pending_revocation):
            other = owners.setdefault(partition, member.name)
            if other != member.name:
                found.append(f"{view.group_id}: partition {partition} of {other} and {member.name}")
    return found


def is_settled(view: GroupView | None, names: Collection[str], partitions: int) -> bool:
    """Whether the group has exactly these members, at the target, owning all partitions."""
    if view is None or {member.name for member in view.members} != set(names):
        return False
    if view.state != "Stable" or view.group_epoch != view.target_epoch:
        return False
    at_target = all(
        member.state == "STABLE"
        and member.epoch == view.group_epoch
        and not member.pending_revocation
        for member in view.members
    )
    held = sorted(number for member in view.members for number in member.assigned)
    return at_target and held == list(range(partitions))


def _numbers(topics: Iterable[types_pb2.TopicPartitions]) -> tuple[int, ...]:
    return tuple(sorted(number for topic in topics for number in topic.partitions))
