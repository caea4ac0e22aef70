"""Members are seen for as long as their sessions may last."""

from __future__ import annotations

from upstream.relay.groups.seen_members import SeenMember, SeenMembers


def a_member(now: float = 0.0, *, is_joining: bool = False, session_ms: int = 10_000) -> SeenMember:
    return SeenMember("client", session_ms, 60_000, None, now, is_joining)


def test_a_silent_member_is_forgotten_after_its_session() -> None:
    members = SeenMembers()
    members.note("g", "m", a_member())
    assert set(members.find("g", 10.0)) == {"m"}
    members.hear("g", "m", "client", 9.0)
    assert set(members.find("g", 19.0)) == {"m"}
    assert not members.find("g", 19.1)


def test_a_member_that_waits_in_a_join_is_kept_for_the_rebalance() -> None:
    members = SeenMembers()
    assert members.note_join("g", "m", a_member(is_joining=True))
    assert set(members.find("g", 60.0)) == {"m"}
    members.hear("g", "m", "client", 60.0)
    assert not members.find("g", 70.1)


def test_what_a_join_says_of_a_known_member_does_not_count_yet() -> None:
    members = SeenMembers()
    members.note("g", "m", a_member())
    assert not members.note_join("g", "m", a_member(5.0, session_ms=0, is_joining=True))
    member = members.find("g", 5.0)["m"]
    assert (member.session_timeout_ms, member.last_heard_s, member.is_joining) == (
        10_000,
        5.0,
        True,
    )


def test_no_more_members_than_the_limit_are_noted() -> None:
    members = SeenMembers(2)
    for group_id in ("a", "b", "c"):
        members.hear(group_id, "m", "client", 0.0)
    assert not members.find("c", 0.0)
    members.forget("a", "m")
    members.hear("c", "m", "client", 0.0)
    assert set(members.find("c", 0.0)) == {"m"}


def test_a_sweep_forgets_groups_that_nobody_asks_for() -> None:
    members = SeenMembers(600)
    for number in range(600):
        members.hear(f"g{number}", "m", "client", 0.0)
    members.sweep(1_000.0)
    members.sweep(1_000.0)
    for number in range(600):
        members.hear(f"h{number}", "m", "client", 1_000.0)
    assert members.find("h599", 1_000.0)
