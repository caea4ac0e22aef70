"""Frames split right, however what arrives is cut."""

from __future__ import annotations

from random import Random

import pytest

from upstream.relay.frames.splitting import HEAD_BYTES_MAX, BadFrame, Fate, Splitter


class Reversing:
    """Changes bytes, not their number."""

    def feed(self, data: bytes) -> bytes:
        return bytes(byte ^ 0xFF for byte in data)


class Sink:
    """Decides by a frame's first byte, and notes what comes out, in order."""

    def __init__(self) -> None:
        self.out = b""
        self.held = 0
        self.is_stopped = False
        self.ended = 0
        self.fate: Fate | None = None
        self.splitter = Splitter(
            self.decide, self.take, self.take_whole, self.hold, self.release,
            self.end, lambda: self.take(b"|"), lambda: self.is_stopped,
        )  # fmt: skip

    def decide(self, data: bytes, pos: int, end: int, size: int) -> Fate:
        if self.fate is not None or end - pos < min(size + 4, 9):
            return Fate.UNKNOWN
        if data[pos + 4] == ord("f"):
            self.splitter.filter = Reversing()
        fates = {"p": Fate.PASS, "e": Fate.PASS, "d": Fate.DROP, "h": Fate.HOLD, "f": Fate.FILTER}
        return fates[chr(data[pos + 4])]

    def take(self, data: bytes) -> None:
        self.out += data

    def take_whole(self, frame: bytes) -> None:
        self.out += b"<" + frame + b">"

    def hold(self, more: int, size: int) -> None:
        self.held += more
        assert self.held <= size

    def release(self, size: int) -> None:
        self.held -= size

    def end(self) -> bool:
        """Every third frame that passes is cut off."""
        self.ended += 1
        return self.ended % 3 == 0


def frame(random: Random) -> tuple[str, bytes]:
    kind = random.choice("pedhf")
    body = kind.encode() + random.randbytes(random.choice([4, 5, 20, 300]))
    return kind, len(body).to_bytes(4, "big") + body


def expect(frames: list[tuple[str, bytes]]) -> bytes:
    out, ended = b"", 0
    for kind, data in frames:
        match kind:
            case "h":
                out += b"<" + data + b">"
            case "f":
                out += data[:8] + bytes(byte ^ 0xFF for byte in data[8:])
            case "p" | "e":
                out += data
        if kind in "pef":
            ended += 1
            out += b"|" if ended % 3 == 0 else b""
    return out


def test_the_cuts_do_not_matter() -> None:
    for seed in range(300):
        random = Random(seed)
        frames = [frame(random) for _ in range(random.randrange(1, 12))]
        data = b"".join(part for _, part in frames)
        sink = Sink()
        while data:
            size = random.choice([1, 3, 30, 1_000])
            sink.splitter.feed(data[:size])
            data = data[size:]
            if random.random() < 0.2:
                sink.splitter.feed(b"")
        assert sink.out == expect(frames), seed
        assert sink.held == sink.splitter.held_bytes == 0


def test_nothing_begins_while_it_must_stop() -> None:
    sink = Sink()
    one = b"\x00\x00\x00\x05paaaa"
    sink.splitter.feed(one[:6])
    sink.splitter.feed(one[6:])
    sink.is_stopped = True
    sink.splitter.feed(one * 3)
    assert sink.out == one
    sink.is_stopped = False
    sink.splitter.feed(b"")
    assert sink.out == one * 3 + b"|" + one


def test_a_negative_size_is_no_frame() -> None:
    with pytest.raises(BadFrame, match="size -1"):
        Sink().splitter.feed(b"\xff\xff\xff\xffp")


def test_a_frame_that_cannot_be_decided_about_ends() -> None:
    sink = Sink()
    sink.fate = Fate.UNKNOWN
    sink.splitter.feed(b"\x00\x10\x00\x00" + bytes(HEAD_BYTES_MAX - 5))
    with pytest.raises(BadFrame, match="head"):
        sink.splitter.feed(b"a")
