"""Members of the consumer protocol (KIP-848)."""

from __future__ import annotations

import base64
import os
from functools import partial
from typing import Any, Final

from cli.load.members.group import Group
from cli.load.members.member import Keeper, Leave, Member, make_correlation_id
from cli.load.wire.lane import Lane
from cli.load.wire.messages import (
    CONSUMER_GROUP_HEARTBEAT,
    decode_answer,
    encode_frame,
    make_request,
)

_LEAVES: Final = -1
_REBALANCE_TIMEOUT_MS: Final = 300_000
_FIRST_INTERVAL_NS: Final = 5_000_000_000
_UNKNOWN_MEMBER_ID: Final = 25
_FENCED: Final = (_UNKNOWN_MEMBER_ID, 110, 113)
"""UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH: the member has to join again."""


class ConsumerMember(Member):
    """A member that owns what it is assigned at once, and acknowledges with the next heartbeat.

    The partitions in a response are those that it may own now. Until it has sent what it owns,
    the coordinator gives what it has dropped to nobody.
    """

    __slots__ = (
        "_correlation_id",
        "_frame",
        "_has_acknowledged",
        "_is_full",
        "_must_acknowledge",
        "_topic",
    )

    def __init__(self, group: Group, lane: Lane, topic: tuple[str, bytes], keeper: Keeper) -> None:
        member_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        super().__init__(group, lane, keeper, member_id, _FIRST_INTERVAL_NS)
        self._topic = topic
        self._correlation_id = make_correlation_id()
        self._frame = b""
        self._must_acknowledge = False
        self._has_acknowledged = False
        self._is_full = False

    def join(self) -> None:
        """Send the first heartbeat."""
        self.group.begin_join()
        self.lane.add_control(self)

    def leave(self) -> None:
        """Send the heartbeat that leaves."""
        self.is_leaving = True
        self.group.remove(self.epoch, len(self.owned), self._must_acknowledge)
        frame = self._encode(member_epoch=_LEAVES)
        self.lane.add_control(Leave(frame, self._read_left, partial(self.keeper.note_left, self)))

    def note_reconnected(self) -> None:
        """Say everything again, as clients do: a response with partitions may be lost."""
        if not self.is_leaving:
            self._is_full = True
            self._frame = b""
            self.lane.add_control(self)

    def make_frame(self) -> bytes:
        """The heartbeat for the member's state."""
        if not self._frame:
            self._frame = self._encode(member_epoch=self.epoch, **self._compose())
            self._has_acknowledged = True
        return self._frame

    def handle(self, answer: bytes) -> int:
        """Take over the epoch and the partitions."""
        response = decode_answer(CONSUMER_GROUP_HEARTBEAT, self._correlation_id, answer)
        code: int = response.error_code
        if self.is_leaving:
            return 0 if code in _FENCED else code
        if code:
            if code in _FENCED:
                self._change(0, (), must_acknowledge=False)
                self.lane.add_control(self)
            return code
        # At an interval of 0 it would be due again at once, for ever.
        interval_ns = max(1, response.heartbeat_interval) * 1_000_000
        is_sooner, self.interval_ns = interval_ns < self.interval_ns, interval_ns
        if is_sooner:
            self.keeper.note_interval(self)
        owned = self.owned
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            owned = tuple(sorted(number for row in rows for number in row.partitions))
        is_quiet = response.member_epoch == self.epoch and response.assignment is None
        if is_quiet and not self._must_acknowledge and not self._is_full:
            self.quiet = answer
            return 0
        self._is_full = False
        # With several in flight this may be the response to one from before the acknowledgement.
        is_owed = self._must_acknowledge and not self._has_acknowledged
        has_changes = owned != self.owned
        self._change(response.member_epoch, owned, must_acknowledge=has_changes or is_owed)
        if has_changes:
            self.lane.add_control(self)
        return 0

    def _change(self, epoch: int, owned: tuple[int, ...], *, must_acknowledge: bool) -> None:
        old_epoch, old_owned, had = self.epoch, self.owned, self._must_acknowledge
        self.epoch, self.owned, self._must_acknowledge = epoch, owned, must_acknowledge
        self._frame = self.quiet = b""
        self._has_acknowledged = False
        self.group.move(
            old_epoch, epoch, len(owned) - len(old_owned), int(must_acknowledge) - int(had)
        )

    def _compose(self) -> dict[str, Any]:
        says_owned = self.epoch == 0 or self._must_acknowledge or self._is_full
        fields: dict[str, Any] = {}
        if self.epoch == 0 or self._is_full:
            fields = {
                "rebalance_timeout": _REBALANCE_TIMEOUT_MS,
                "subscribed_topic_names": (self._topic[0],),
            }
        if says_owned:
            row = {"topic_id": self._topic[1], "partitions": self.owned}
            fields["topic_partitions"] = [row] if self.owned else []
        return fields

    def _encode(self, **fields: Any) -> bytes:
        request = make_request(
            CONSUMER_GROUP_HEARTBEAT,
            group_id=self.group.group_id,
            member_id=self.member_id,
            # Without a value it would be empty: the member would own nothing.
            **{"topic_partitions": None, **fields},
        )
        return encode_frame(CONSUMER_GROUP_HEARTBEAT, self._correlation_id, request)

    def _read_left(self, answer: bytes) -> int:
        response = decode_answer(CONSUMER_GROUP_HEARTBEAT, self._correlation_id, answer)
        code: int = response.error_code
        return 0 if code == _UNKNOWN_MEMBER_ID else code
