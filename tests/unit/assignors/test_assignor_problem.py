"""Valid problems, and invalid ones that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from muster.assignors.problem import Problem, Subscriptions


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def owners(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, dtype=np.int32)


def test_csr_of_everything_is_homogeneous() -> None:
    assert Subscriptions.all(2, 3).is_homogeneous
    assert Subscriptions.of([[2, 0, 1, 1], [0, 1, 2]], 3).is_homogeneous
    assert Subscriptions.csr(ints(0, 1, 2), ints(0, 0), 1).is_homogeneous
    assert not Subscriptions.of([[0], [0, 1]], 2).is_homogeneous
    assert Subscriptions.of([], 4).is_homogeneous


@pytest.mark.parametrize(
    ("member_start", "topic", "said"),
    [
        (ints(), ints(), "member_start must ascend from 0 to 0"),
        (ints(1, 2), ints(0, 1), "member_start must ascend from 0 to 2"),
        (ints(0, 3), ints(0, 1), "member_start must ascend from 0 to 2"),
        (ints(0, 2, 1, 2), ints(0, 1), "member_start must ascend from 0 to 2"),
        (ints(0, 1), ints(3), r"not in 0\.\.2"),
        (ints(0, 1), ints(-1), r"not in 0\.\.2"),
        (ints(0, 2), ints(1, 1), "ascending, without duplicates"),
        (ints(0, 2), ints(2, 0), "ascending, without duplicates"),
    ],
)
def test_bad_subscriptions_are_refused(
    member_start: np.ndarray[tuple[int], np.dtype[np.int64]],
    topic: np.ndarray[tuple[int], np.dtype[np.int64]],
    said: str,
) -> None:
    with pytest.raises(ValueError, match=said):
        Subscriptions.csr(member_start, topic, 3)


@pytest.mark.parametrize(
    ("topic_start", "members", "owner", "subscribed", "said"),
    [
        (ints(0, 2), 1, owners(0), (1, 1), "topic_start must ascend from 0 to 1"),
        (ints(), 1, owners(), (1, 0), "topic_start must ascend from 0 to 0"),
        (ints(0, 1), 1, owners(1), (1, 1), r"an owner is neither -1 nor a member in 0\.\.0"),
        (ints(0, 1), 1, owners(-2), (1, 1), "an owner is neither"),
        (ints(0, 1), 2, owners(0), (1, 1), "for 1 members and 1 topics, not for 2 and 1"),
        (ints(0, 1), 1, owners(0), (1, 2), "for 1 members and 2 topics, not for 1 and 1"),
    ],
)
def test_bad_problems_are_refused(
    topic_start: np.ndarray[tuple[int], np.dtype[np.int64]],
    members: int,
    owner: np.ndarray[tuple[int], np.dtype[np.int32]],
    subscribed: tuple[int, int],
    said: str,
) -> None:
    with pytest.raises(ValueError, match=said):
        Problem(topic_start, members, owner, Subscriptions.all(*subscribed))


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative count"):
        Subscriptions.all(-1, 0)
