"""An immutable mapping that is cheap to copy with a few changed entries."""

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
    """Changed entries on top of a base mapping of any size; ``None`` marks a removed entry."""

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
        """Like ``dict.get``; ``Mapping.get`` raises and catches KeyError for each missing key."""
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
        """The same entries in one flat mapping."""
        merged = dict(self._base)
        for key, value in self._changes.items():
            merged.pop(key, None)
            if value is not None:
                merged[key] = value
        return MappingProxyType(merged)

    def changed(self, changes: Mapping[K, V | None]) -> Mapping[K, V]:
        """A copy with these entries changed; ``None`` removes one."""
        size = self._size
        for key, value in changes.items():
            size += (value is not None) - (key in self)
        layered = LayeredMap(self._base, {**self._changes, **changes}, size)
        # A copy copies all changes, so they are merged once there are about the root of the size.
        most = max(_CHANGES_MIN, isqrt(size))
        return layered if len(layered._changes) <= most else layered.merge()


def compute_changed(mapping: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """A copy of ``mapping`` with these entries changed; ``None`` removes one."""
    if isinstance(mapping, LayeredMap):
        return mapping.changed(changes)
    return LayeredMap(mapping, {}, len(mapping)).changed(changes)


def compute_merged(mapping: Mapping[K, V]) -> Mapping[K, V]:
    """A flat mapping with the same entries, which has the fastest lookups."""
    return mapping.merge() if isinstance(mapping, LayeredMap) else mapping
