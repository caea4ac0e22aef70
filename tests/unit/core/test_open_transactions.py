"""The producer epochs of pending offsets by group, kept in addition to the offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.state.open_transactions import GONE_MAX, OpenTransaction
from model.ids import GroupId, TopicName
from model.log.records import OffsetCommitKey

KEYS = [
    OffsetCommitKey(GroupId(group), TopicName("t"), partition)
    for group in ("a", "b", "c")
    for partition in range(3)
]
CHANGES = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 5)), max_size=60)


@given(CHANGES)
def test_the_epochs_of_groups_are_those_of_what_waits(
    changes: list[tuple[OffsetCommitKey, int | None]],
) -> None:
    transaction = OpenTransaction(0)
    waiting: dict[OffsetCommitKey, int] = {}
    for key, epoch in changes:
        if epoch is None:
            transaction.discard(key)
            waiting.pop(key, None)
        else:
            transaction.add(key, epoch)
            waiting[key] = epoch
        highest: dict[GroupId, int] = {}
        for each, its_epoch in waiting.items():
            highest[each.group] = max(its_epoch, highest.get(each.group, its_epoch))
        assert transaction.epochs == waiting
        assert transaction.group_epochs() == highest
        assert all(transaction.find_epoch(group) == epoch for group, epoch in highest.items())
        if highest:
            assert transaction.producer_epoch == min(highest.values())


def test_epochs_that_are_gone_are_not_kept() -> None:
    """Each commit of one partition with the next epoch replaces the one before."""
    transaction = OpenTransaction(0)
    for epoch in range(30_000):
        transaction.add(KEYS[epoch % 2], epoch)
    assert len(transaction._ascending) <= GONE_MAX + 3
    assert len(transaction._groups[KEYS[0].group].descending) <= GONE_MAX + 5
