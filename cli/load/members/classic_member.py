"""Members of the classic protocol: JoinGroup, SyncGroup, Heartbeat."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final, Protocol

from cli.load.members.classic_assignment import (
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    compute_ranges,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from cli.load.members.group import Group
from cli.load.members.member import Keeper, Leave, Member, make_correlation_id
from cli.load.wire.lane import Lane
from cli.load.wire.link import Dialer, Link, RefusedError, name_failure
from cli.load.wire.messages import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
    MalformedAnswer,
    decode_answer,
    encode_frame,
    make_request,
    name_error,
)

_INTERVAL_NS: Final = 3_000_000_000
_SESSION_TIMEOUT_MS: Final = 45_000
_REBALANCE_TIMEOUT_MS: Final = 60_000
_RETRY_S: Final = 0.1
_NEW_MEMBER: Final = -1
"""The generation of a member that has none."""

_ILLEGAL_GENERATION: Final = 22
_UNKNOWN_MEMBER_ID: Final = 25
_REBALANCE_IN_PROGRESS: Final = 27
_MEMBER_ID_REQUIRED: Final = 79


class ClassicCrew(Protocol):
    """What classic members need of the process."""

    dialer: Dialer
    partitions: int

    def start_task(self, member: Member, work: Any) -> None:
        """Run a coroutine until it ends, or the test does."""

    def count_error(self, name: str) -> None:
        """Count an error."""

    def set_in_turn(self, member: Member, *, is_in_turn: bool) -> None:
        """Whether the member's requests are part of the load now."""


class ClassicMember(Member):
    """A member that joins on a connection of its own, which is closed when it has its assignment.

    The response to JoinGroup waits for the whole group, and holds up all others behind it.
    """

    __slots__ = ("_correlation_id", "_crew", "_frame", "_is_joining", "_topic")

    def __init__(
        self,
        group: Group,
        lane: Lane,
        topic: tuple[str, bytes],
        keeper: Keeper,
        crew: ClassicCrew,
    ) -> None:
        super().__init__(group, lane, keeper, "", _INTERVAL_NS)
        self._topic = topic[0]
        self._crew = crew
        self._correlation_id = make_correlation_id()
        self._frame = b""
        self._is_joining = False

    def join(self) -> None:
        """Join on a connection of its own."""
        self.group.begin_join()
        self._rejoin()

    def leave(self) -> None:
        """Send LeaveGroup."""
        self.is_leaving = True
        self.group.remove(self.epoch, len(self.owned), 0)
        request = make_request(
            LEAVE_GROUP, group_id=self.group.group_id, members=[{"member_id": self.member_id}]
        )
        frame = encode_frame(LEAVE_GROUP, self._correlation_id, request)
        self.lane.add_control(Leave(frame, self._read_left, partial(self.keeper.note_left, self)))

    def note_reconnected(self) -> None:
        """Nothing was lost: what a heartbeat says is said again by the next one."""

    def make_frame(self) -> bytes:
        """The heartbeat of this generation."""
        if not self._frame:
            request = make_request(
                HEARTBEAT,
                group_id=self.group.group_id,
                generation_id=self.epoch or _NEW_MEMBER,
                member_id=self.member_id,
            )
            self._frame = encode_frame(HEARTBEAT, self._correlation_id, request)
        return self._frame

    def handle(self, answer: bytes) -> int:
        """Join again where the group rebalances, which is no error."""
        code: int = decode_answer(HEARTBEAT, self._correlation_id, answer).error_code
        if not code:
            self.quiet = answer
            return 0
        if self.is_leaving or self._is_joining:
            # A heartbeat of the generation before.
            return 0
        if code not in (_REBALANCE_IN_PROGRESS, _ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID):
            return code
        if code == _UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._rejoin()
        return 0 if code == _REBALANCE_IN_PROGRESS else code

    def _rejoin(self) -> None:
        self._is_joining = True
        self._crew.set_in_turn(self, is_in_turn=False)
        self._crew.start_task(self, self._join_until_done())

    async def _join_until_done(self) -> None:
        while not self.is_leaving:
            try:
                link = await self._crew.dialer.open(self.lane.address)
                try:
                    await self._join_on(link)
                finally:
                    link.close()
            except (OSError, TimeoutError, RefusedError, MalformedAnswer) as error:
                self._crew.count_error(name_failure(error))
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def _join_on(self, link: Link) -> None:
        """Repeat JoinGroup and SyncGroup until there is an assignment."""
        while not self.is_leaving:
            joined = await self._ask_to_join(link)
            if joined.error_code == _MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
                continue
            code = joined.error_code
            if not code:
                self.member_id = joined.member_id
                synced = await self._synchronize(link, joined)
                code = synced.error_code
                if not code:
                    self._settle(joined.generation_id, decode_assignment(synced.assignment))
                    return
            if code == _UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if code != _REBALANCE_IN_PROGRESS:
                self._crew.count_error(name_error(code))
                await asyncio.sleep(_RETRY_S)

    async def _ask_to_join(self, link: Link) -> Any:
        return await link.ask(
            JOIN_GROUP,
            self._crew.dialer.timeout_s + _REBALANCE_TIMEOUT_MS / 1000,
            group_id=self.group.group_id,
            session_timeout=_SESSION_TIMEOUT_MS,
            rebalance_timeout=_REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[{"name": PROTOCOL_NAME, "metadata": encode_subscription(self._topic)}],
        )

    async def _synchronize(self, link: Link, joined: Any) -> Any:
        assignments: list[dict[str, Any]] = []
        if joined.leader == joined.member_id:
            members = [member.member_id for member in joined.members]
            ranges = compute_ranges(members, self._crew.partitions)
            assignments = [
                {"member_id": member_id, "assignment": encode_assignment(self._topic, numbers)}
                for member_id, numbers in ranges.items()
            ]
        return await link.ask(
            SYNC_GROUP,
            self._crew.dialer.timeout_s + _REBALANCE_TIMEOUT_MS / 1000,
            group_id=self.group.group_id,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL_NAME,
            assignments=assignments,
        )

    def _settle(self, generation: int, owned: tuple[int, ...]) -> None:
        if self.is_leaving:
            return
        old_epoch, old_owned = self.epoch, self.owned
        self.epoch, self.owned = generation, owned
        self._frame = self.quiet = b""
        self._is_joining = False
        self._crew.set_in_turn(self, is_in_turn=True)
        self.group.move(old_epoch, generation, len(owned) - len(old_owned), 0)

    def _read_left(self, answer: bytes) -> int:
        response = decode_answer(LEAVE_GROUP, self._correlation_id, answer)
        code: int = response.error_code
        for member in response.members:
            code = code or member.error_code
        return 0 if code == _UNKNOWN_MEMBER_ID else code
