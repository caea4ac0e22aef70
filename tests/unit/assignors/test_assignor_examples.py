"""The three examples of KIP-54, to the partition."""

from __future__ import annotations

from muster.assignors.problem import NOBODY
from muster.assignors.uniform.uniform_assignor import assign_uniform
from tests.support.assignors.cases import make_problem

C0, C1, C2 = range(3)


def test_kip_54_example_1_a_member_leaves() -> None:
    everyone = [[0, 1, 2, 3]] * 3
    first = assign_uniform(make_problem([2, 2, 2, 2], everyone)).tolist()
    assert first == [C0, C1, C2, C0, C1, C2, C0, C1]

    kept = [NOBODY if member == C1 else {C0: 0, C2: 1}[member] for member in first]
    second = assign_uniform(make_problem([2, 2, 2, 2], everyone[:2], kept)).tolist()
    assert second == [0, 1, 1, 0, 0, 1, 0, 1]


def test_kip_54_example_2_different_subscriptions() -> None:
    first = assign_uniform(make_problem([1, 2, 3], [[0], [0, 1], [0, 1, 2]])).tolist()
    assert first == [C0, C1, C1, C2, C2, C2]

    kept = [NOBODY, 0, 0, 1, 1, 1]
    second = assign_uniform(make_problem([1, 2, 3], [[0, 1], [0, 1, 2]], kept)).tolist()
    assert second == [0, 0, 0, 1, 1, 1]


def test_kip_54_example_3_a_member_joins() -> None:
    first = assign_uniform(make_problem([2, 2], [[0, 1]] * 2)).tolist()
    assert first == [C0, C1, C0, C1]

    second = assign_uniform(make_problem([2, 2], [[0, 1]] * 3, first)).tolist()
    assert second == [C0, C1, C0, C2]
