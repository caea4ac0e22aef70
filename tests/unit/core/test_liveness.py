"""Deadlines as data: buckets, replacement, and the clock that stops during stalls."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.deadlines.classic_deadlines import FAR_MS
from coordinator.core.deadlines.liveness import LOOKS_MAX, Liveness
from coordinator.core.deadlines.stalls import GRACE_MS, PARDON_AGAIN_MS
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline
from model.commands.consumer import Deadline, ExpireMember
from model.ids import GroupId, MemberId

G, H = GroupId("g"), GroupId("h")
A, B = MemberId("a"), MemberId("b")
TIMEOUT_MS = 1_000


def due(liveness: Liveness, now_ms: int) -> list[tuple[str, Deadline]]:
    return [(command.member_id, command.deadline) for command in liveness.due(now_ms)]


def test_a_deadline_comes_once_and_not_early() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 50)
    at_ms = liveness.next_deadline_ms()
    assert at_ms is not None
    assert 950 <= at_ms <= 1_050
    assert due(liveness, 1_049) == []
    assert liveness.next_deadline_ms() == 1_050
    assert due(liveness, 1_050) == [("a", Deadline.SESSION)]
    assert due(liveness, 9_999) == []
    assert liveness.get(G, A) is None


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), st.sampled_from("abc")),
        st.tuples(st.just("arm"), st.sampled_from("abc"), st.integers(-1, 450)),
        st.tuples(st.just("cancel"), st.sampled_from("abc")),
        st.tuples(st.just("remove"), st.sampled_from("abc")),
        st.tuples(st.just("pass"), st.integers(0, 350)),
        st.tuples(st.just("pass"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(ACTS)
def test_every_deadline_falls_when_it_is_due_and_not_a_millisecond_later(
    acts: list[tuple[Any, ...]],
) -> None:
    """Bug: it expired with its bucket, up to 100 ms late."""
    timeout_ms, now_ms = 420, 1_000
    liveness = Liveness(timeout_ms)
    sessions: dict[str, int] = {}
    rebalances: dict[str, int] = {}
    for name, *rest in [*acts, ("pass", 2_000)]:
        if name == "pass":
            until_ms = now_ms + rest[0]
            while (at_ms := liveness.next_deadline_ms()) is not None and at_ms <= until_ms:
                now_ms = max(now_ms, at_ms)
                for command in liveness.due(now_ms):
                    assert isinstance(command, ExpireMember)
                    is_session = command.deadline is Deadline.SESSION
                    of = sessions if is_session else rebalances
                    assert of.pop(command.member_id) == now_ms
                    if is_session:
                        rebalances.pop(command.member_id, None)
                assert min([*sessions.values(), *rebalances.values()], default=now_ms + 1) > now_ms
            now_ms = until_ms
            continue
        member_id = MemberId(rest[0])
        match name:
            case "hear":
                liveness.heard(G, member_id, now_ms)
                sessions[member_id] = now_ms + timeout_ms
            case "arm" if member_id in sessions:
                liveness.arm_rebalance(G, member_id, 1, rest[1], now_ms)
                rebalances[member_id] = now_ms + max(rest[1], 0)
            case "cancel":
                liveness.cancel_rebalance(G, member_id)
                rebalances.pop(member_id, None)
            case "remove":
                liveness.remove(G, member_id)
                sessions.pop(member_id, None)
                rebalances.pop(member_id, None)
    assert not sessions
    assert not rebalances


def test_members_that_are_heard_from_cost_one_look_in_a_session() -> None:
    """Although deadlines are exact: members move from bucket to bucket."""
    liveness = Liveness(45_000)
    entries = [liveness.heard(G, MemberId(f"m{n}"), 0) for n in range(LOOKS_MAX)]
    ticks = 0
    for now_ms in range(0, 450_001, 50):
        if now_ms % 5_000 == 0:
            for entry in entries:
                liveness.touch(entry, now_ms)
        at_ms = liveness.next_deadline_ms()
        if at_ms is not None and at_ms <= now_ms:
            assert liveness.due(now_ms) == []
            ticks += 1
    assert ticks <= 12


def test_very_many_deadlines_that_pass_together_come_in_parts() -> None:
    liveness = Liveness(TIMEOUT_MS)
    ids = [MemberId(f"m{n}") for n in range(3 * LOOKS_MAX + 1)]
    for own in ids:
        liveness.heard(G, own, 0)
        liveness.arm_classic(G, ClassicDeadline.SESSION, own, TIMEOUT_MS, 0)
    found: list[ExpireMember | ExpireClassicDeadline] = []
    parts = 0
    while liveness.next_deadline_ms() is not None:
        part = liveness.due(TIMEOUT_MS)
        assert len(part) <= 2 * LOOKS_MAX
        found += part
        parts += 1
    assert parts == 4
    for kind in (ExpireMember, ExpireClassicDeadline):
        assert sorted(each.member_id for each in found if isinstance(each, kind)) == sorted(ids)


def test_hearing_again_moves_the_deadline() -> None:
    liveness = Liveness(TIMEOUT_MS)
    entry = liveness.heard(G, A, 0)
    liveness.heard(G, A, 500)
    liveness.touch(entry, 900)
    assert due(liveness, 1_800) == []
    assert due(liveness, 2_100) == [("a", Deadline.SESSION)]


def test_many_in_one_bucket_come_in_the_order_in_which_they_were_entered() -> None:
    liveness = Liveness(TIMEOUT_MS)
    names = [MemberId(f"m{number}") for number in range(5)]
    for name in names:
        liveness.heard(G, name, 0)
    assert due(liveness, 1_100) == [(name, Deadline.SESSION) for name in names]


def test_both_deadlines_of_a_member_may_be_in_one_bucket() -> None:
    """Trigger: the bucket has the member twice, and its session is examined once only."""
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.arm_rebalance(G, A, 7, TIMEOUT_MS, 0)
    assert due(liveness, 1_100) == [("a", Deadline.REBALANCE), ("a", Deadline.SESSION)]


def test_an_expiry_for_the_rebalance_timeout_names_the_epoch_that_it_was_armed_in() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    (command,) = liveness.due(300)
    assert (command.deadline, command.member_epoch) == (Deadline.REBALANCE, 7)


def test_arming_again_replaces_and_cancelling_ends() -> None:
    liveness = Liveness(10_000)
    liveness.heard(G, A, 0)
    liveness.arm_rebalance(G, A, 1, 200, 0)
    liveness.arm_rebalance(G, A, 2, 700, 0)
    assert due(liveness, 600) == []
    liveness.cancel_rebalance(G, A)
    assert due(liveness, 2_000) == []


def test_who_was_removed_does_not_come_back() -> None:
    liveness = Liveness(TIMEOUT_MS)
    entry = liveness.heard(G, A, 0)
    liveness.heard(G, B, 0)
    liveness.remove(G, A)
    assert entry.is_gone
    assert due(liveness, 5_000) == [("b", Deadline.SESSION)]
    assert liveness.next_deadline_ms() is None


def test_who_rejoins_in_the_time_of_its_old_deadline_is_not_expired_by_it() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.remove(G, A)
    liveness.heard(G, A, 900)
    assert due(liveness, 1_500) == []
    assert due(liveness, 2_000) == [("a", Deadline.SESSION)]


def test_a_late_tick_moves_every_deadline_by_as_much() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.heard(G, B, 400)
    liveness.arm_rebalance(G, B, 1, 800, 400)
    at_ms = liveness.next_deadline_ms()
    assert at_ms is not None
    liveness.stalls.expect(at_ms)
    assert liveness.stalls.catch_up(at_ms + 5_000) == 5_000
    assert liveness.stalls.catch_up(at_ms + 5_000) == 0
    assert liveness.next_deadline_ms() == at_ms + 5_000
    assert due(liveness, at_ms + 5_000) == [("a", Deadline.SESSION)]
    assert due(liveness, 6_100) == []
    assert due(liveness, 6_500) == [("b", Deadline.REBALANCE), ("b", Deadline.SESSION)]


def test_less_than_the_resolution_of_timers_is_no_stall() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.stalls.expect(1_000)
    assert liveness.stalls.catch_up(1_050) == 0
    assert liveness.stalls.catch_up(1_051) == 51


def come_late(liveness: Liveness, at_ms: int, late_ms: int) -> int:
    """How much of the stall is forgiven."""
    before_ms = liveness.stalls.stalled_ms
    liveness.stalls.expect(at_ms)
    assert liveness.stalls.catch_up(at_ms + late_ms) == late_ms
    return liveness.stalls.stalled_ms - before_ms


def test_a_pause_is_forgiven_once_until_everybody_could_be_heard() -> None:
    liveness = Liveness(TIMEOUT_MS)
    assert come_late(liveness, 1_000, 20_000) == 20_000
    assert come_late(liveness, 21_500, 1_500) == 1_500
    assert come_late(liveness, 24_000, 30_000) == GRACE_MS - 1_500
    ran_ms = 24_000 - 20_000 - 1_500
    at_ms = 54_000 + PARDON_AGAIN_MS - ran_ms
    assert come_late(liveness, at_ms, 30_000) == 30_000


def test_what_comes_late_all_the_time_is_forgiven_for_a_part_of_it() -> None:
    liveness = Liveness(TIMEOUT_MS)
    now_ms = 0
    while now_ms < 100_000:
        come_late(liveness, now_ms, 80)
        now_ms += 80
    windows = 1 + (now_ms - liveness.stalls.stalled_ms) // PARDON_AGAIN_MS
    assert liveness.stalls.stalled_ms <= windows * GRACE_MS


def test_whoever_comes_first_after_a_stall_notes_it() -> None:
    """Trigger: a request is read before the timer fires, and its session starts then."""
    liveness = Liveness(TIMEOUT_MS)
    entry = liveness.heard(G, A, 0)
    liveness.stalls.expect(1_000)
    liveness.touch(entry, 9_000)
    assert liveness.stalls.stalled_ms == 8_000
    assert liveness.stalls.catch_up(9_000) == 0
    assert due(liveness, 9_900) == []
    assert due(liveness, 10_100) == [("a", Deadline.SESSION)]


def test_a_longer_timeout_of_the_group_holds_at_once() -> None:
    liveness = Liveness(10_000)
    liveness.heard(G, A, 0)
    liveness.heard(H, A, 0)
    liveness.set_session_timeout(G, 20_000, 1_000)
    assert [command.group_id for command in liveness.due(10_200)] == [H]
    assert liveness.due(19_900) == []
    assert [command.group_id for command in liveness.due(20_200)] == [G]


def test_a_shorter_timeout_of_the_group_holds_from_the_next_sign_of_a_member() -> None:
    liveness = Liveness(10_000)
    for member_id in (A, B):
        liveness.heard(G, member_id, 0)
    liveness.set_session_timeout(G, 4_000, 6_000)
    assert liveness.due(6_100) == [], "it was told to come every so often, and did"
    liveness.heard(G, A, 7_000)
    assert [command.member_id for command in liveness.due(10_200)] == [B]
    assert liveness.due(10_900) == []
    assert [command.member_id for command in liveness.due(11_200)] == [A]


def test_a_shorter_timeout_holds_however_late_the_next_sign_comes() -> None:
    liveness = Liveness(60_000)
    liveness.heard(G, A, 0)
    liveness.set_session_timeout(G, 1_000, 5_000)
    assert liveness.due(6_200) == [], "it was promised the longer one"
    liveness.heard(G, A, 8_000)
    assert [len(liveness.due(at_ms)) for at_ms in range(8_100, 9_300, 100)].count(1) == 1


def test_a_sign_in_the_millisecond_of_the_last_one_is_one() -> None:
    """Starved of CPU the clock barely moves: the member would keep the old timeout."""
    liveness = Liveness(10_000)
    entry = liveness.heard(G, A, 5_000)
    liveness.set_session_timeout(G, 1_000, 5_000)
    liveness.touch(entry, 5_000)
    assert len(liveness.due(6_200)) == 1


def test_a_timeout_that_was_short_for_a_moment_ends_nobody() -> None:
    liveness = Liveness(10_000)
    liveness.heard(G, A, 0)
    liveness.set_session_timeout(G, 1_000, 5_000)
    liveness.set_session_timeout(G, 10_000, 5_500)
    assert liveness.due(9_900) == []
    assert len(liveness.due(10_200)) == 1


def test_a_lease_is_kept_as_long_as_it_was_promised() -> None:
    liveness = Liveness(10_000)
    entry = liveness.heard(G, A, 0)
    liveness.renew_lease(entry, 1_000)
    liveness.set_session_timeout(G, 4_000, 1_000)
    assert liveness.due(10_900) == []
    assert len(liveness.due(11_200)) == 1
    liveness.heard(G, A, 12_000)
    assert len(liveness.due(16_200)) == 1, "it joined with the shorter one"


def leased(liveness: Liveness, now_ms: int = 0) -> None:
    """The member ``a`` on a stream, with its session timeout sent at this time."""
    entry = liveness.heard(G, A, now_ms)
    assert liveness.note_lease(entry)


def test_a_timeout_that_was_told_is_kept_though_nothing_renewed_it_since() -> None:
    liveness = Liveness(TIMEOUT_MS)
    leased(liveness)
    liveness.set_session_timeout(G, 200, 10)
    liveness.heard(G, A, 20)
    assert due(liveness, 900) == []
    assert due(liveness, 1_200) == [("a", Deadline.SESSION)]


def test_no_rebalance_timeout_ends_a_lease() -> None:
    """Until then the member assumes that it owns partitions for which others wait."""
    liveness = Liveness(TIMEOUT_MS)
    leased(liveness)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    assert due(liveness, 900) == []
    assert due(liveness, 1_100) == [("a", Deadline.REBALANCE), ("a", Deadline.SESSION)]


def test_who_must_go_is_renewed_no_more() -> None:
    liveness = Liveness(TIMEOUT_MS)
    leased(liveness)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    entry = liveness.get(G, A)
    assert entry is not None
    assert liveness.renew_lease(entry, 250)
    assert due(liveness, 300) == []
    assert not liveness.renew_lease(entry, 400)
    assert not liveness.note_lease(entry)
    # A heartbeat without an acknowledgement does not extend the deadline.
    liveness.heard(G, A, 1_200)
    assert due(liveness, 1_200) == []
    (command,) = liveness.due(1_400)
    assert (command.deadline, command.member_epoch) == (Deadline.REBALANCE, 7)


def test_who_has_stopped_in_time_or_late_stays() -> None:
    liveness = Liveness(TIMEOUT_MS)
    leased(liveness)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    assert due(liveness, 300) == []
    liveness.cancel_rebalance(G, A)
    entry = liveness.get(G, A)
    assert entry is not None
    assert liveness.renew_lease(entry, 500)
    assert due(liveness, 1_400) == []


def test_a_member_without_a_lease_is_put_out_by_the_rebalance_timeout() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    assert due(liveness, 300) == [("a", Deadline.REBALANCE)]


def test_a_session_that_ends_in_vain_leaves_the_rebalance_timeout() -> None:
    """Bug: a member that sent heartbeats without revoking stayed for ever."""
    for is_heard_first in (False, True):
        liveness = Liveness(TIMEOUT_MS)
        liveness.heard(G, A, 0)
        liveness.arm_rebalance(G, A, 7, 3_000, 0)
        (command,) = liveness.due(1_000)
        assert isinstance(command, ExpireMember)
        assert command.deadline is Deadline.SESSION
        if is_heard_first:
            liveness.heard(G, A, 1_100)
        liveness.expire_again(command, 1_200)
        for now_ms in (1_900, 2_800):
            liveness.heard(G, A, now_ms)
            assert due(liveness, now_ms) == []
        (command,) = liveness.due(3_000)
        assert isinstance(command, ExpireMember)
        assert (command.deadline, command.member_epoch) == (Deadline.REBALANCE, 7)


def test_a_session_that_ends_leaves_nothing_for_who_joins_again() -> None:
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.arm_rebalance(G, A, 7, 3_000, 0)
    (command,) = liveness.due(1_000)
    liveness.note_expired(command)
    liveness.heard(G, A, 1_100)
    liveness.expire_again(command, 1_200)
    assert due(liveness, 2_000) == []
    assert due(liveness, 9_000) == [("a", Deadline.SESSION)]


def test_a_rebalance_timeout_that_passes_in_vain_replaces_no_later_one() -> None:
    """Bug: the refusal dropped the rebalance deadline of another epoch, armed in the meantime."""
    liveness = Liveness(TIMEOUT_MS)
    liveness.heard(G, A, 0)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    (command,) = liveness.due(200)
    assert isinstance(command, ExpireMember)
    liveness.arm_rebalance(G, A, 8, 300, 210)
    liveness.expire_again(command, 220)
    (command,) = liveness.due(510)
    assert isinstance(command, ExpireMember)
    assert (command.deadline, command.member_epoch) == (Deadline.REBALANCE, 8)


def test_who_must_go_must_still_when_it_could_not_be_put_out() -> None:
    liveness = Liveness(TIMEOUT_MS)
    leased(liveness)
    liveness.arm_rebalance(G, A, 7, 200, 0)
    assert due(liveness, 300) == []
    liveness.heard(G, A, 900)
    (command,) = liveness.due(1_000)
    assert isinstance(command, ExpireMember)
    liveness.expire_again(command, 1_000)
    entry = liveness.get(G, A)
    assert entry is not None
    assert not liveness.note_lease(entry)


def test_leases_from_before_the_start_are_waited_for() -> None:
    """They are as long as the group's longest timeout, and it is not known who holds one.

    This includes members that were heard from: the response may be lost.
    """
    liveness = Liveness(TIMEOUT_MS)
    liveness.set_session_timeout(G, 200, 0)
    liveness.note_longest_timeout(G, TIMEOUT_MS)
    for group in (G, H):
        liveness.note_loaded(liveness.heard(group, A, 0), 0)
        liveness.arm_rebalance(group, A, 7, 300, 0)
    liveness.heard(G, A, 100)
    liveness.note_loaded(liveness.heard(G, B, 0), 0)
    assert due(liveness, 900) == []
    assert Counter(due(liveness, 1_300)) == {
        ("a", Deadline.REBALANCE): 2,
        ("a", Deadline.SESSION): 2,
        ("b", Deadline.SESSION): 1,
    }


@given(
    rebalance_ms=st.integers(0, 3_000),
    steps=st.lists(
        st.tuples(
            st.integers(1, 400), st.sampled_from(("renew", "hear", "tick", "shorten", "arm"))
        ),
        max_size=40,
    ),
)
def test_no_deadline_comes_before_the_lease_has_ended(
    rebalance_ms: int, steps: list[tuple[int, str]]
) -> None:
    """The client's lease: the timeout it was sent, from the last granted renewal on."""
    liveness = Liveness(TIMEOUT_MS)
    leased(liveness)
    promised_ms, now_ms = TIMEOUT_MS, 0
    believes_until_ms = promised_ms
    for delay_ms, step in steps:
        now_ms += delay_ms
        entry = liveness.get(G, A)
        assert entry is not None
        if step == "renew" and liveness.renew_lease(entry, now_ms):
            believes_until_ms = max(believes_until_ms, now_ms + promised_ms)
        elif step == "hear":
            liveness.heard(G, A, now_ms)
        elif step == "shorten":
            liveness.set_session_timeout(G, 300, now_ms)
        elif step == "arm":
            liveness.arm_rebalance(G, A, now_ms, rebalance_ms, now_ms)
        if due(liveness, now_ms):
            assert now_ms >= believes_until_ms
            return


