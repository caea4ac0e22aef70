"""Splits what arrives into frames, which pass as they come, are dropped, or are held whole.

A frame that passes is never in memory as a whole: its bytes go on as they arrive, together with
those of frames next to it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

HEAD_BYTES_MAX: Final = 4_096
"""Bytes of a frame, size included, that are looked at before it is known what becomes of it."""


class Fate(Enum):
    """What becomes of a frame."""

    PASS = "pass"
    DROP = "drop"
    HOLD = "hold"
    FILTER = "filter"
    """Passes, but for its first eight bytes through ``Splitter.filter``."""
    UNKNOWN = "unknown"
    """More of it has to be seen."""


class Filter(Protocol):
    """Changes a frame on the way, but not its length."""

    def feed(self, data: bytes) -> bytes:
        """What to pass on of the frame's next bytes."""


class BadFrame(Exception):
    """What arrives is not what Kafka clients or brokers send; the connection must be closed."""


class Splitter:
    """One direction of a connection.

    More than 15 attributes: half of them are what is done with frames.

    ``decide(data, pos, end, size)`` looks at what is there of a frame: its size field is at
    ``pos``, and ``size`` bytes follow it. ``pass_on`` gets bytes of frames that pass, ``on_whole``
    each held frame, size included. ``hold(more, size)`` is asked before more bytes of a held frame
    of ``size`` are kept, and ``release`` is told after.

    ``on_end`` is called at the end of each frame that passes: if it returns true, the bytes so far
    are passed on and ``on_cut`` is called before more is looked at. While ``must_stop`` is true no
    frame is begun: what is left waits for the next ``feed``.
    """

    def __init__(
        self,
        # More than 6 parameters: each is one thing that becomes of bytes.
        decide: Callable[[bytes, int, int, int], Fate],
        pass_on: Callable[[bytes], None],
        on_whole: Callable[[bytes], None],
        hold: Callable[[int, int], None],
        release: Callable[[int], None],
        on_end: Callable[[], bool] = lambda: False,
        on_cut: Callable[[], None] = lambda: None,
        must_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._decide = decide
        self._pass_on = pass_on
        self._on_whole = on_whole
        self._hold = hold
        self._release = release
        self._on_end = on_end
        self._on_cut = on_cut
        self._must_stop = must_stop
        self._head = b""
        self._left = 0
        self._is_apart = False
        self._held: bytearray | None = None
        self._held_size = 0
        self.held_frames = 0
        """How many frames were held so far."""
        self.filter: Filter | None = None
        """Set by ``decide`` for ``FILTER``."""

    @property
    def held_bytes(self) -> int:
        """Bytes that ``hold`` was asked for and that are not released."""
        return len(self._held) if self._held is not None else 0

    def feed(self, data: bytes) -> None:
        """Take what arrived, maybe nothing. Raises ``BadFrame``."""
        if self._head:
            data = self._head + data
            self._head = b""
        pos, passed, end = 0, 0, len(data)
        while pos < end:
            if self._held is not None:
                pos = passed = self._fill(data, pos)
            elif self._left:
                step = min(self._left, end - pos)
                self._left -= step
                pos += step
                if self._is_apart:
                    self._go_apart(data, pos - step, pos)
                    passed = pos
                elif not self._left and self._on_end():
                    self._pass_on(data[passed:pos])
                    passed = pos
                    self._on_cut()
            else:
                fate, size = self._look(data, pos, end)
                if fate is Fate.PASS:
                    self._left = size + 4
                    continue
                if passed < pos:
                    self._pass_on(data[passed:pos])
                pos = passed = self._begin_apart(fate, size, data, pos)
        if passed < end:
            self._pass_on(data if not passed else data[passed:])

    def _begin_apart(self, fate: Fate, size: int, data: bytes, pos: int) -> int:
        """Begin a frame that does not just pass; where to go on."""
        match fate:
            case Fate.UNKNOWN:
                self._head = data[pos:]
                return len(data)
            case Fate.HOLD:
                self._hold(0, size + 4)
                self._held, self._held_size = bytearray(), size + 4
                self.held_frames += 1
            case Fate.FILTER:
                self._pass_on(data[pos : pos + 8])
                self._left, self._is_apart = size - 4, True
                return pos + 8
            case _:
                self._left, self._is_apart = size + 4, True
        return pos

    def _go_apart(self, data: bytes, start: int, end: int) -> None:
        """Drop or filter bytes of the frame that has begun."""
        is_passed = self.filter is not None
        if self.filter is not None:
            self._pass_on(self.filter.feed(data[start:end]))
        if not self._left:
            self._is_apart, self.filter = False, None
            if is_passed and self._on_end():
                self._on_cut()

    def _look(self, data: bytes, pos: int, end: int) -> tuple[Fate, int]:
        if end - pos < 4 or self._must_stop():
            return Fate.UNKNOWN, 0
        size = int.from_bytes(data[pos : pos + 4], "big", signed=True)
        if size < 0:
            raise BadFrame(f"a frame has size {size}")
        fate = self._decide(data, pos, end, size)
        if fate is Fate.UNKNOWN and end - pos >= min(size + 4, HEAD_BYTES_MAX):
            raise BadFrame("the head of a frame is too long, or the frame too short")
        return fate, size

    def _fill(self, data: bytes, pos: int) -> int:
        """Add to the held frame, and give it on when it is whole."""
        held, size = self._held, self._held_size
        assert held is not None
        step = min(size - len(held), len(data) - pos)
        self._hold(step, size)
        held += data[pos : pos + step]
        if len(held) == size:
            self._held = None
            try:
                self._on_whole(bytes(held))
            finally:
                self._release(size)
        return pos + step
