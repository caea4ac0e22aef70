"""When regular expressions are resolved, with whose permissions, and what is cached."""

from __future__ import annotations

import re
from collections import deque

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, sets, tuples

from coordinator.core.subscriptions import regex_matching
from coordinator.runtime.loop.slices import Steps, run_at_once
from coordinator.runtime.topics import regex_matches
from coordinator.runtime.topics import regex_schedule as regexes_module
from coordinator.runtime.topics.regex_matches import RegexMatches
from model.access.acls import Operation, ResourceType
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.topics import Topic, TopicImage, compute_image_of, compute_image_without
from tests.support.authorizers import Question, Right, Rights
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
SETTINGS = CoordinatorSettings(
    group_consumer_regex_batch_refresh_min_interval_ms=100, assignor_inline_budget_ms=10_000
)


def describe(topic: str) -> Right:
    """The permission that a member needs to see a topic."""
    return Operation.DESCRIBE, ResourceType.TOPIC, topic


def break_down(asked: Question) -> bool:
    raise RuntimeError("the authorizer is broken")


class RegexServer(VirtualServer):
    """Counts the resolutions on the matching thread, each of which takes some time."""

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
def rights() -> Rights:
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
    rights.denied.add(describe("fob"))
    server.say("a", "f.*")
    server.settle()
    assert server.topics_of("f.*") == {"foo"}
    expected = (CALLER.principal, CALLER.client_host, Operation.DESCRIBE, ResourceType.TOPIC)
    assert {asked[:4] for asked in rights.asked} == {expected}
    assert {asked.resource_name for asked in rights.asked} == {"foo", "fob"}


def test_an_authorizer_that_fails_is_asked_again_and_hides_nothing_meanwhile(
    rights: Rights,
) -> None:
    server = RegexServer(rights, foo=1)
    rights.is_denied = break_down
    server.say("a", "f.*")
    server.advance(5_000)
    assert server.topics_of("f.*") is None
    assert 4 <= server.jobs <= 7
    rights.is_denied = lambda asked: False
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
    rights.denied.update((describe("foo"), describe("bar")))
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


def find(matches: RegexMatches, regexes: list[str], image: TopicImage) -> dict[str, set[str]]:
    found = run_at_once(matches.find(regexes, image))
    return {regex: set(topics) for regex, topics in found.items()}


def test_matches_follow_the_topics_and_match_only_what_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matched: list[str] = []

    def compute(regex: str, names: list[TopicName]) -> frozenset[TopicName]:
        matched.extend(names)
        return regex_matching.compute_matches(regex, names)

    monkeypatch.setattr(regex_matches, "compute_matches", compute)
    matches = RegexMatches()
    image = image_of("f1", "f2", "b1")
    assert find(matches, ["f.*"], image) == {"f.*": {"f1", "f2"}}
    matched.clear()
    assert find(matches, ["f.*"], image) == {"f.*": {"f1", "f2"}}
    assert find(matches, ["f.*"], image_of("f1", "f3", "b1", "b2")) == {"f.*": {"f1", "f3"}}
    assert sorted(matched) == ["b2", "f3"]
    gone = compute_image_without(image, TopicName("f1"))
    assert find(matches, ["f.*", "b.*"], gone) == {"f.*": {"f2"}, "b.*": {"b1"}}


