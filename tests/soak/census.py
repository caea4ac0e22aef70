"""What is in a server's memory: taken inside it, and left in a file.

A census counts without changing what it counts. Whatever the collector would look at is looked at
in a copy of the process (``fork``), which finds what nothing refers to, counts the rest by type and
ends; no object of the server itself is visited, collected or frozen by it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CoroutineType, FunctionType
from typing import Any, Final

from tests.soak.explain import find_cycle, find_keepers
from tests.support.waiting import Patience, until_answered

OWN: Final = (
    "cli",
    "coordinator",
    "gateway",
    "model",
    "muster",
    "storage",
    "translator",
)
"""The packages whose types are the project's own."""
EXPLAINED: Final = 3
"""Objects of each type that is asked about."""
LONGEST_S: Final = 60
"""A copy that hangs is ended by then."""
_FIRST_FILE: Final = 3
_LAST_FILE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Census:
    """One count. ``living`` and ``garbage`` are by type; garbage is what is left in cycles."""

    number: int
    tasks: int
    threads: int
    blocks: int
    """Of Python's allocator, of all sizes."""
    malloc_bytes: int
    """In use by the C library's allocator: RocksDB's, gRPC's and large objects of Python."""
    store_bytes: int
    """What of it RocksDB says of itself: its buffers, its caches, its open tables."""
    object_bytes: int
    """Of the living ones, tables of containers included."""
    living: Mapping[str, int]
    garbage: Mapping[str, int]
    why: Sequence[str] = ()
    """Of some of what was asked about, how it is kept."""


def is_own(name: str) -> bool:
    """Whether a type, or what a function is called, is the project's."""
    return name.rpartition(" ")[2].split(".")[0] in OWN


async def wait_for_census(path: Path, number: int) -> Census:
    """The census of this number. Raises ``NotInTime``."""
    found = await until_answered(
        lambda: asyncio.to_thread(_read_census, path),
        lambda census: census is not None and census.number == number,
        lambda: f"census {number} is taken",
        patience=Patience(LONGEST_S),
        pause_s=0.1,
    )
    assert found is not None
    return found


def _read_census(path: Path) -> Census | None:
    try:
        return Census(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None


class CensusTaker:
    """Takes one each time that it is called, on the loop's thread."""

    def __init__(
        self,
        path: Path,
        asked: Sequence[str] = (),
        read_store_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        """``asked`` are the ends of types' names, of which it is said how they are kept."""
        self._path = path
        self._asked = asked
        self._read_store_bytes = read_store_bytes
        self._number = 0
        self._copies: list[int] = []

    def take(self) -> None:
        """Count what is cheap, and let a copy count the objects."""
        self._copies = [copy for copy in self._copies if os.waitpid(copy, os.WNOHANG)[0] == 0]
        self._number += 1
        figures = (
            len(asyncio.all_tasks()),
            threading.active_count(),
            sys.getallocatedblocks(),
            read_malloc_bytes(),
            self._read_store_bytes(),
        )
        copy = os.fork()
        if copy:
            self._copies.append(copy)
            return
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LONGEST_S)
            # What a finalizer of garbage may still say is heard by nobody.
            os.closerange(_FIRST_FILE, _LAST_FILE)
            self._write(Census(self._number, *figures, *count_objects(self._asked)))
        finally:
            os._exit(0)

    def _write(self, census: Census) -> None:
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(census)))
        unfinished.rename(self._path)


def count_objects(
    asked: Sequence[str] = (),
) -> tuple[int, dict[str, int], dict[str, int], list[str]]:
    """Bytes of the living, living and garbage by type. Only for a process that then ends.

    What an earlier collection has frozen is looked at, too.
    """
    gc.disable()
    gc.callbacks.clear()
    gc.unfreeze()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    garbage = Counter(map(_name, gc.garbage))
    why = _explain(asked)
    gone = {id(thing) for thing in gc.garbage}
    tracked = [thing for thing in gc.get_objects() if id(thing) not in gone and thing is not gone]
    living: Counter[str] = Counter()
    object_bytes = 0
    for thing in _reach(tracked):
        living[_name(thing)] += 1
        object_bytes += _size(thing)
    return object_bytes, dict(living), dict(garbage), why


def _reach(tracked: list[object]) -> Iterator[object]:
    """These, and what they refer to that the collector does not know: texts, numbers, and
    containers of nothing else."""
    yield from tracked
    seen: set[int] = set()
    left = tracked
    while left:
        found = []
        for thing in left:
            for other in gc.get_referents(thing):
                if not gc.is_tracked(other) and id(other) not in seen:
                    seen.add(id(other))
                    found.append(other)
        yield from found
        left = found


def _explain(asked: Sequence[str]) -> list[str]:
    kept = {id(thing) for thing in gc.garbage}
    why = []
    for end in asked:
        for thing in [each for each in gc.garbage if _name(each).endswith(end)][-EXPLAINED:]:
            why.append(f"in a cycle: {find_cycle(thing, gc.garbage, _name)}")
        living = [
            each for each in gc.get_objects() if _name(each).endswith(end) and id(each) not in kept
        ]
        del living[:-EXPLAINED]
        why += [f"living: {way}" for way in find_keepers(living, _name)]
    return why


def _size(thing: object) -> int:
    try:
        return sys.getsizeof(thing)
    except Exception:  # noqa: BLE001 - any type may say anything of itself
        return 0


def _name(thing: object) -> str:
    if isinstance(thing, FunctionType):
        return f"function {thing.__module__}.{thing.__qualname__}"
    kind = type(thing)
    if isinstance(thing, CoroutineType):
        return f"coroutine {_module_of(thing.cr_code.co_filename)}.{thing.cr_code.co_qualname}"
    return f"{kind.__module__}.{kind.__qualname__}"


def _module_of(filename: str) -> str:
    parts = Path(filename).with_suffix("").parts
    own = next((number for number, part in enumerate(parts) if part in OWN), -1)
    return ".".join(parts[own:])


class _MallInfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def read_malloc_bytes() -> int:
    """Bytes in use of the C library's allocator; 0 where it does not say (glibc 2.33 does)."""
    ask: Any = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0
    ask.restype = _MallInfo2
    found = ask()
    return int(found.uordblks + found.hblkhd)
