"""Leases: how long a member may believe that it is one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.connection.lease import ClassicLease, Lease, SentMessages, compute_lease_s, read_clock


def joined(at: float = 100.0, next_sequence: int = 2, timeout_ms: int = 10_000) -> Lease:
    lease = Lease()
    lease.note_join_sent(at)
    lease.note_joined(next_sequence, timeout_ms)
    return lease


def test_a_lease_runs_from_the_sending_of_the_join() -> None:
    assert joined().compute_deadline(None) == 100.0 + compute_lease_s(10_000)
    assert compute_lease_s(10_000) == 9.5
    assert compute_lease_s(45_000) == 44.5
    assert compute_lease_s(1_000) == 0.95


def test_a_renewal_counts_from_when_its_message_was_sent() -> None:
    lease, sent = joined(), SentMessages()
    for sequence, now in ((1, 100.0), (2, 103.0), (3, 105.0), (4, 107.0)):
        sent.note_sent(sequence, now)
    sent.note_renewed(3)
    assert lease.compute_deadline(sent) == 105.0 + 9.5
    # It is said again with every message, and never goes back.
    sent.note_renewed(2)
    sent.note_renewed(3)
    assert lease.compute_deadline(sent) == 105.0 + 9.5


def test_messages_from_before_the_answer_do_not_renew_the_member() -> None:
    """The server may have handled them while the member was not on the stream."""
    lease, sent = joined(next_sequence=4), SentMessages()
    for sequence in (1, 2, 3):
        sent.note_sent(sequence, 100.0 + sequence)
    sent.note_renewed(3)
    assert lease.compute_deadline(sent) == 100.0 + 9.5


def test_of_many_messages_the_first_stands_for_all() -> None:
    sent = SentMessages()
    for sequence in range(1, 10_001):
        sent.note_sent(sequence, 50.0 + sequence * 1e-6)
    assert len(sent._sent) == 1
    sent.note_renewed(10_000)
    assert sent.renewed_at == 50.000001


def test_a_broken_stream_leaves_what_it_has_renewed() -> None:
    lease, sent = joined(), SentMessages()
    sent.note_sent(2, 104.0)
    sent.note_renewed(2)
    lease.settle(sent)
    assert lease.compute_deadline(None) == 104.0 + 9.5
    # The next stream counts its messages from 1 again: they prove nothing before its answer.
    fresh = SentMessages()
    fresh.note_sent(1, 108.0)
    fresh.note_renewed(1)
    lease.note_join_sent(107.0)
    assert lease.compute_deadline(fresh) == 104.0 + 9.5
    lease.note_joined(2, 10_000)
    assert lease.compute_deadline(fresh) == 107.0 + 9.5


def test_a_refused_join_ends_the_renewals() -> None:
    lease, sent = joined(), SentMessages()
    lease.settle(sent)
    sent.note_sent(5, 109.0)
    sent.note_renewed(5)
    assert lease.compute_deadline(sent) == 100.0 + 9.5
    lease.end()
    assert lease.compute_deadline(sent) < 0


@given(
    st.lists(
        st.tuples(st.floats(0.001, 3), st.floats(0, 2), st.booleans(), st.booleans()), min_size=1
    )
)
def test_a_lease_always_ends_before_the_session(
    messages: list[tuple[float, float, bool, bool]],
) -> None:
    """Whatever is delayed or lost: the server's session outlives what the client believes.

    Each message is sent a while after the one before, and received after a delay, in order; the
    server renews with it or not, and what it says of that arrives or not.
    """
    timeout_ms = 10_000
    lease, sent = joined(at=0.0, next_sequence=2, timeout_ms=timeout_ms), SentMessages()
    now, received_at, renewed, session = 0.0, 0.0, 0, 0.0
    for sequence, (gap, delay, renews, is_heard) in enumerate(messages, start=2):
        now += gap
        sent.note_sent(sequence, now)
        received_at = max(received_at, now + delay)
        if renews:
            renewed, session = sequence, received_at
        if is_heard and renewed:
            sent.note_renewed(renewed)
        assert lease.compute_deadline(sent) < session + timeout_ms / 1000


def test_the_clock_goes_on() -> None:
    assert read_clock() <= read_clock()


def test_a_shorter_timeout_holds_as_soon_as_it_is_told() -> None:
    lease, sent = joined(), SentMessages()
    lease.note_told(4_000)
    assert lease.compute_deadline(sent) == 100.0 + compute_lease_s(4_000)
    # A longer one is not kept to before a Join is answered with it: the server may not know of it.
    lease.note_told(20_000)
    assert lease.compute_deadline(sent) == 100.0 + compute_lease_s(4_000)


def test_a_classic_lease_ends_with_the_shorter_of_both_timeouts() -> None:
    lease = ClassicLease(10_000, 2_000)
    assert lease.compute_deadline() == float("-inf")
    lease.note_renewed(100.0)
    lease.note_undisturbed(100.0)
    assert lease.compute_deadline() == 100.0 + compute_lease_s(2_000)
    # The session is renewed while the group rebalances; that puts the rebalance off for nobody.
    lease.note_renewed(101.0)
    assert lease.compute_deadline() == 100.0 + compute_lease_s(2_000)
    lease.note_undisturbed(99.0)
    assert lease.compute_deadline() == 100.0 + compute_lease_s(2_000)
    other = ClassicLease(2_000, 10_000)
    other.note_undisturbed(100.0)
    other.note_renewed(101.0)
    assert other.compute_deadline() == 101.0 + compute_lease_s(2_000)


@given(
    st.integers(500, 5_000),
    st.lists(st.tuples(st.floats(0.001, 2), st.floats(0, 1), st.booleans()), min_size=1),
    st.floats(0, 20),
)
def test_a_classic_lease_ends_before_any_deadline_of_the_coordinator(
    rebalance_timeout_ms: int, beats: list[tuple[float, float, bool]], began: float
) -> None:
    """Heartbeats are sent and received after a delay, answered or not; a rebalance begins once.

    From then on they are answered REBALANCE_IN_PROGRESS, and the member, which does not join, is
    put out when the rebalance timeout has passed, or its session.
    """
    session_timeout_ms = 3_000
    lease = ClassicLease(session_timeout_ms, rebalance_timeout_ms)
    lease.note_renewed(0.0)
    lease.note_undisturbed(0.0)
    now = received_at = session_from = 0.0
    for gap, delay, is_answered in beats:
        now += gap
        received_at = max(received_at, now + delay)
        session_from = received_at
        if is_answered:
            lease.note_renewed(now)
            if received_at < began:
                lease.note_undisturbed(now)
    ends = min(session_from + session_timeout_ms / 1000, began + rebalance_timeout_ms / 1000)
    assert lease.compute_deadline() < ends


@given(
    st.integers(500, 5_000),
    st.lists(st.tuples(st.floats(0.001, 2), st.floats(0, 1), st.booleans()), min_size=1),
    st.floats(0, 10),
    st.one_of(st.none(), st.floats(0, 5)),
    st.floats(0, 20),
)
def test_a_classic_lease_outlives_no_rebalance_that_waits_for_others(
    rebalance_timeout_ms: int,
    beats: list[tuple[float, float, bool]],
    began: float,
    joins_after: float | None,
    takes: float,
) -> None:
    """The join comes, in time or not; heartbeats are told whether it is held.

    Who has joined as the rebalance ends, which others may put off, has the timeout again from then.
    """
    timeout_s = rebalance_timeout_ms / 1000
    ended = began + max(takes, timeout_s)
    joined = float("inf") if joins_after is None else began + joins_after
    lease = ClassicLease(30_000, rebalance_timeout_ms)
    lease.note_renewed(0.0)
    lease.note_undisturbed(0.0)
    now = received_at = 0.0
    for gap, delay, is_answered in beats:
        now += gap
        received_at = max(received_at, now + delay)
        is_held = joined <= received_at < ended
        if is_answered and (is_held or received_at < began):
            lease.note_undisturbed(now)
    put_out = ended + timeout_s if joined < ended else ended
    assert lease.compute_deadline() < put_out
