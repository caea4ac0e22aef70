"""The offsets that one commit has for many partitions of one topic, as columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CommitRows(NamedTuple):
    """Offset and leader epoch (-1 for none) of each partition, big endian."""

    offsets: NDArray[np.int64]
    leader_epochs: NDArray[np.int32]


class NamedPartitions(NamedTuple):
    """The partitions of the rows, without duplicates, and the record keys of their offsets."""

    partitions: NDArray[np.int32]
    keys: list[bytes]
