"""What an assignor answered, checked: assignors may be other people's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muster.assignors.legality import find_legal
from muster.assignors.problem import NOBODY, Members, Problem


class BadAnswer(ValueError):
    """What an assignor answered is no assignment."""


def check_answer(problem: Problem, answer: object) -> Members:
    """The answer as the member of each partition. Raises BadAnswer with what is wrong with it.

    An answer is an array of integers with an entry for each partition, or a list with as many
    collections of partitions as there are members. A partition may be left with NOBODY.
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
            f"partition {first} was given to member {int(target[first])}, "
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
            raise BadAnswer(f"what member {member} gets is not a list of partitions")
        unknown = partitions[(partitions < 0) | (partitions >= problem.partitions)]
        if len(unknown):
            raise BadAnswer(f"there is no partition {unknown[0]}")
        taken = partitions[target[partitions] != NOBODY]
        if len(taken):
            other = int(target[taken[0]])
            raise BadAnswer(f"partition {taken[0]} was given to members {other} and {member}")
        if len(np.unique(partitions)) < len(partitions):
            raise BadAnswer(f"member {member} was given a partition twice")
        target[partitions] = member
    return target
