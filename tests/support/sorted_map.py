"""A map that is read in key order, as the column families of RocksDB are."""

from __future__ import annotations

from bisect import bisect_left


class SortedMap:
    """A map read in key order; a scan sees the map as of its start."""

    __slots__ = ("_keys", "_values")

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] | None = []

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            if self._values.pop(key, None) is not None:
                self._keys = None
            return
        if key not in self._values:
            self._keys = None
        self._values[key] = value

    def get(self, key: bytes) -> bytes | None:
        return self._values.get(key)

    def scan(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        keys = self.keys()
        found = []
        for index in range(bisect_left(keys, prefix), len(keys)):
            key = keys[index]
            if not key.startswith(prefix):
                break
            found.append((key, self._values[key]))
        return found

    def keys(self) -> list[bytes]:
        if self._keys is None:
            self._keys = sorted(self._values)
        return self._keys

    def copy(self) -> SortedMap:
        copied = SortedMap()
        copied._values, copied._keys = self._values.copy(), None
        return copied
