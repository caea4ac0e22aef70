"""Patterns of groups: when they are resolved, in whose rights, and that this is off the loop.

A group's patterns are resolved together: when a member brings a new one, when a topic that one of
them matches comes or goes, and again after an interval, for rights may have changed (KAFKA-18961).
Between two resolutions of a group there is a least time. Who may describe what is asked in the
rights of all members of a pattern that were heard from: what one of them may not see none of
them gets by it. Rights are not in the log, so that a group is not resolved after a start before
one of its members is heard from; it goes on with what the log has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import structlog

from coordinator.core.consumer_group import ConsumerGroup, regex_of
from coordinator.core.metadata_hash import TopicHashes, compute_metadata_hash
from coordinator.core.regex_matching import KEPT_PATTERNS, compute_matches
from coordinator.core.regex_resolution import InstallRegexes
from coordinator.core.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.authorizer import AllowAll, Authorizer, Operation, ResourceType
from coordinator.runtime.clock import Cancellable, Scheduler, SteadyClock
from model.commands import ConsumerGroupHeartbeat
from model.errors import GroupError
from model.ids import GroupId, MemberId, TopicName
from model.settings import CoordinatorSettings
from model.topics import TopicImage

log = structlog.get_logger()

RETRY_MS = 1_000

KEPT_NAMES = 1_000_000
"""So many names that patterns match are kept, all patterns together: some 64 MiB."""

Right: TypeAlias = tuple[str, str]
"""Principal and host."""

_ANYBODY: Right = ("", "")
"""Stands for all, where all may do everything."""


class RegexMatches:
    """The topics of each pattern, kept from one image to the next: only what came is matched."""

    def __init__(self) -> None:
        self._image = TopicImage()
        self._known: dict[str, frozenset[TopicName]] = {}
        self._hashes: TopicHashes = {}

    def topics_of(
        self, regexes: Iterable[str], image: TopicImage
    ) -> dict[str, frozenset[TopicName]]:
        """For each pattern the names that it matches."""
        self._follow(image)
        if len(self._known) > KEPT_PATTERNS or sum(map(len, self._known.values())) > KEPT_NAMES:
            self._known.clear()
        found = {}
        for regex in regexes:
            topics = self._known.get(regex)
            if topics is None:
                topics = self._known[regex] = compute_matches(regex, image.by_name)
            found[regex] = topics
        return found

    def compute_hashes(
        self, found: Collection[frozenset[TopicName]], image: TopicImage
    ) -> TopicHashes:
        """The hashes of these topics."""
        for topics in found:
            compute_metadata_hash(topics, image, self._hashes)
        return {
            topic.topic_id: self._hashes[topic.topic_id]
            for topics in found
            for topic in map(image.by_name.get, topics)
            if topic is not None
        }

    def _follow(self, image: TopicImage) -> None:
        if image is self._image:
            return
        old, new = self._image.by_name.keys(), image.by_name.keys()
        come, gone = new - old, old - new
        for regex, topics in self._known.items():
            matched = compute_matches(regex, come)
            if matched or not topics.isdisjoint(gone):
                self._known[regex] = (topics - gone) | matched
        self._image = image


@dataclass(slots=True, eq=False)
class _Group:
    """A group with patterns. ``rights`` are those of its members, each with its pattern.

    ``regexes`` and ``asked`` are the patterns, and the rights with them, of the last resolution.
    """

    rights: dict[MemberId, tuple[str, Right]] = field(default_factory=dict)
    regexes: frozenset[str] = frozenset()
    asked: frozenset[tuple[str, Right]] = frozenset()
    began_ms: int | None = None
    is_in_flight: bool = False
    is_due: bool = False
    timer: Cancellable | None = None


class Regexes:
    """Resolves the patterns of groups in the computing lane.

    ``find_group`` gives a group by its id, ``image`` the topics as they are. ``install`` takes
    what was found.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: SteadyClock,
        settings: CoordinatorSettings,
        authorizer: Authorizer,
        *,
        find_group: Callable[[GroupId], ConsumerGroup | None],
        image: Callable[[], TopicImage],
        install: Callable[[InstallRegexes, Reply], None],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._settings = settings
        self._authorizer = None if isinstance(authorizer, AllowAll) else authorizer
        self._find_group = find_group
        self._image = image
        self._install = install
        self._matches = RegexMatches()
        self._groups: dict[GroupId, _Group] = {}
        self._groups_by_regex: dict[str, set[GroupId]] = {}
        self._changed_topics: set[TopicName] = set()
        self._is_looking_at_topics = False
        self._is_stopped = False

    def stop(self) -> None:
        """Resolve nothing any more."""
        self._is_stopped = True

    # --------------------------------------------------------------------------------- occasions

    def heard(self, shard: Shard, command: ConsumerGroupHeartbeat) -> None:
        """A member sent a heartbeat; the first of a group with patterns has them resolved."""
        group = shard.consumer_groups.get(command.group_id)
        if group is None or not group.regexes:
            return
        member = group.member(command.member_id)
        regex = regex_of(member.metadata) if member is not None else ""
        if not regex:
            return
        known = self._groups.setdefault(group.group_id, _Group())
        right = _ANYBODY
        if self._authorizer is not None:
            right = command.caller.principal, command.caller.client_host
            known.rights[command.member_id] = regex, right
        if (regex, right) not in known.asked:
            self.request(group.group_id)

    def request(self, group_id: GroupId) -> None:
        """Resolve the patterns of the group as soon as may be."""
        known = self._groups.get(group_id)
        if known is None or known.is_due:
            return
        known.is_due = True
        if not known.is_in_flight:
            self._scheduler.call_soon(lambda: self._look(group_id))

    def topic_changed(self, name: TopicName) -> None:
        """A topic came, grew or went: groups whose patterns match its name are to look."""
        if not self._groups_by_regex:
            return
        self._changed_topics.add(name)
        if not self._is_looking_at_topics:
            self._is_looking_at_topics = True
            self._scheduler.call_soon(self._look_at_topics)

    def _look_at_topics(self) -> None:
        names, self._changed_topics = self._changed_topics, set()
        regexes = tuple(self._groups_by_regex)
        self._scheduler.run_computing(
            lambda: [regex for regex in regexes if compute_matches(regex, names)],
            self._topics_looked_at,
        )

    def _topics_looked_at(self, found: list[str] | BaseException) -> None:
        self._is_looking_at_topics = False
        if isinstance(found, BaseException):
            log.error("matching_topics_failed", cause=repr(found))
            found = list(self._groups_by_regex)
        for regex in found:
            for group_id in sorted(self._groups_by_regex.get(regex, ())):
                self.request(group_id)
        if self._changed_topics:
            self._is_looking_at_topics = True
            self._look_at_topics()

    # --------------------------------------------------------------------------------- resolving

    def _look(self, group_id: GroupId) -> None:
        """Begin, or wait until it may begin."""
        known = self._groups.get(group_id)
        if self._is_stopped or known is None or known.is_in_flight or not known.is_due:
            return
        if known.timer is not None:
            known.timer.cancel()
            known.timer = None
        group = self._find_group(group_id)
        if group is None or not group.regexes:
            self._forget(group_id, known)
            return
        wait_ms = self._compute_wait_ms(known)
        if wait_ms > 0:
            self._look_later(group_id, known, wait_ms)
        else:
            self._begin(group, known)

    def _compute_wait_ms(self, known: _Group) -> int:
        if known.began_ms is None:
            return 0
        interval_ms = self._settings.group_consumer_regex_batch_refresh_min_interval_ms
        return known.began_ms + interval_ms - self._clock.monotonic_ms()

    def _look_later(self, group_id: GroupId, known: _Group, delay_ms: int) -> None:
        def look() -> None:
            known.is_due = True
            self._look(group_id)

        known.timer = self._scheduler.call_later_ms(delay_ms, look)

    def _begin(self, group: ConsumerGroup, known: _Group) -> None:
        known.is_due = False
        known.is_in_flight = True
        known.began_ms = self._clock.monotonic_ms()
        known.asked = self._compute_asked(group, known)
        self._note_regexes(group.group_id, known, frozenset(group.regexes))
        rights: dict[str, list[Right]] = {}
        for regex, right in sorted(known.asked):
            rights.setdefault(regex, []).append(right)
        image, timestamp_ms = self._image(), self._clock.now().wall_ms
        group_id = group.group_id

        def resolve() -> InstallRegexes:
            topics = self._resolve(rights, image)
            hashes = self._matches.compute_hashes(topics.values(), image)
            return InstallRegexes(group_id, topics, image.version, timestamp_ms, hashes)

        self._scheduler.run_computing(resolve, partial(self._resolved, group_id, known))

    def _compute_asked(self, group: ConsumerGroup, known: _Group) -> frozenset[tuple[str, Right]]:
        if self._authorizer is None:
            return frozenset((regex, _ANYBODY) for regex in group.regexes)
        for member_id in [each for each in known.rights if group.member(each) is None]:
            del known.rights[member_id]
        return frozenset(known.rights.values())

    def _resolve(
        self, rights: Mapping[str, list[Right]], image: TopicImage
    ) -> dict[str, frozenset[TopicName]]:
        """Runs in the computing lane."""
        found = self._matches.topics_of(rights, image)
        authorizer = self._authorizer
        if authorizer is None:
            return found
        return {
            regex: frozenset(
                topic
                for topic in topics
                if all(
                    authorizer.authorize(
                        principal, host, Operation.DESCRIBE, ResourceType.TOPIC, topic
                    )
                    for principal, host in rights[regex]
                )
            )
            for regex, topics in found.items()
        }

    def _resolved(
        self, group_id: GroupId, known: _Group, found: InstallRegexes | BaseException
    ) -> None:
        known.is_in_flight = False
        if self._is_stopped:
            return
        if isinstance(found, BaseException):
            log.error("resolving_patterns_failed", group_id=group_id, cause=repr(found))
            self._look_later(group_id, known, RETRY_MS)
            return
        self._install(found, partial(self._installed, group_id, known))
        if known.is_due:
            self._look(group_id)
        elif known.timer is None:
            interval_ms = self._settings.group_consumer_regex_refresh_interval_ms
            self._look_later(group_id, known, interval_ms)

    def _installed(self, group_id: GroupId, known: _Group, answer: Answer) -> None:
        if isinstance(answer, GroupError):
            self._scheduler.call_later_ms(RETRY_MS, lambda: self.request(group_id))

    # ----------------------------------------------------------------------------------- groups

    def _note_regexes(self, group_id: GroupId, known: _Group, regexes: frozenset[str]) -> None:
        for regex in known.regexes - regexes:
            groups = self._groups_by_regex[regex]
            groups.discard(group_id)
            if not groups:
                del self._groups_by_regex[regex]
        for regex in regexes - known.regexes:
            self._groups_by_regex.setdefault(regex, set()).add(group_id)
        known.regexes = regexes

    def _forget(self, group_id: GroupId, known: _Group) -> None:
        self._note_regexes(group_id, known, frozenset())
        del self._groups[group_id]