DAYS_MS = 24 * 86_400_000
ONE = MemberId("one")


def test_who_has_gone_is_forgotten_in_a_minute_though_its_timeouts_are_of_days() -> None:
    """Bug: deadlines of members that had left were kept until they were due."""
    liveness = Liveness(45_000)
    for number in range(100):
        member_id, now_ms = MemberId(f"m{number}"), number * 100
        liveness.heard(G, member_id, now_ms)
        liveness.arm_rebalance(G, member_id, 1, DAYS_MS + number, now_ms)
        liveness.remove(G, member_id)
        liveness.arm_classic(G, ClassicDeadline.SESSION, member_id, DAYS_MS + number, now_ms)
        liveness.classic.cancel_member(G, member_id)
    assert liveness.due(10_000 + FAR_MS) == []
    assert liveness.next_deadline_ms() is None


def test_who_stays_is_looked_at_once_a_minute_however_often_it_is_armed_anew() -> None:
    liveness = Liveness(DAYS_MS)
    liveness.heard(G, ONE, 0)
    for now_ms in range(0, 100_000, 250):
        liveness.arm_rebalance(G, ONE, 1, DAYS_MS // 2 + now_ms, now_ms)
        liveness.arm_classic(G, ClassicDeadline.SESSION, ONE, DAYS_MS // 2 + now_ms, now_ms)
        assert liveness.due(now_ms) == []
    assert liveness.due(100_000 + FAR_MS) == []
    looks, now_ms = 0, 100_000 + FAR_MS
    while looks < 20:
        at_ms = liveness.next_deadline_ms()
        assert at_ms is not None
        looks, now_ms = looks + 1, at_ms
        assert liveness.due(now_ms) == []
    # One for each of the two deadlines in each minute.
    assert now_ms >= 100_000 + FAR_MS + 9 * FAR_MS


def test_far_deadlines_fall_to_the_millisecond() -> None:
    liveness = Liveness(DAYS_MS)
    liveness.heard(G, ONE, 0)
    liveness.arm_rebalance(G, ONE, 1, 3 * FAR_MS + 57, 0)
    liveness.arm_classic(G, ClassicDeadline.SESSION, ONE, 5 * FAR_MS + 3, 0)
    found: dict[type, int] = {}
    while len(found) < 2:
        at_ms = liveness.next_deadline_ms()
        assert at_ms is not None
        found |= {type(command): at_ms for command in liveness.due(at_ms)}
    assert found == {ExpireMember: 3 * FAR_MS + 57, ExpireClassicDeadline: 5 * FAR_MS + 3}
