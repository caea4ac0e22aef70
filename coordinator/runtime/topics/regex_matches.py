"""What patterns match, found in slices in a lane of their own, one group after another.

A slice is counted in steps of the patterns' programs: one pattern may cost a thousand times what
another does, and a group with the worst of them, and very many topics, takes minutes. Others wait
for one slice of it at a time, and no target waits for patterns at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from coordinator.core.state.metadata_hash import TopicHashes, compute_metadata_hash
from coordinator.core.subscriptions.regex_cost import compute_pattern_cost
from coordinator.core.subscriptions.regex_matching import compute_matches
from coordinator.runtime.clock import Scheduler
from coordinator.runtime.loop.slices import Steps
from model.ids import TopicName
from model.topics import TopicImage

T = TypeVar("T")

SLICE_STEPS: Final = 10_000_000
"""Of the patterns' programs in one slice, a step in up to 10 ns, and mostly a hundredth of that."""

SLICE_TOPICS: Final = 2_000
"""Topics that are hashed in one slice, or asked about, each in some 3 µs."""

KEPT_MAX_BYTES: Final = 64 * 1024 * 1024
"""Of what is kept of all patterns."""

CHANGES_KEPT: Final = 1_000
"""Names that came or went, beside twice as many as there are: patterns follow by them."""

_NAME_BYTES: Final = 64
_PATTERN_BYTES: Final = 512


class MatchingLane:
    """Does the slices of all that is given to it, one after another, in the matching lane."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._jobs: deque[tuple[Steps[Any], Callable[[Any], None]]] = deque()
        self._is_running = False

    def run(self, steps: Steps[T], done: Callable[[T | BaseException], None]) -> None:
        """``done`` gets what ``steps`` come to, or the exception."""
        self._jobs.append((steps, done))
        if not self._is_running:
            self._next()

    def _next(self) -> None:
        self._is_running = bool(self._jobs)
        if self._jobs:
            job = self._jobs.popleft()
            self._scheduler.run_matching(partial(_step, job[0]), partial(self._stepped, job))

    def _stepped(
        self,
        job: tuple[Steps[Any], Callable[[Any], None]],
        result: _Result | BaseException | None,
    ) -> None:
        if result is None:
            self._jobs.append(job)
        self._next()
        if result is not None:
            job[1](result.value if isinstance(result, _Result) else result)


@dataclass(frozen=True, slots=True)
class _Result:
    value: Any


def _step(steps: Steps[Any]) -> _Result | None:
    try:
        next(steps)
    except StopIteration as end:
        return _Result(end.value)
    return None


class Slice:
    """How much of the slice of one piece of work is left."""

    def __init__(self) -> None:
        self._left = SLICE_STEPS

    def match(self, regex: str, names: Iterable[TopicName]) -> Steps[frozenset[TopicName]]:
        """The names that the pattern matches."""
        found: set[TopicName] = set()
        cost = compute_pattern_cost(regex)
        for taken in self._take(names, cost):
            found |= compute_matches(regex, taken)
            if self._left <= 0:
                self._left = SLICE_STEPS
                yield
        return frozenset(found)

    def _take(self, names: Iterable[TopicName], cost: int) -> Iterator[list[TopicName]]:
        taken: list[TopicName] = []
        for name in names:
            taken.append(name)
            self._left -= cost * (len(name) + 1)
            if self._left <= 0:
                yield taken
                taken = []
        yield taken


@dataclass(slots=True)
class _Known:
    """What a pattern matched of the topics at a time. ``at`` is how many images were before."""

    at: int
    topics: frozenset[TopicName]

    @property
    def bytes(self) -> int:
        return _PATTERN_BYTES + _NAME_BYTES * len(self.topics)


class RegexMatches:
    """The topics of each pattern, kept from one image to the next: only what came is matched.

    What changed from one image to the next is kept as well, so that a pattern that is asked for
    follows by itself, in the slices of whoever asks. Used in the matching lane alone.
    """

    def __init__(self) -> None:
        self._image = TopicImage()
        self._known: dict[str, _Known] = {}
        self._bytes = 0
        self._changes: deque[frozenset[TopicName]] = deque()
        self._changed_names = 0
        self._first = 0
        """The number of the image before the first of the changes."""
        self._hashes: TopicHashes = {}

    @property
    def kept_bytes(self) -> int:
        """What is kept of patterns takes about so much."""
        return self._bytes

    def find(
        self, regexes: Iterable[str], image: TopicImage
    ) -> Steps[dict[str, frozenset[TopicName]]]:
        """For each pattern the names that it matches."""
        at = self._follow(image)
        rest = Slice()
        found = {}
        for regex in regexes:
            base: frozenset[TopicName] = frozenset()
            names: Collection[TopicName] = image.by_name
            known = self._known.get(regex)
            if known is not None and min(at, known.at) >= self._first:
                changed = self._changed_between(at, known.at)
                base = known.topics - changed if changed else known.topics
                names = [name for name in changed if name in image.by_name]
            matched = yield from rest.match(regex, names)
            found[regex] = base | matched if matched else base
            self._keep(regex, _Known(at, found[regex]))
        return found

    def _keep(self, regex: str, known: _Known) -> None:
        before = self._known.get(regex)
        if before is not None and before.at > known.at:
            return
        if before is not None:
            del self._known[regex]
            self._bytes -= before.bytes + len(regex)
        self._known[regex] = known
        self._bytes += known.bytes + len(regex)
        while self._bytes > KEPT_MAX_BYTES:
            oldest = next(iter(self._known))
            self._bytes -= self._known.pop(oldest).bytes + len(oldest)

    def _follow(self, image: TopicImage) -> int:
        """Note what has changed; the number of the image."""
        if image is not self._image:
            changed = frozenset(self._image.by_name.keys() ^ image.by_name.keys())
            self._image = image
            self._changes.append(changed)
            self._changed_names += len(changed) + 1
            while self._changed_names > 2 * len(image.by_name) + CHANGES_KEPT:
                # Whoever was not asked for since is matched anew, which takes no longer.
                self._changed_names -= len(self._changes.popleft()) + 1
                self._first += 1
        return self._first + len(self._changes)

    def _changed_between(self, one: int, other: int) -> frozenset[TopicName]:
        begin, end = sorted((one - self._first, other - self._first))
        return frozenset().union(*islice(self._changes, begin, end))

    def find_hashes(
        self, found: Iterable[frozenset[TopicName]], image: TopicImage
    ) -> Steps[TopicHashes]:
        """The hashes of these topics."""
        if len(self._hashes) > 2 * len(image.by_name):
            self._hashes.clear()
        hashes: TopicHashes = {}
        for names in found:
            left = iter(names)
            while taken := list(islice(left, SLICE_TOPICS)):
                compute_metadata_hash(taken, image, self._hashes)
                for name in taken:
                    topic = image.by_name.get(name)
                    if topic is not None:
                        hashes[topic.topic_id] = self._hashes[topic.topic_id]
                if len(taken) == SLICE_TOPICS:
                    yield
        return hashes