@given(
    steps=lists(
        tuples(
            sampled_from(["f.*", "b.*", ".*1", "x"]), sets(sampled_from(["f1", "f2", "b1", "b2"]))
        ),
        max_size=8,
    ),
    turns=lists(integers(0, 7), max_size=60),
    keeps=sampled_from([0, 1_100, 1 << 20]),
)
def test_matches_are_those_of_their_image_whoever_else_asks_meanwhile(
    steps: list[tuple[str, set[str]]], turns: list[int], keeps: int
) -> None:
    """Slices of several groups alternate, each with the topics of its own start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regex_matches, "SLICE_STEPS", 1)
        patch.setattr(regex_matches, "KEPT_MAX_BYTES", keeps)
        matches = RegexMatches()
        waiting: deque[tuple[str, set[str], Steps[dict[str, frozenset[TopicName]]]]] = deque()
        for regex, names in steps:
            work = matches.find([regex, ".*2"], image_of(*sorted(names)))
            waiting.append((regex, names, work))
        order = iter(turns)
        while waiting:
            waiting.rotate(next(order, 0))
            regex, names, work = waiting[0]
            try:
                next(work)
            except StopIteration as end:
                waiting.popleft()
                found = end.value
            else:
                continue
            for each in (regex, ".*2"):
                assert found[each] == {n for n in names if re.fullmatch(each, n)}
        assert matches.kept_bytes <= keeps


def test_matches_keep_no_more_bytes_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_matches, "KEPT_MAX_BYTES", 100_000)
    names = [f"f{number}" for number in range(100)]
    matches, image = RegexMatches(), image_of(*names)
    for number in range(100):
        find(matches, [f"f.*|{number}"], image)
        assert matches.kept_bytes <= 100_000
    assert 10 < len(matches._known) < 20
    for number in range(50):
        find(matches, ["none"], image_of(*names, f"g{number}"))
    assert matches._changed_names <= 2 * 101 + 1_000


@pytest.mark.parametrize("pattern", ["fN", "|".join(["f.*f.*N"] * 20)])
def test_programs_keep_no_more_bytes_than_they_may(pattern: str) -> None:
    """The cache holds a number of programs of limited size; a costly one counts as several."""
    caches = {
        regex_matching.SMALL_PROGRAM_MAX_BYTES: regex_matching._find_small,
        regex_matching.PROGRAM_MAX_BYTES: regex_matching._find_large,
    }
    limit = regex_matching.KEPT_PROGRAMS_MAX_BYTES
    for number in range(600):
        regex_matching.check_regex(pattern.replace("N", str(number)), 4_096)
        for size, cache in caches.items():
            assert cache.cache_info().currsize * size <= limit


# ------------------------------------------------------------------------------------ the lane


def test_a_costly_pattern_of_one_group_does_not_delay_those_of_others() -> None:
    server = RegexServer(None, **{f"t{number:04d}": 1 for number in range(3_000)})
    server.takes_ms = 1
    for number in range(6):
        evil = "(.*){1,900}" + "x" * number
        server.say("m", evil, group=GroupId(f"evil{number}"))
    server.say("a", "t0001|t0002")
    jobs = server.jobs
    while server.topics_of("t0001|t0002") is None:
        server.advance(1)
    assert server.jobs - jobs <= 3 * 7
    assert server.runtime.parts.regexes._lane._jobs, "the others go on"


def test_no_target_waits_for_patterns() -> None:
    server = RegexServer(None, **{f"t{number:04d}": 1 for number in range(1_000)})
    server.takes_ms = 50
    server.say("m", "(.*){1,900}", group=GroupId("evil"))
    server.settle()
    began_ms = server.scheduler.now_ms
    computed: list[int] = []
    server.scheduler.run_computing(lambda: None, lambda _: computed.append(server.scheduler.now_ms))
    server.advance(200)
    assert computed == [began_ms + 50]


def test_topics_that_come_one_after_another_are_written_less_and_less_often() -> None:
    """Bug: all names were written for each new topic, ten times a second."""
    server = RegexServer(foo=1)
    server.say("a", ".*")
    server.advance(1_000)
    server.jobs = 0
    for number in range(300):
        server.create(f"t{number}", 1)
        server.advance(100)
    resolved = server.jobs - 300
    assert resolved <= 7 + 30_000 // regexes_module.LONGEST_INTERVAL_MS + 1
    for _ in range(2):
        server.say("a", ".*")
        server.advance(20_000)
    assert len(server.topics_of(".*") or ()) == 301
    server.create("last", 1)
    server.advance(1)
    assert len(server.topics_of(".*") or ()) == 302
