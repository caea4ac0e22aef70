"""Ownerships of a group's partitions over a time, folded from the log in one pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from coordinator.runtime.as_of.past_owners import PastOwners, Place
from model.ids import LogOffset, LogPartition, TopicName
from model.past.as_of import LogPosition
from model.past.ownerships import Lane, Moment, OwnershipQuestion, Ownerships, OwningMember, Span
from model.topics import TopicImage
from storage.log.group_history import GroupQuestion, LogReads, begin_walk
from storage.log.group_writes import GroupWrite, read_group_writes
from storage.log.trim import HistoryStart


class _State(NamedTuple):
    """What a partition is: its owner and the member that is to have it, by their numbers."""

    owner: OwningMember | None
    target: OwningMember | None
    is_revoking: bool


_NOBODYS = _State(None, None, False)


def read_ownerships(
    log: LogReads,
    question: GroupQuestion,
    asked: OwnershipQuestion,
    start: HistoryStart,
    image: TopicImage,
) -> tuple[LogPosition, Ownerships]:
    """Where the time ends, and who owned what. Raises as ``storage.log.group_history``."""
    walk = begin_walk(log, question, start)
    fold = OwnershipFold(asked, start, image)
    for write in read_group_writes(walk, question.group_id, start):
        fold.apply(write)
    walk.check_whole()
    fold.begin_at(walk.whole_from)
    return walk.position, fold.finish(question.partition)


class OwnershipFold:
    """The last changes of a group. Those before them are folded into the state at ``begin``."""

    def __init__(self, asked: OwnershipQuestion, start: HistoryStart, image: TopicImage) -> None:
        self._asked = asked
        self._start = start
        self._image = image
        self._owners = PastOwners(image)
        self._states: dict[Place, _State] = {}
        self._base: dict[Place, _State] = {}
        self._moments: deque[Moment] = deque()
        self._dropped = 0
        self._changes: deque[tuple[int, Place, _State]] = deque()
        self._begin_offset = start.offset - 1
        self._begin_ms = max(asked.since_ms or -1, start.before_ms)
        self._is_known = False

    def apply(self, write: GroupWrite) -> None:
        """Apply a write; it is a moment if it lies in the time."""
        touched: set[Place] = set()
        owners = self._owners
        for key, value in write.records:
            owners.apply(key, value, touched)
        self._is_known = True
        changed = [(place, state) for place in touched if (state := self._see(place)) is not None]
        is_before = write.last_offset < self._start.offset
        if is_before or (self._asked.since_ms and write.timestamp_ms <= self._asked.since_ms):
            self._base.update(changed)
            self._begin_offset = max(self._begin_offset, write.last_offset)
            return
        number = self._dropped + len(self._moments)
        self._moments.append(
            Moment(
                write.last_offset,
                write.timestamp_ms,
                owners.epoch,
                len(owners.members),
                len(changed),
            )
        )
        self._changes.extend((number, place, state) for place, state in changed)
        most = self._asked.spans_max
        while len(self._moments) > 1 and max(len(self._changes), len(self._moments)) > most:
            self._drop_moment()

    def begin_at(self, whole_from: HistoryStart) -> None:
        """Tell nothing of the time before this position: offsets are missing there."""
        while self._moments and self._moments[0].offset < whole_from.offset:
            self._drop_moment()
        self._begin_ms = max(self._begin_ms, whole_from.before_ms)

    def finish(self, partition: LogPartition) -> Ownerships:
        """The lanes that were asked for, of all that were seen."""
        spans: dict[Place, list[tuple[int, _State]]] = {}
        for place, state in self._base.items():
            if state != _NOBODYS:
                spans[place] = [(-1, state)]
        for number, place, state in self._changes:
            spans.setdefault(place, []).append((number - self._dropped, state))
        named = sorted(((self._name(place), place) for place in spans), key=_get_place)
        if self._asked.after is not None:
            named = [row for row in named if row[0].place > self._asked.after]
        del named[: self._asked.skipped]
        shown = named[: self._asked.lanes_max]
        numbers: dict[OwningMember, int] = {}
        lanes = tuple((lane, _make_spans(spans[place], numbers)) for lane, place in shown)
        position = LogPosition(partition, LogOffset(self._begin_offset), self._begin_ms)
        return Ownerships(
            position,
            tuple(numbers),
            tuple(self._moments),
            lanes,
            len(named) > len(shown),
            self._is_known,
        )

    def _see(self, place: Place) -> _State | None:
        """What a partition is now; ``None`` if it is what it was."""
        owners = self._owners
        owner, target = owners.owners.get(place), owners.targets.get(place)
        state = _State(
            None if owner is None else owners.find_member(owner),
            None if target is None else owners.find_member(target),
            place in owners.revoking,
        )
        before = self._states.get(place, _NOBODYS)
        if _get_ids(before) == _get_ids(state):
            return None
        if state == _NOBODYS:
            del self._states[place]
        else:
            self._states[place] = state
        return state

    def _drop_moment(self) -> None:
        moment = self._moments.popleft()
        changes = self._changes
        while changes and changes[0][0] == self._dropped:
            _, place, state = changes.popleft()
            self._base[place] = state
        self._dropped += 1
        self._begin_offset = max(self._begin_offset, moment.offset)
        self._begin_ms = max(self._begin_ms, moment.timestamp_ms)

    def _name(self, place: Place) -> Lane:
        topic, partition = place
        if isinstance(topic, str):
            return Lane(TopicName(topic), None, partition)
        known = self._image.by_id.get(topic)
        return Lane(TopicName("") if known is None else known.name, topic, partition)


def _get_place(row: tuple[Lane, Place]) -> tuple[str, str, int]:
    return row[0].place


def _get_ids(state: _State) -> tuple[str | None, str | None, bool]:
    owner, target, is_revoking = state
    return owner and owner.member_id, target and target.member_id, is_revoking


def _make_spans(
    states: Iterable[tuple[int, _State]], numbers: dict[OwningMember, int]
) -> tuple[Span, ...]:
    def number(member: OwningMember | None) -> int:
        return -1 if member is None else numbers.setdefault(member, len(numbers))

    return tuple(
        (moment, number(state.owner), number(state.target), state.is_revoking)
        for moment, state in states
    )
