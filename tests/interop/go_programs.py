"""Small Go programs on the clients of others, built once for their sources into the cache.

They speak as the Java programs do: events on standard output, commands on standard input.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.kafka.jars import CACHE, locked
from tests.kafka.java import JavaProgram
from tests.kafka.prerequisites import MissingPrerequisite

SHARED = Path(__file__).with_name("goprogram")
"""What the programs share, a module of its own beside theirs."""
_FETCH_TIMEOUT_S = 60.0
_BUILD_TIMEOUT_S = 240.0


class GoProgram(JavaProgram):
    """The running program; all that a Java program has, for nothing there knows Java."""


class GoError(RuntimeError):
    """The Go program did not build; the message is the compiler's."""


def build_go(sources: Path, client: str, cache: Path = CACHE) -> Path:
    """Build the program of a folder where its sources have changed, and return its path.

    Safe for several processes at once. Raises MissingPrerequisite where Go is missing or too old,
    or the modules of the client cannot be fetched, and GoError with the compiler's messages.
    """
    digest = hashlib.sha256()
    for source in sorted([*sources.iterdir(), *SHARED.iterdir()]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    home = cache / client
    program = home / digest.hexdigest()[:16] / "consumer"
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock"):
        if not program.exists():
            _fetch_modules(sources, client)
            _build(sources, program)
    return program


def _fetch_modules(sources: Path, client: str) -> None:
    done = _run_go(sources, "mod", "download", timeout_s=_FETCH_TIMEOUT_S)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"go ended with {done.returncode}"])[-1]
        raise MissingPrerequisite(
            f"needs {client}, and a Go that can build it: let go reach a module proxy, or install "
            f"the Go that go.mod asks for, then try again ({reason})"
        )


def _build(sources: Path, program: Path) -> None:
    # Renamed into place at the end, so that a program under this name is always complete.
    with tempfile.TemporaryDirectory(prefix="unfinished-", dir=program.parents[1]) as folder:
        built = Path(folder) / program.name
        done = _run_go(sources, "build", "-o", str(built), ".", timeout_s=_BUILD_TIMEOUT_S)
        if done.returncode != 0:
            raise GoError(f"the Go program does not build:\n{done.stdout}{done.stderr}")
        program.parent.mkdir(exist_ok=True)
        built.rename(program)


def _run_go(sources: Path, *words: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    command = shutil.which("go")
    if command is None:
        raise MissingPrerequisite("needs Go: install golang-go")
    try:
        return subprocess.run(
            [command, *words],
            cwd=sources,
            env={**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MissingPrerequisite(
            f"needs a Go module proxy that answers: go {words[0]} took over {timeout_s:.0f} s"
        ) from None
