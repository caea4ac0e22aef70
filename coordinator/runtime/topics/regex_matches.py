"""Matches regular expressions against topic names in slices, on a thread of their own.

Slices are measured in steps of the compiled expressions: one expression may cost a thousand times
another, and the worst ones over very many topics take minutes. Groups take turns slice by slice,
and no target computation ever waits for a match.
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
"""Match steps per slice. A step takes up to 10 ns, usually a hundredth of that."""

SLICE_TOPICS: Final = 2_000
"""Topics hashed or authorized per slice, each in some 3 µs."""

KEPT_MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit of the cache of all expressions."""

CHANGES_KEPT: Final = 1_000
"""Limit of the cached topic changes, beyond twice the number of topics."""

_NAME_BYTES: Final = 64
_PATTERN_BYTES: Final = 512


class MatchingLane:
    """Runs jobs on the matching thread, one slice of each in turn."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._jobs: deque[tuple[Steps[Any], Callable[[Any], None]]] = deque()
        self._is_running = False

    def run(self, steps: Steps[T], done: Callable[[T | BaseException], None]) -> None:
        """Run ``steps``; ``done`` gets its result or its exception."""
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
    """The budget left in the current slice of one job."""

    def __init__(self) -> None:
        self._left = SLICE_STEPS

    def match(self, regex: str, names: Iterable[TopicName]) -> Steps[frozenset[TopicName]]:
        """The names that the expression matches."""
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
    """The topics that an expression matched; ``at`` is the number of the topic image."""

    at: int
    topics: frozenset[TopicName]

    @property
    def bytes(self) -> int:
        return _PATTERN_BYTES + _NAME_BYTES * len(self.topics)


class RegexMatches:
    """Caches the topics of each expression across images: only new topics are matched.

    The changes between images are cached too. An expression catches up when it is next requested,
    in the requester's slices. Used on the matching thread only.
    """

    def __init__(self) -> None:
        self._image = TopicImage()
        self._known: dict[str, _Known] = {}
        self._bytes = 0
        self._changes: deque[frozenset[TopicName]] = deque()
        self._changed_names = 0
        self._first = 0
        """The number of the image before the first cached change."""
        self._hashes: TopicHashes = {}

    @property
    def kept_bytes(self) -> int:
        """The approximate size of the cache."""
        return self._bytes

    def find(
        self, regexes: Iterable[str], image: TopicImage
    ) -> Steps[dict[str, frozenset[TopicName]]]:
        """The matching topic names of each expression."""
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
        """Note the changes of a new image; returns the image's number."""
        if image is not self._image:
            changed = frozenset(self._image.by_name.keys() ^ image.by_name.keys())
            self._image = image
            self._changes.append(changed)
            self._changed_names += len(changed) + 1
            while self._changed_names > 2 * len(image.by_name) + CHANGES_KEPT:
                # An expression not requested since then is matched from scratch, which costs no
                # more.
                self._changed_names -= len(self._changes.popleft()) + 1
                self._first += 1
        return self._first + len(self._changes)

    def _changed_between(self, one: int, other: int) -> frozenset[TopicName]:
        begin, end = sorted((one - self._first, other - self._first))
        return frozenset().union(*islice(self._changes, begin, end))

    def find_hashes(
        self, found: Iterable[frozenset[TopicName]], image: TopicImage
    ) -> Steps[TopicHashes]:
        """The metadata hashes of these topics."""
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
