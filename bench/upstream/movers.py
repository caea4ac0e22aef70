"""Members of one classic group that is moved, in a process of kload."""

from __future__ import annotations

import subprocess
from typing import Self

from bench.figures import Json
from bench.peer import KloadError, build_kload, read_line


class Movers:
    """Members that commit until the block ends; `joined` is what they saw when they joined.

    Each report has how long members stood still since the one before, `longest_pause_ms`: between
    two responses without an error to a commit or a heartbeat of one member. Raises KloadError if
    there is no report within `timeout_s`.
    """

    def __init__(self, bootstrap: str, group: str, members: int, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        words = ["-addr", bootstrap, "-group", group, "-members", str(members)]
        self._process = subprocess.Popen(
            [str(build_kload()), "moves", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self.joined = self._read()
        except BaseException:
            self._end()
            raise

    def add(self) -> Json:
        """One more member joins; returns when all of them work again."""
        return self._say("add")

    def wait_until_moved(self) -> Json:
        """Returns when all of them work at another coordinator than before."""
        return self._say("moved")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_raised: object) -> None:
        if kind is not None:
            self._end()
            return
        try:
            _, message = self._process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            self._end()
            raise
        if self._process.returncode != 0:
            raise KloadError(message.strip())

    def _say(self, word: str) -> Json:
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(f"{word}\n")
        pipe.flush()
        return self._read()

    def _read(self) -> Json:
        return read_line(self._process, self._timeout_s, "report")

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
