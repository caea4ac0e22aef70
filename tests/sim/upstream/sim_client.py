"""A consumer of the simulated group: finds its coordinator, joins, reads, commits.

It reaches the cluster through a relay of Muster, unless it is a stranger. Requests are asked and
answered at once but for JoinGroup and SyncGroup, which wait; an answer may get lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.errors import ErrorCode
from model.places import Place
from muster.assignors.embedded import encode_subscription, make_subscription
from tests.sim.upstream.cluster_values import Joined, Synced
from tests.sim.upstream.move_driver import GROUP
from tests.sim.upstream.muster_group import divide
from upstream.takeover.machine.takeover_events import Heard, MemberTimes

if TYPE_CHECKING:
    from tests.sim.upstream.takeover_world import TakeoverWorld

HEARTBEAT_MS = 1_000
PATIENCE_MS = 30_000
_METADATA = encode_subscription(make_subscription(("orders",)), 1)
_LOST_IDS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class SimClient:
    """``at`` is where it believes its coordinator is: "cluster", "muster" or nowhere yet."""

    # More than 15 attributes: what a consumer knows of its membership.

    def __init__(self, world: TakeoverWorld, name: str, *, is_stranger: bool = False) -> None:
        self.world = world
        self.name = name
        self.is_stranger = is_stranger
        self.at = ""
        self.member_id = ""
        self.generation = -1
        self.owned: dict[int, int] = {}
        self.owned_from = ""
        self.is_member = False
        self.waits_until_ms = 0
        self.next_ms = 0
        self.turn = 0
        self.refusals = 0

    def act(self) -> None:
        """Do what is due."""
        now_ms = self.world.now_ms
        if self.waits_until_ms:
            if now_ms < self.waits_until_ms:
                return
            self.forget_coordinator()
        if now_ms < self.next_ms:
            return
        self.next_ms = now_ms + self.world.random.randrange(200, HEARTBEAT_MS)
        if self.world.random.random() < self.world.faults.paused:
            # It reads on after its session has ended, until it hears of that.
            self.next_ms += self.world.random.randrange(30_000)
        if not self._find():
            return
        if not self.is_member:
            self._join()
            return
        for partition in self.owned:
            self.owned[partition] += self.world.random.randrange(3)
        if self.world.random.random() < 0.5:
            self._commit()
        if self.is_member:
            self._heartbeat()

    def forget_coordinator(self) -> None:
        """Look for it again; it stays a member."""
        self.at = ""
        self.waits_until_ms = 0
        self.turn += 1

    def _find(self) -> bool:
        if self.is_stranger:
            self.at = "cluster"
            return True
        world = self.world
        if not world.is_up:
            return False
        if not self.at:
            here = world.place in (Place.TAKING, Place.MUSTER)
            self.at = "muster" if here else "cluster"
        if self.at == "cluster" and world.place in (Place.TAKING, Place.MUSTER):
            self.forget_coordinator()  # NOT_COORDINATOR of the relay
            return False
        if self.at == "muster" and world.place is Place.UPSTREAM:
            self.forget_coordinator()
            return False
        return True

    # ------------------------------------------------------------------------------------- requests

    def _join(self) -> None:
        self.turn += 1
        turn, world = self.turn, self.world
        self.owned = {}
        self.waits_until_ms = world.now_ms + PATIENCE_MS
        if self.at == "cluster":
            if self._is_known_here():
                world.muster.note_gone(self.member_id)
                self.member_id = ""
            world.model.join(
                GROUP,
                self.member_id,
                None,
                self.name,
                {"range": _METADATA},
                lambda joined: self._on_joined(turn, joined),
                10_000,
                15_000,
            )
            return
        if world.place is Place.TAKING:
            world.hold(self)
            self._hear()
            return
        if world.place is Place.RETURNING:
            world.muster.note_gone(self.member_id)
            self.forget_coordinator()
            return
        world.here.join(
            self.member_id,
            world.now_ms,
            lambda code, member_id, generation, partitions: self._on_joined_here(
                turn, code, member_id, generation, partitions
            ),
        )

    def _is_known_here(self) -> bool:
        return not self.is_stranger and self.member_id in self.world.muster.leaving

    def _hear(self) -> None:
        if self.member_id:
            self.world.muster.send(Heard(self.member_id, self.generation))

    def _heartbeat(self) -> None:
        world = self.world
        if self.at == "cluster":
            code = world.model.heartbeat(GROUP, self.member_id, None, self.generation)
            if not self.is_stranger:
                world.muster.known[self.member_id] = MemberTimes(10_000, 15_000)
        elif world.place is Place.TAKING:
            self._hear()
            world.model.heartbeat(GROUP, self.member_id, None, self.generation)
            return
        else:
            code = world.here.heartbeat(self.member_id, self.generation, world.now_ms)
        self._obey(code)

    def _commit(self) -> None:
        if not self.owned:
            return
        world = self.world
        offsets = {("orders", partition): offset for partition, offset in self.owned.items()}
        if self.at == "cluster" or world.place is Place.TAKING:
            code = world.commit(self.member_id, None, self.generation, offsets)
            if self.at == "muster":
                self._hear()
                if code is not ErrorCode.NONE:
                    return
        else:
            code = world.here.check_commit(self.member_id, self.generation)
            seat = world.muster.seat
            if code is ErrorCode.NONE and seat is not None:
                code = world.commit(seat.member_id, "muster", seat.generation, offsets)
                if code is not ErrorCode.NONE:
                    world.note_refused(code)
                    return
            elif code is ErrorCode.NONE:
                return
        self._obey(code)

    # -------------------------------------------------------------------------------------- answers

    def _obey(self, code: ErrorCode) -> None:
        match code:
            case ErrorCode.NONE:
                return
            case ErrorCode.NOT_COORDINATOR:
                self.forget_coordinator()
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.is_member = False
            case _:
                self.is_member = False
                self.owned = {}
                if code in _LOST_IDS:
                    self.member_id = ""

    def _on_joined(self, turn: int, joined: Joined) -> None:
        if turn != self.turn:
            return
        self.waits_until_ms = 0
        if joined.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            self.next_ms = self.world.now_ms
            return
        if joined.code is not ErrorCode.NONE:
            self.refusals += joined.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            self._obey(joined.code)
            return
        self.member_id, self.generation = joined.member_id, joined.generation
        if not self.is_stranger:
            self.world.muster.known[self.member_id] = MemberTimes(10_000, 15_000)
        self.waits_until_ms = self.world.now_ms + PATIENCE_MS
        shares = divide(name for name, _ in joined.members) if joined.members else {}
        assignments = {name: bytes(numbers) for name, numbers in shares.items()}
        self.world.later(lambda: self._sync(turn, assignments))

    def _sync(self, turn: int, assignments: dict[str, bytes]) -> None:
        if turn != self.turn:
            return
        self.world.model.sync(
            GROUP,
            self.member_id,
            None,
            self.generation,
            assignments,
            lambda synced: self._on_synced(turn, synced),
        )

    def _on_synced(self, turn: int, synced: Synced) -> None:
        if turn != self.turn:
            return
        self.waits_until_ms = 0
        if synced.code is ErrorCode.NONE:
            self._gain(tuple(synced.assignment))
        else:
            self._obey(synced.code)

    def _on_joined_here(
        self,
        turn: int,
        code: ErrorCode,
        member_id: str,
        generation: int,
        partitions: tuple[int, ...],
    ) -> None:
        if turn != self.turn:
            return
        self.waits_until_ms = 0
        if code is not ErrorCode.NONE:
            self._obey(code)
            return
        self.member_id, self.generation = member_id, generation
        self._gain(partitions)

    def _gain(self, partitions: tuple[int, ...]) -> None:
        self.is_member = True
        self.owned_from = self.at
        self.owned = {number: self.world.fetch(number) for number in partitions}
