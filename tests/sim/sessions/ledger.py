"""What applications saw acknowledged, against what the log has: no offset goes back or is lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from model.log.records import OffsetCommitKey
from tests.sim.sessions.verdicts import check
from tests.support.virtual.disk import Write


class Place(NamedTuple):
    """Whose offset of which partition."""

    group: str
    topic: str
    partition: int


@dataclass(slots=True)
class Acknowledged:
    """The highest commit that its application knows to be durable, and whose it was."""

    offset: int
    who: str


@dataclass
class Ledger:
    """``written`` is what the log comes to, ``acknowledged`` what was promised of it.

    Each topic has an incarnation; between the request that deletes it and the answer that it is
    there again nothing of it counts, as nobody can know which one a commit met.
    """

    written: dict[Place, int] = field(default_factory=dict)
    acknowledged: dict[Place, Acknowledged] = field(default_factory=dict)
    incarnations: dict[str, int] = field(default_factory=dict)
    in_limbo: set[str] = field(default_factory=set)
    commits: int = 0

    def note_write(self, write: Write) -> None:
        """Checks each offset as it is written; a crash may take it back, but not an older one."""
        for record in write.records:
            key, value = record
            if not isinstance(key, OffsetCommitKey):
                continue
            place = Place(str(key.group), str(key.topic), key.partition)
            if value is None:
                self.written.pop(place, None)
            else:
                self.written[place] = value.offset  # type: ignore[union-attr]
            self._check(place, "S15", "is written")

    def rebuild(self, writes: Iterable[Write]) -> None:
        """After a crash: all that was acknowledged is there (S11)."""
        self.written.clear()
        for write in writes:
            for key, value in write.records:
                if isinstance(key, OffsetCommitKey):
                    place = Place(str(key.group), str(key.topic), key.partition)
                    if value is None:
                        self.written.pop(place, None)
                    else:
                        self.written[place] = value.offset  # type: ignore[union-attr]
        for place in self.acknowledged:
            self._check(place, "S11", "is left after a crash")

    def incarnation(self, topic: str) -> int | None:
        """Which topic of this name it is; ``None`` where nobody knows."""
        return None if topic in self.in_limbo else self.incarnations.get(topic, 0)

    def note_acknowledged(
        self, place: Place, offset: int, incarnation: int | None, who: str
    ) -> None:
        """A commit has returned to its application, without an error."""
        self.commits += 1
        if incarnation is None or incarnation != self.incarnation(place.topic):
            return
        known = self.acknowledged.get(place)
        if known is None or known.offset < offset:
            self.acknowledged[place] = Acknowledged(offset, who)
        self._check(place, "S15", "is in the log as a commit returns")

    def highest(self, place: Place) -> int:
        """No fetch may say less from now on."""
        known = self.acknowledged.get(place)
        return 0 if known is None else known.offset

    def check_fetched(
        self, place: Place, offset: int | None, at_least: int, incarnation: int | None, who: str
    ) -> None:
        """S20: what was acknowledged before the fetch began is what it says, or more was."""
        if incarnation is not None and incarnation == self.incarnation(place.topic):
            what = f"{who} is told {offset} of {place}, and {at_least} was acknowledged before"
            check((offset or 0) >= at_least, "S20", what)

    def begin_deletion(self, topic: str) -> None:
        """From here on anything may become of its offsets."""
        self.in_limbo.add(topic)
        for place in [place for place in self.acknowledged if place.topic == topic]:
            del self.acknowledged[place]

    def note_created(self, topic: str) -> None:
        """It is another topic, and there."""
        self.incarnations[topic] = self.incarnations.get(topic, 0) + 1
        self.in_limbo.discard(topic)

    def _check(self, place: Place, name: str, how: str) -> None:
        known = self.acknowledged.get(place)
        if known is None or place.topic in self.in_limbo:
            return
        found = self.written.get(place)
        check(
            found is not None and found >= known.offset,
            name,
            f"{place}: {found} {how}, and {known.who} saw {known.offset} acknowledged",
        )
