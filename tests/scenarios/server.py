"""The server of a scenario: it notes what is written, and which deadlines change."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.runtime.targets.client_assignments import Offer
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId
from model.log.records import Record
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import PartitionAppend, pack_latest
from tests.support.authorizers import Rights
from tests.support.memory import MemoryLogStore
from tests.support.virtual.disk import SimDisk, Write
from tests.support.virtual.server import VirtualServer

Deadlines = dict[str, int]


class ScenarioServer(VirtualServer):
    """A ``VirtualServer`` on a disk whose writes are kept until they are taken."""

    store: SimDisk  # type: ignore[assignment]

    def __init__(self, settings: CoordinatorSettings) -> None:
        self.written: list[Write] = []
        disk = SimDisk(
            MemoryLogStore(4),
            on_write=self.written.append,
            on_sync=lambda writes: None,
            is_stalled=lambda: False,
        )
        self._deadlines: Deadlines = {}
        self._offers: dict[tuple[str, str], Offer] = {}
        self._asked: list[str] = []
        self._hidden: set[tuple[str, str]] = set()
        self.authorizer = Rights(
            is_denied=lambda asked: (asked.principal, asked.resource_name) in self._hidden
        )
        super().__init__(settings=settings, store=disk)  # type: ignore[arg-type]

    def crash(self, survivors: int = 0) -> None:
        """The process dies; of what was not synced the first ``survivors`` writes stay."""
        self.scheduler.drop_all()
        self.store.crash(min(survivors, self.store.unsynced))

    def hide(self, topic: str, principal: str) -> None:
        self._hidden.add((principal, topic))

    def show(self, topic: str, principal: str) -> None:
        self._hidden.discard((principal, topic))

    def offer(self, group_id: str, member_id: str) -> None:
        """A door holds a stream of the member."""
        self._offers[group_id, member_id] = self.runtime.client_assignments.offer(
            GroupId(group_id),
            MemberId(member_id),
            lambda: self._asked.append(f"{group_id}/{member_id}"),
        )

    def withdraw(self, group_id: str, member_id: str) -> None:
        """The stream is gone."""
        self._offers.pop((group_id, member_id)).withdraw()

    def take_asked(self) -> list[str]:
        """Who was asked for an assignment since this was called last."""
        asked = list(self._asked)
        self._asked.clear()
        return asked

    def import_records(self, group_id: GroupId, records: Sequence[Record]) -> None:
        """The log gets the records while no process runs; another one starts on it."""
        partition = self.runtime.partition_of(group_id)
        self.crash(self.store.unsynced)
        offset, now_ms = self.store.next_offset(partition), self.scheduler.wall_ms()
        pairs = [
            (encode_key(key), None if value is None else encode_value(value))
            for key, value in records
        ]
        latest = {
            key: None if value is None else pack_latest(offset + place, now_ms, value)
            for place, (key, value) in enumerate(pairs)
        }
        batch = encode_batch(offset, pairs, now_ms)
        self.store.write([PartitionAppend(partition, offset, batch, len(pairs), latest)])
        self.store.sync()
        self.written.clear()
        self.start()

    def take_written(self) -> list[Write]:
        """What was written since this was called last."""
        written = list(self.written)
        self.written.clear()
        return written

    def take_deadlines(self) -> dict[str, int | None]:
        """Deadlines that changed since this was called last, in ms of virtual time.

        ``None`` for one that is gone. A heartbeat that only renews a session changes its
        deadline too.
        """
        now = self._compute_deadlines()
        names = sorted({*now, *self._deadlines})
        changed = {
            name: now.get(name) for name in names if now.get(name) != self._deadlines.get(name)
        }
        self._deadlines = now
        return changed

    def _compute_deadlines(self) -> Deadlines:
        liveness = self.runtime.liveness
        stalled_ms = liveness.stalls.stalled_ms
        found: Deadlines = {}
        for group in self.runtime.groups():
            for member in group.members():
                entry = liveness.get(group.group_id, member.member_id)
                name = f"{group.group_id}/{member.member_id}"
                if entry is not None:
                    deadline_ms = liveness.session_deadline_ms(entry)
                    found[f"session {name}"] = deadline_ms + stalled_ms
                    if entry.rebalance is not None:
                        found[f"rebalance {name}"] = entry.rebalance.at_ms + stalled_ms
        for (group_id, name, member_id), at_ms in liveness.classic.all().items():
            found[f"{name.lower()} {group_id}/{member_id}"] = at_ms + stalled_ms
        return found
