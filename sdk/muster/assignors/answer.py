"""Validation of assignor results, because assignors may be third-party code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muster.assignors.legality import find_legal
from muster.assignors.problem import NOBODY, Members, Problem


class BadAnswer(ValueError):
    """The result of an assignor is not a valid assignment."""


def check_answer(problem: Problem, answer: object) -> Members:
    """The result as the member of each partition. Raise BadAnswer if it is invalid.

    A result is an integer array with one entry per partition, or a list with one collection of
    partitions per member. A partition may be left to NOBODY.
    """
    if isinstance(answer, np.ndarray):
        target = _check_array(problem, answer)
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        target = _check_lists(problem, answer)
    else:
        raise BadAnswer(f"the answer is a {type(answer).__name__}, not an array or a list")
    illegal = np.flatnonzero((target != NOBODY) & ~find_legal(problem, target))
    if len(illegal):
        first = int(illegal[0])
        raise BadAnswer(
            f"partition {first} is assigned to member {int(target[first])}, "
            "which does not subscribe to its topic"
        )
    return target


def _check_array(problem: Problem, answer: np.ndarray[Any, Any]) -> Members:
    if answer.dtype.kind not in "iu" or answer.shape != (problem.partitions,):
        raise BadAnswer(
            f"the answer is an array of {answer.dtype} and shape {answer.shape}, "
            f"not of {problem.partitions} integers"
        )
    if len(answer) and not -1 <= int(answer.min()) <= int(answer.max()) < problem.members:
        unknown = answer[(answer < -1) | (answer >= problem.members)][0]
        raise BadAnswer(f"there is no member {unknown}")
    return answer.astype(np.int32, copy=False)


def _check_lists(problem: Problem, answer: Sequence[object]) -> Members:
    if len(answer) != problem.members:
        raise BadAnswer(f"the answer is for {len(answer)} members, not for {problem.members}")
    target = np.full(problem.partitions, NOBODY, dtype=np.int32)
    for member, chosen in enumerate(answer):
        partitions = np.asarray(chosen)
        if partitions.size == 0:
            continue
        if partitions.dtype.kind not in "iu" or partitions.ndim != 1:
            raise BadAnswer(f"the assignment of member {member} is not a list of partitions")
        unknown = partitions[(partitions < 0) | (partitions >= problem.partitions)]
        if len(unknown):
            raise BadAnswer(f"there is no partition {unknown[0]}")
        taken = partitions[target[partitions] != NOBODY]
        if len(taken):
            other = int(target[taken[0]])
            raise BadAnswer(f"partition {taken[0]} is assigned to members {other} and {member}")
        if len(np.unique(partitions)) < len(partitions):
            raise BadAnswer(f"member {member} is assigned a partition twice")
        target[partitions] = member
    return target
