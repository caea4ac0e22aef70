"""When patterns are resolved, in whose rights, and what is kept from one time to the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator.core import regex_matching
from coordinator.runtime import regexes as regexes_module
from coordinator.runtime.authorizer import Operation, ResourceType
from coordinator.runtime.regexes import RegexMatches
from model.commands import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.settings import CoordinatorSettings
from model.topics import Topic, TopicImage, compute_image_of, compute_image_without
from tests.sim.server import CALLER, VirtualServer

G = GroupId("g")
SETTINGS = CoordinatorSettings(
    group_consumer_regex_batch_refresh_min_interval_ms=100, assignor_inline_budget_ms=10_000
)


class Rights:
    """``hidden`` topics are hidden from everybody; counts what it is asked, and may break."""

    def __init__(self) -> None:
        self.hidden: set[str] = set()
        self.asked: list[tuple[str, str, Operation, ResourceType, str]] = []
        self.is_broken = False

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        if self.is_broken:
            raise RuntimeError("the authorizer is broken")
        self.asked.append((principal, host, operation, resource_type, resource_name))
        return resource_name not in self.hidden


class RegexServer(VirtualServer):
    """Counts the resolutions that run in the computing lane, each taking some time."""

    def __init__(self, rights: Rights | None = None, **topics: int) -> None:
        if rights is not None:
            self.authorizer = rights
        super().__init__(topics, settings=SETTINGS)
        self.jobs = 0
        self.takes_ms = 0
        self.scheduler.computing_ms = self._begin_job

    def _begin_job(self) -> int:
        self.jobs += 1
        return self.takes_ms

    def say(self, member: str, regex: str, group: GroupId = G) -> None:
        self.submit(
            ConsumerGroupHeartbeat(
                CALLER,
                group,
                MemberId(member),
                0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=(),
                owned=(),
                subscribed_topic_regex=regex,
            )
        )

    def topics_of(self, regex: str) -> set[str] | None:
        groups = {group.group_id: group for group in self.runtime.groups()}
        found = groups[G].resolved_regexes.get(regex)
        return None if found is None else set(found)


@pytest.fixture
def rights() -> Iterator[Rights]:
    return Rights()


def test_joins_of_one_turn_are_resolved_together() -> None:
    server = RegexServer(foo=1, bar=1)
    for member, regex in (("a", "f.*"), ("b", "b.*"), ("c", "f.*")):
        server.say(member, regex)
    server.settle()
    assert server.jobs == 1
    assert (server.topics_of("f.*"), server.topics_of("b.*")) == ({"foo"}, {"bar"})


def test_one_resolution_runs_at_a_time_and_what_came_meanwhile_follows() -> None:
    server = RegexServer(foo=1)
    server.takes_ms = 500
    server.say("a", "f.*")
    server.advance(10)
    server.say("b", ".*")
    server.advance(400)
    assert server.jobs == 1
    server.takes_ms = 0
    server.advance(200)
    assert server.jobs == 2
    assert server.topics_of(".*") == {"foo"}


def test_a_heartbeat_that_says_nothing_new_resolves_nothing() -> None:
    server = RegexServer(foo=1)
    server.say("a", "f.*")
    server.advance(1_000)
    for _ in range(5):
        server.say("a", "f.*")
        server.advance(1_000)
    assert server.jobs == 1


def test_topics_are_matched_off_the_loop_and_only_groups_concerned_are_resolved() -> None:
    server = RegexServer(foo=1)
    for number in range(20):
        server.say("a", "f.*", group=GroupId(f"g{number}"))
    server.say("a", "b.*")
    server.advance(1_000)
    server.jobs = 0
    server.create("bar", 1)
    server.advance(1_000)
    assert server.jobs == 2, "one to match the name, and one for the one group"
    assert server.topics_of("b.*") == {"bar"}


def test_many_topics_at_once_are_one_resolution() -> None:
    server = RegexServer(foo=1)
    server.say("a", "f.*")
    server.advance(1_000)
    server.jobs, server.takes_ms = 0, 20
    for number in range(30):
        server.create(f"f{number}", 1)
    server.advance(1_000)
    assert len(server.topics_of("f.*") or ()) == 31
    assert server.jobs <= 4


def test_the_interval_goes_on_as_long_as_there_are_patterns() -> None:
    server = RegexServer(foo=1)
    server.say("a", "f.*")
    server.settle()
    for _ in range(60):
        server.advance(30_000)
        server.say("a", "f.*")
    assert server.jobs == 1 + 1_800_000 // SETTINGS.group_consumer_regex_refresh_interval_ms
    server.ask(ConsumerGroupLeave(CALLER, G, MemberId("a")))
    server.jobs = 0
    server.advance(3_600_000)
    assert server.jobs == 0


def test_rights_are_asked_for_what_matches_and_as_the_member(rights: Rights) -> None:
    server = RegexServer(rights, foo=1, bar=1, fob=1)
    rights.hidden.add("fob")
    server.say("a", "f.*")
    server.settle()
    assert server.topics_of("f.*") == {"foo"}
    expected = (CALLER.principal, CALLER.client_host, Operation.DESCRIBE, ResourceType.TOPIC)
    assert {asked[:4] for asked in rights.asked} == {expected}
    assert {asked[4] for asked in rights.asked} == {"foo", "fob"}


def test_an_authorizer_that_fails_is_asked_again_and_hides_nothing_meanwhile(
    rights: Rights,
) -> None:
    server = RegexServer(rights, foo=1)
    rights.is_broken = True
    server.say("a", "f.*")
    server.advance(5_000)
    assert server.topics_of("f.*") is None
    assert 4 <= server.jobs <= 7
    rights.is_broken = False
    server.advance(2_000)
    assert server.topics_of("f.*") == {"foo"}


def test_patterns_of_members_that_were_not_heard_from_stay_as_the_log_has_them(
    rights: Rights,
) -> None:
    server = RegexServer(rights, foo=1, bar=1)
    server.say("a", "f.*")
    server.say("b", "b.*")
    server.advance(1_000)
    server.crash(survivors=99)
    rights.hidden.update(("foo", "bar"))
    server.start()
    server.scheduler.computing_ms = lambda: 0
    server.say("a", "f.*")
    server.advance(1_000)
    assert (server.topics_of("f.*"), server.topics_of("b.*")) == (set(), {"bar"})


# ------------------------------------------------------------------------------------- matches


def image_of(*names: str) -> TopicImage:
    return compute_image_of(
        tuple(Topic(TopicName(name), TopicId(name.ljust(16).encode()), 1) for name in names)
    )


def test_matches_follow_the_topics_and_match_only_what_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matched: list[str] = []

    def compute(regex: str, names: object) -> frozenset[TopicName]:
        listed = list(names)  # type: ignore[call-overload]
        matched.extend(listed)
        return regex_matching.compute_matches(regex, listed)

    monkeypatch.setattr(regexes_module, "compute_matches", compute)
    matches = RegexMatches()
    image = image_of("f1", "f2", "b1")
    assert matches.topics_of(["f.*"], image) == {"f.*": {"f1", "f2"}}
    matched.clear()
    assert matches.topics_of(["f.*"], image) == {"f.*": {"f1", "f2"}}
    assert matches.topics_of(["f.*"], image_of("f1", "f3", "b1", "b2")) == {"f.*": {"f1", "f3"}}
    assert sorted(matched) == ["b2", "f3"]
    gone = compute_image_without(image, TopicName("f1"))
    assert matches.topics_of(["f.*", "b.*"], gone) == {"f.*": {"f2"}, "b.*": {"b1"}}


def test_matches_keep_no_more_patterns_than_they_may() -> None:
    matches, image = RegexMatches(), image_of("f1")
    for number in range(2 * regex_matching.KEPT_PATTERNS):
        assert matches.topics_of([f"f{number}"], image) == {
            f"f{number}": {"f1"} if number == 1 else set()
        }
    assert len(matches._known) <= regex_matching.KEPT_PATTERNS + 1


def test_names_that_patterns_match_are_bounded_over_all_patterns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: a thousand patterns kept all names of 20,000 topics each."""
    monkeypatch.setattr(regexes_module, "KEPT_NAMES", 1_000)
    matches = RegexMatches()
    topics = tuple(Topic(TopicName(f"t{n}"), TopicId(n.to_bytes(16, "big")), 1) for n in range(100))
    image = compute_image_of(topics, len(topics))
    for number in range(50):
        found = matches.topics_of((f"t.*|{number}",), image)
        assert [len(names) for names in found.values()] == [100]
        assert sum(map(len, matches._known.values())) <= 1_100
