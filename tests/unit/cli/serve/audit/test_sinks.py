"""The file of the audit log: rotated, moved away, on a full disk."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from cli.serve.audit import sinks
from cli.serve.audit.sinks import KEPT, FileSink, StdoutSink

MAX_BYTES = 20


def write(sink: FileSink, *lines: bytes) -> None:
    sink.look()
    for line in lines:
        sink.write(line)


def read_all(folder: Path) -> bytes:
    """Everything that is kept, the oldest first."""
    names = [f"audit.log.{number}" for number in range(KEPT, 0, -1)] + ["audit.log"]
    return b"".join((folder / name).read_bytes() for name in names if (folder / name).exists())


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    sink = FileSink(tmp_path / "audit.log", MAX_BYTES)
    sink.open()
    return sink


@pytest.mark.parametrize("size", range(1, MAX_BYTES + 3))
def test_a_file_is_rotated_before_a_line_that_does_not_fit(
    tmp_path: Path, sink: FileSink, size: int
) -> None:
    lines = [bytes([number + 65]) * (size - 1) + b"\n" for number in range(8)]
    for line in lines:
        write(sink, line)
    files = sorted(tmp_path.iterdir())
    assert read_all(tmp_path) == b"".join(lines)
    for file in files:
        assert file.stat().st_size <= max(MAX_BYTES, size)
        assert file.read_bytes().endswith(b"\n")
    assert len(files) == -(-8 // max(MAX_BYTES // size, 1))


def test_the_number_of_files_is_bounded(tmp_path: Path, sink: FileSink) -> None:
    lines = [f"{number:<19}\n".encode() for number in range(KEPT + 5)]
    write(sink, *lines)
    assert len(list(tmp_path.iterdir())) == KEPT + 1
    assert read_all(tmp_path) == b"".join(lines[-KEPT - 1 :])


def test_it_goes_on_with_the_file_that_is_there(tmp_path: Path, sink: FileSink) -> None:
    write(sink, b"first\n")
    sink.close()
    again = FileSink(tmp_path / "audit.log", MAX_BYTES)
    again.open()
    write(again, b"second\n", b"third-too-long\n")
    assert (tmp_path / "audit.log.1").read_bytes() == b"first\nsecond\n"


def test_nobody_else_may_read_it(tmp_path: Path, sink: FileSink) -> None:
    assert (tmp_path / "audit.log").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_is_moved_away_is_begun_anew(
    tmp_path: Path, sink: FileSink, is_replaced: bool
) -> None:
    write(sink, b"one\n")
    (tmp_path / "audit.log").rename(tmp_path / "moved")
    if is_replaced:
        (tmp_path / "audit.log").touch()
    write(sink, b"two\n")
    assert (tmp_path / "moved").read_bytes() == b"one\n"
    assert (tmp_path / "audit.log").read_bytes() == b"two\n"


def test_a_file_that_is_cut_begins_at_its_begin(tmp_path: Path, sink: FileSink) -> None:
    write(sink, b"x" * 15 + b"\n")
    os.truncate(tmp_path / "audit.log", 0)
    write(sink, b"two\n", b"y" * 10 + b"\n")
    assert (tmp_path / "audit.log").read_bytes() == b"two\n" + b"y" * 10 + b"\n"


def test_no_half_line_is_left_on_a_full_disk(
    tmp_path: Path, sink: FileSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(sink, b"one\n")
    real = os.write
    left = [7]

    def write_as_fits(file: int, line: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "full")
        written = real(file, line[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(sinks.os, "write", write_as_fits)
    write(sink, b"two\n")
    for _ in range(2):
        with pytest.raises(OSError, match=r"full|No space"):
            write(sink, b"three\n")
        assert (tmp_path / "audit.log").read_bytes() == b"one\ntwo\n"
    left[0] = 100
    write(sink, b"three\n")
    assert (tmp_path / "audit.log").read_bytes() == b"one\ntwo\nthree\n"


def test_a_folder_that_is_gone_takes_no_files_away(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    sink = FileSink(folder / "audit.log", MAX_BYTES)
    sink.open()
    write(sink, b"one\n")
    folder.rename(tmp_path / "away")
    for _ in range(KEPT + 1):
        with pytest.raises(FileNotFoundError):
            write(sink, b"x" * 19 + b"\n")
    (tmp_path / "away").rename(folder)
    write(sink, b"x" * 19 + b"\n")
    assert read_all(folder) == b"one\n" + b"x" * 19 + b"\n"


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"No such device|no regular file"):
        FileSink(tmp_path / "pipe", MAX_BYTES).open()


def test_standard_output_takes_whole_lines_as_they_are_read() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    sink = StdoutSink(writing)
    sink.open()
    lines = [bytes([65 + number]) * 50_000 + b"\n" for number in range(8)]

    def write_all() -> None:
        for line in lines:
            sink.write(line)
        sink.close()
        os.close(writing)

    thread = threading.Thread(target=write_all)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"".join(lines)
    thread.join()
