"""A bash in a pseudo terminal: what is typed into it, and what it writes, with the time."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.recording.terminal import Terminal

_TYPING_S: Final = 0.045
_SAME_S: Final = 0.02
"""What is written within this time is one change."""


class Session:
    """Feeds ``terminal``. Call ``close`` at the end."""

    def __init__(self, terminal: Terminal, environment: Mapping[str, str], folder: Path) -> None:
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pid, self._file = pty.fork()
        if not self._pid:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile"], dict(environment))
        size = struct.pack("HHHH", terminal.rows, terminal.columns, 0, 0)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, size)
        self._began_s = time.monotonic()

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._began_s

    def begin(self) -> None:
        """Forget what was, and begin with an empty screen and a prompt."""
        self.wait(1.0)
        self._terminal.reset()
        self._began_s = time.monotonic()
        os.write(self._file, b"\f")
        self.wait(0.6)

    def wait(self, seconds: float) -> None:
        """Go on recording."""
        end_s = self.now_s + seconds
        while (left_s := end_s - self.now_s) > 0:
            if select.select([self._file], [], [], left_s)[0]:
                at_s = self.now_s
                text = self._decoder.decode(os.read(self._file, 65_536))
                self._terminal.feed(text, round(at_s / _SAME_S) * _SAME_S)

    def wait_for(self, text: str, within_s: float) -> None:
        """Until a line that is seen has this text. Raises ``TimeoutError``."""
        end_s = self.now_s + within_s
        while not self._shows(text):
            if self.now_s > end_s:
                shown = "\n".join(self._find_lines())
                raise TimeoutError(f"{text!r} was not shown within {within_s:g} s:\n{shown}")
            self.wait(0.05)

    def _shows(self, text: str) -> bool:
        return any(text in line for line in self._find_lines())

    def _find_lines(self) -> list[str]:
        lines = (versions[-1][1] for _, versions in sorted(self._terminal.versions.items()))
        return ["".join(sign for sign, _ in row) for row in lines]

    def type(self, text: str) -> None:
        """As a person types."""
        for sign in text:
            os.write(self._file, sign.encode())
            self.wait(_TYPING_S)

    def close(self) -> None:
        """End the shell."""
        os.close(self._file)
        os.waitpid(self._pid, 0)
