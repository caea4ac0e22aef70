"""What one member sends on the session stream, and the lease that its messages earn it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from muster.connection.lease import Lease, read_clock
from muster.connection.stream import Stream
from muster.member_options import MemberOptions
from muster.membership import Membership, Status
from muster.partitions import encode_partitions
from muster.v1 import assignors_pb2, group_pb2

_LEAVE_EPOCH: Final = -1
_STATIC_LEAVE_EPOCH: Final = -2


class MemberSender:
    """``stream`` is the open stream. ``leaves_for_good``: a Leave releases the partitions.

    Without ``leaves_for_good`` the group keeps the partitions until the session timeout has passed.
    """

    def __init__(
        self, group_id: str, member_id: str, membership: Membership, options: MemberOptions
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.stream: Stream | None = None
        self.lease = Lease()
        self.leaves_for_good = not options.instance_id
        self._membership = membership
        self._options = options
        self._incarnation = options.incarnation
        self._joined_on: Stream | None = None
        """The stream on which a Join was sent, and no Leave since."""
        self._left: asyncio.Future[bool] | None = None

    @property
    def holds(self) -> bool:
        """Whether the member may act as one now: it has joined, and its lease has not ended."""
        if self._membership.status is not Status.MEMBER:
            return False
        return read_clock() < self.compute_lease_deadline()

    def compute_lease_deadline(self) -> float:
        """When the lease ends, in seconds of ``read_clock``."""
        return self.lease.compute_deadline(None if self.stream is None else self.stream.sent)

    def open(self, stream: Stream) -> None:
        """Send on this stream from now on."""
        self.stream = stream

    def on_stream_lost(self, stream: Stream) -> None:
        """The member keeps the lease that the stream has earned it."""
        self.lease.settle(stream.sent)
        self.stream = None
        if self._left is not None and not self._left.done():
            self._left.set_result(False)

    def on_left(self) -> None:
        """The server has answered the Leave."""
        if self._left is not None and not self._left.done():
            self._left.set_result(True)

    def make_join(self, client_assignors: Sequence[assignors_pb2.ClientAssignor]) -> group_pb2.Join:
        """The Join of the present epoch and ownership; ``send_join`` numbers it."""
        membership, options = self._membership, self._options
        return group_pb2.Join(
            member_epoch=membership.member_epoch,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            subscription=group_pb2.Subscription(
                subscribed_topic_names=options.topics,
                subscribed_topic_regex=options.topic_regex,
            ),
            owned=encode_partitions(membership.owned),
            server_assignor=options.server_assignor,
            rack_id=options.rack_id,
            client_id=options.client_id,
            instance_id=options.instance_id,
            client_assignors=client_assignors,
            incarnation=self._incarnation,
        )

    def send_join(self, stream: Stream, join: group_pb2.Join) -> None:
        """Join, or resume the member, on this stream."""
        self.lease.settle(stream.sent)
        self.lease.note_join_sent(read_clock())
        join.join_id = self._membership.begin_join()
        self._joined_on = stream
        self.send(stream, join=join)

    def leave_if_joined(self) -> None:
        """Leave if the open stream may have the member, even after its own lease has ended.

        Otherwise the stream would renew an abandoned member for as long as others use it.
        """
        if self.stream is not None and self._joined_on is self.stream:
            self.send_leave(self.stream)

    async def leave(self) -> bool:
        """Leave; whether the server answered before the stream broke."""
        if self.stream is None:
            return False
        self._left = asyncio.get_running_loop().create_future()
        self.send_leave(self.stream)
        return await self._left

    def send_leave(self, stream: Stream) -> None:
        """Send a Leave without waiting for the answer."""
        self._joined_on = None
        epoch = _LEAVE_EPOCH if self.leaves_for_good else _STATIC_LEAVE_EPOCH
        leave = group_pb2.Leave(member_epoch=epoch, instance_id=self._options.instance_id)
        self.send(stream, leave=leave)

    def change_id(self, member_id: str) -> None:
        """Another client uses the member id: go on with a generated one."""
        self._joined_on = None
        self._incarnation = 0
        self.member_id = member_id

    def send(
        self,
        stream: Stream,
        *,
        join: group_pb2.Join | None = None,
        acknowledge: group_pb2.Acknowledge | None = None,
        leave: group_pb2.Leave | None = None,
        prepare: assignors_pb2.PrepareAssignment | None = None,
        install: assignors_pb2.InstallAssignment | None = None,
    ) -> None:
        """Send one action of the member."""
        stream.send(
            group_pb2.MemberAction(
                group_id=self.group_id,
                member_id=self.member_id,
                join=join,
                acknowledge=acknowledge,
                leave=leave,
                prepare_assignment=prepare,
                install_assignment=install,
            )
        )

    def send_of_assignment(
        self,
        *,
        prepare: assignors_pb2.PrepareAssignment | None = None,
        install: assignors_pb2.InstallAssignment | None = None,
    ) -> None:
        """Send an action of the member's client-side assignor, if a stream is open."""
        if self.stream is not None:
            self.send(self.stream, prepare=prepare, install=install)
