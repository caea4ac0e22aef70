"""Entries of ``latest`` that a commit of many partitions makes, packed only when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from storage.log_store import pack_latest_rows


class LatestRows(Mapping[bytes, bytes]):
    """Entries of records at consecutive offsets from ``first``, with values of equal size.

    ``values`` are the rows of values, in one part or several. ``keys_of_rows`` are distinct record
    keys of one group, none of them legacy. A commit that is repeated brings the same object again,
    and replaces what it brought before (``storage.log.latest_overlay``).
    """

    __slots__ = ("_entries", "_first", "_timestamp", "_values", "keys_of_rows")

    def __init__(
        self, keys: Sequence[bytes], first: int, timestamp: int, values: list[NDArray[np.uint8]]
    ) -> None:
        self.keys_of_rows = keys
        self._first = first
        self._timestamp = timestamp
        self._values = values
        self._entries: dict[bytes, bytes] | None = None

    @property
    def entries(self) -> dict[bytes, bytes]:
        """The entries, packed on the first call."""
        if self._entries is None:
            values = np.concatenate(self._values)
            rows = pack_latest_rows(self._first, self._timestamp, values)
            self._entries = dict(zip(self.keys_of_rows, rows, strict=True))
        return self._entries

    def __getitem__(self, key: bytes) -> bytes:
        return self.entries[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.keys_of_rows)

    def __len__(self) -> int:
        return len(self.keys_of_rows)
