"""The target of a frozen group at a new group epoch: what there is of the last one."""

from __future__ import annotations

import numpy as np

from coordinator.core.target.target_assignment import InstallTarget, TargetProblem, compute_install
from muster.assignors.legality import find_legal
from muster.assignors.problem import NOBODY


def compute_frozen_target(problem: TargetProblem) -> InstallTarget:
    """Each partition stays where it is, unless its member is gone or subscribes otherwise.

    Such partitions, and those that are new, are nobody's.
    """
    owner = problem.problem.owner
    kept = np.where(find_legal(problem.problem, owner), owner, NOBODY).astype(np.int32)
    return compute_install(problem, kept)
