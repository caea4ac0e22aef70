"""Resolves the regular expressions of groups: when, with whose permissions, and off the loop.

All expressions of a group are resolved together: when a member brings a new one, when a topic that
one of them matches is created or deleted, when a member is heard after a change of ACLs, and again
after an interval, because permissions may have changed (KAFKA-18961). Two resolutions of a group
are a minimum interval apart, which doubles while they follow one another. An expression resolves to
the topics that every member using it (of those that sent a heartbeat) may DESCRIBE. Permissions are
not in the log, so after a start a group keeps the topics from the log until one of its members
sends a heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeAlias

import structlog

from coordinator.core.state.consumer.consumer_group import ConsumerGroup, regex_of
from coordinator.core.state.shard import Shard
from coordinator.core.subscriptions.regex_resolution import InstallRegexes
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.clock import Cancellable, Scheduler, SteadyClock
from coordinator.runtime.loop.slices import REFUSED_RETRY_MS, Steps
from coordinator.runtime.topics.regex_matches import SLICE_TOPICS, MatchingLane, RegexMatches, Slice
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError, LogPartitionStopped
from model.ids import GroupId, MemberId, TopicName
from model.topics import TopicImage

log = structlog.get_logger()

LONGEST_INTERVAL_MS = 10_000
"""The longest minimum interval between two resolutions of a group: Kafka's."""

