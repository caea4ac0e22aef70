"""Why an object is still there: the cycle that it is in, or who refers to it."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType, FunctionType
from typing import Final

WAYS_MAX: Final = 12
_DEEP_MAX: Final = 7
_TEXT_MAX: Final = 60

Namer = Callable[[object], str]


def find_cycle(thing: object, garbage: Sequence[object], name: Namer) -> str:
    """The shortest way from a piece of garbage to itself, or to a cycle that keeps it."""
    among = {id(each): each for each in garbage}
    came_from: dict[int, int] = {}
    left = deque([thing])
    while left:
        now = left.popleft()
        # Backwards: who keeps it.
        for other in _find_keepers(now, among):
            if other is thing:
                return _show(_walk(now, came_from, among), name)
            if id(other) not in came_from:
                came_from[id(other)] = id(now)
                left.append(other)
    keepers = _find_keepers(thing, among)
    return _show([thing, *keepers[:3]], name) + " (kept by a cycle)"


def find_keepers(things: list[object], name: Namer) -> list[str]:
    """Of each a way of referrers, the nearest first."""
    ways = []
    for thing in things:
        way = [thing]
        found: list[object] = []
        for _ in range(_DEEP_MAX):
            passed = {id(each) for each in way} | {id(way), id(things)}
            found = []
            found = [
                each
                for each in gc.get_referrers(way[-1])
                if id(each) not in passed and not isinstance(each, FrameType)
            ]
            if not found:
                break
            way.append(found[0])
        ways.append(_show(way, name))
    return ways


def _find_keepers(thing: object, among: dict[int, object]) -> list[object]:
    return [each for each in gc.get_referrers(thing) if id(each) in among]


def _walk(last: object, came_from: dict[int, int], among: dict[int, object]) -> list[object]:
    way = [last]
    while id(way[-1]) in came_from:
        way.append(among[came_from[id(way[-1])]])
    return way


def _show(way: Sequence[object], name: Namer) -> str:
    return " <- ".join(_describe(each, name) for each in way[:WAYS_MAX])


def _describe(thing: object, name: Namer) -> str:
    if isinstance(thing, FrameType):
        return f"frame {thing.f_code.co_qualname}:{thing.f_lineno}"
    if isinstance(thing, FunctionType):
        return f"function {thing.__qualname__}"
    if isinstance(thing, dict):
        return f"dict({', '.join(map(str, list(thing)[:4]))[:_TEXT_MAX]})"
    if isinstance(thing, list | tuple | set):
        return f"{type(thing).__name__}[{len(thing)}]"
    return name(thing)
