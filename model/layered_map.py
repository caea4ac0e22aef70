"""A mapping that is never changed, of which one with another entry costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isqrt
from types import MappingProxyType
from typing import TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_CHANGES_MIN = 64


class LayeredMap(Mapping[K, V]):
    """Some changes to a mapping of any size: ``None`` stands for an entry that is gone."""

    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, base: Mapping[K, V], changes: dict[K, V | None], size: int) -> None:
        self._base = base
        self._changes = changes
        self._size = size

    def __getitem__(self, key: K) -> V:
        found = self._changes[key] if key in self._changes else self._base[key]
        if found is None:
            raise KeyError(key)
        return found

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D) -> V | D: ...
    def get(self, key: K, default: V | D | None = None) -> V | D | None:
        """As of a dict; the base class's raises an exception for each key that is not there."""
        found = self._changes[key] if key in self._changes else self._base.get(key)
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        if key in self._changes:
            return self._changes[key] is not None
        return key in self._base

    def __iter__(self) -> Iterator[K]:
        changes = self._changes
        for key in self._base:
            if key not in changes:
                yield key
        for key, value in changes.items():
            if value is not None:
                yield key

    def __len__(self) -> int:
        return self._size

    def merge(self) -> Mapping[K, V]:
        """The same entries, as a mapping of one layer."""
        merged = dict(self._base)
        for key, value in self._changes.items():
            merged.pop(key, None)
            if value is not None:
                merged[key] = value
        return MappingProxyType(merged)

    def changed(self, changes: Mapping[K, V | None]) -> Mapping[K, V]:
        """With these entries; ``None`` takes one out."""
        size = self._size
        for key, value in changes.items():
            size += (value is not None) - (key in self)
        layered = LayeredMap(self._base, {**self._changes, **changes}, size)
        # Each step copies the changes, and once in so many steps everything is copied.
        most = max(_CHANGES_MIN, isqrt(size))
        return layered if len(layered._changes) <= most else layered.merge()


def compute_changed(mapping: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """The mapping with these entries; ``None`` takes one out. The mapping itself stays as it is."""
    if isinstance(mapping, LayeredMap):
        return mapping.changed(changes)
    return LayeredMap(mapping, {}, len(mapping)).changed(changes)


def compute_merged(mapping: Mapping[K, V]) -> Mapping[K, V]:
    """The mapping in one layer, which is quickest to look into; the same where it is already."""
    return mapping.merge() if isinstance(mapping, LayeredMap) else mapping