Right: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Principal, host, and further principals such as the scopes of a token."""

_ANYBODY: Right = ("", "", ())
"""Stands for every principal if there is no access control."""


@dataclass(slots=True, eq=False)
class _Group:
    """A group with regular expressions. ``rights`` has each member's expression and principal.

    ``regexes`` and ``asked`` are the expressions, without and with principals, of the last
    resolution, ``asked_at`` the authorizer's version at its beginning.
    """

    rights: dict[MemberId, tuple[str, Right]] = field(default_factory=dict)
    regexes: frozenset[str] = frozenset()
    asked: frozenset[tuple[str, Right]] = frozenset()
    asked_at: int = 0
    began_ms: int | None = None
    interval_ms: int = 0
    is_in_flight: bool = False
    is_due: bool = False
    timer: Cancellable | None = None


class Regexes:
    """Resolves the regular expressions of groups on the matching thread.

    ``find_group`` gives a group by its id, ``image`` the current topics. ``install`` takes the
    result.
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
        self._lane = MatchingLane(scheduler)
        self._groups: dict[GroupId, _Group] = {}
        self._groups_by_regex: dict[str, set[GroupId]] = {}
        self._changed_topics: set[TopicName] = set()
        self._is_looking_at_topics = False
        self._is_stopped = False

    def stop(self) -> None:
        """Resolve nothing more."""
        self._is_stopped = True

    # --------------------------------------------------------------------------------- occasions

    def heard(self, shard: Shard, command: ConsumerGroupHeartbeat) -> None:
        """Note a heartbeat; resolves the group's expressions if this one was not asked for yet."""
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
            caller = command.caller
            right = caller.principal, caller.client_host, caller.groups
            known.rights[command.member_id] = regex, right
        if (regex, right) not in known.asked or known.asked_at != self._compute_version():
            self.request(group.group_id)

    def _compute_version(self) -> int:
        return 0 if self._authorizer is None else self._authorizer.version

    def request(self, group_id: GroupId) -> None:
        """Resolve the group's expressions as soon as allowed."""
        known = self._groups.get(group_id)
        if known is None or known.is_due:
            return
        known.is_due = True
        if not known.is_in_flight:
            self._scheduler.call_soon(lambda: self._look(group_id))

    def topic_changed(self, name: TopicName) -> None:
        """Request a resolution of each group with an expression that matches the changed topic."""
        if not self._groups_by_regex:
            return
        self._changed_topics.add(name)
        if not self._is_looking_at_topics:
            self._is_looking_at_topics = True
            self._scheduler.call_soon(self._look_at_topics)

    def _look_at_topics(self) -> None:
        names, self._changed_topics = self._changed_topics, set()
        self._lane.run(_find_matching(tuple(self._groups_by_regex), names), self._topics_looked_at)

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
        """Start a resolution, or wait until one may start."""
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
        return known.began_ms + known.interval_ms - self._clock.monotonic_ms()

    def _note_begun(self, known: _Group) -> None:
        """Lengthen the interval while a group is resolved again and again.

        Each resolution may write all names that the expressions match, and bump the group epoch.
        """
        least_ms = self._settings.group_consumer_regex_batch_refresh_min_interval_ms
        now_ms, before_ms = self._clock.monotonic_ms(), known.began_ms
        known.began_ms = now_ms
        if before_ms is None or now_ms - before_ms >= 2 * known.interval_ms:
            known.interval_ms = least_ms
        else:
            known.interval_ms = max(min(2 * known.interval_ms, LONGEST_INTERVAL_MS), least_ms)

    def _look_later(self, group_id: GroupId, known: _Group, delay_ms: int) -> None:
        def look() -> None:
            known.is_due = True
            self._look(group_id)

        known.timer = self._scheduler.call_later_ms(delay_ms, look)

    def _begin(self, group: ConsumerGroup, known: _Group) -> None:
        known.is_due = False
        known.is_in_flight = True
        self._note_begun(known)
        known.asked = self._compute_asked(group, known)
        known.asked_at = self._compute_version()
        self._note_regexes(group.group_id, known, frozenset(group.regexes))
        rights: dict[str, list[Right]] = {}
        for regex, right in sorted(known.asked):
            rights.setdefault(regex, []).append(right)
        image, timestamp_ms = self._image(), self._clock.now().wall_ms
        group_id = group.group_id

        def resolve() -> Steps[InstallRegexes]:
            topics = yield from self._resolve(rights, image)
            hashes = yield from self._matches.find_hashes(topics.values(), image)
            return InstallRegexes(group_id, topics, image.version, timestamp_ms, hashes)

        self._lane.run(resolve(), partial(self._resolved, group_id, known))

    def _compute_asked(self, group: ConsumerGroup, known: _Group) -> frozenset[tuple[str, Right]]:
        if self._authorizer is None:
            return frozenset((regex, _ANYBODY) for regex in group.regexes)
        for member_id in [each for each in known.rights if group.member(each) is None]:
            del known.rights[member_id]
        return frozenset(known.rights.values())

    def _resolve(
        self, rights: Mapping[str, list[Right]], image: TopicImage
    ) -> Steps[dict[str, frozenset[TopicName]]]:
        """Runs on the matching thread."""
        found = yield from self._matches.find(rights, image)
        if self._authorizer is None:
            return found
        shown = {}
        for regex, topics in found.items():
            seen: list[TopicName] = []
            left, at_once = iter(topics), SLICE_TOPICS // len(rights[regex]) + 1
            while taken := list(islice(left, at_once)):
                seen += (topic for topic in taken if self._may_describe(topic, rights[regex]))
                if len(taken) == at_once:
                    yield
            shown[regex] = frozenset(seen)
        return shown

    def _may_describe(self, topic: TopicName, rights: Iterable[Right]) -> bool:
        assert self._authorizer is not None, "without an authorizer nothing is asked"
        may_see = self._authorizer.may_see
        return all(
            may_see(
                Caller(principal, "", host, groups), Operation.DESCRIBE, ResourceType.TOPIC, topic
            )
            for principal, host, groups in rights
        )

    def _resolved(
        self, group_id: GroupId, known: _Group, found: InstallRegexes | BaseException
    ) -> None:
        known.is_in_flight = False
        if self._is_stopped:
            return
        if isinstance(found, BaseException):
            log.error("regex_resolution_failed", group_id=group_id, cause=repr(found))
            self._look_later(group_id, known, REFUSED_RETRY_MS)
            return
        self._install(found, partial(self._installed, group_id, known))
        # The ACLs may have changed while they were asked, name by name.
        known.is_due = known.is_due or known.asked_at != self._compute_version()
        if known.is_due:
            self._look(group_id)
        elif known.timer is None:
            interval_ms = self._settings.group_consumer_regex_refresh_interval_ms
            self._look_later(group_id, known, interval_ms)

    def _installed(self, group_id: GroupId, known: _Group, answer: Answer) -> None:
        if isinstance(answer, GroupError) and not isinstance(answer, LogPartitionStopped):
            self._scheduler.call_later_ms(REFUSED_RETRY_MS, lambda: self.request(group_id))

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


def _find_matching(regexes: Iterable[str], names: Collection[TopicName]) -> Steps[list[str]]:
    """The expressions that match any of the names."""
    rest = Slice()
    found = []
    for regex in regexes:
        if (yield from rest.match(regex, names)):
            found.append(regex)
    return found
