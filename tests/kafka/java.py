"""Java programs on Kafka's jars: compiled once into the cache, then started at once.

`start_java` gives a `JavaProgram`, whose standard output is read as JSON lines; `run_java` runs
one to its end.
"""

import contextlib
import hashlib
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.kafka.broker import LOG_CONFIG
from tests.kafka.jars import BROKER, CACHE, KAFKA_VERSION, class_path, ensure_jars, locked
from tests.kafka.prerequisites import check_java, check_javac
from tests.kafka.tools import SHORT_RUN_JVM_OPTIONS

_COMPILE_TIMEOUT_S = 120.0
_EVENT_TIMEOUT_S = 60.0
_EXIT_TIMEOUT_S = 60.0

Event = dict[str, Any]


class JavaError(RuntimeError):
    """A Java program did not compile, ended early, or did not say in time what was awaited."""


def compile_java(folder: Path, jars: Sequence[str] = (BROKER,)) -> Path:
    """Compile all `*.java` of one folder with sets of jars and return the folder of the classes.

    The result is kept under the hash of the sources, so only a change compiles again. Several
    processes may call it at once. Raises JavaError with the compiler's messages.
    """
    sources = sorted(folder.glob("*.java"))
    if not sources:
        raise JavaError(f"no Java sources in {folder}")
    digest = hashlib.sha256(f"{KAFKA_VERSION} {' '.join(jars)}".encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    home = CACHE / "java"
    classes = home / digest.hexdigest()[:16]
    if not classes.exists():
        home.mkdir(parents=True, exist_ok=True)
        with locked(home / "lock"):
            if not classes.exists():
                _compile(sources, classes, jars)
    return classes


def java_command(
    folder: Path,
    main_class: str,
    arguments: Sequence[str] = (),
    jars: Sequence[str] = (BROKER,),
    jvm_options: Sequence[str] = (),
) -> list[str]:
    """The command line that runs `main_class` of the sources in `folder`, compiled if need be."""
    return [
        check_java(),
        *SHORT_RUN_JVM_OPTIONS,
        *jvm_options,
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        "-cp",
        f"{compile_java(folder, jars)}:{compute_class_path(jars)}",
        main_class,
        *arguments,
    ]


def compute_class_path(jars: Sequence[str]) -> str:
    """The class path of sets of jars, in their order. Raises MissingPrerequisite."""
    return ":".join(class_path(ensure_jars(name=name)) for name in jars)


def run_java(
    folder: Path, main_class: str, *arguments: str, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its exit code is not checked. Raises TimeoutExpired."""
    return subprocess.run(
        java_command(folder, main_class, arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def start_java(folder: Path, main_class: str, *arguments: str) -> "JavaProgram":
    """Start a program that prints one JSON object a line and takes commands on standard input."""
    return JavaProgram(java_command(folder, main_class, arguments))


class JavaProgram:
    """A running program, its events in the order it printed them, and its standard input.

    `events` and `log` grow by themselves as the program prints: JSON objects, and all other lines
    (warnings of the client library). A context manager: leaving it ends the program with SIGKILL.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.events: list[Event] = []
        self.log: list[str] = []
        self._awaited = 0
        self._ended = False
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative after a signal."""
        return self._process.poll()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def send(self, line: str) -> None:
        """Give the program one command line. Raises JavaError when it has ended."""
        stdin = self._stream(self._process.stdin)
        try:
            stdin.write(line + "\n")
            stdin.flush()
        except OSError as error:
            raise JavaError(f"the program has ended: {self._describe()}") from error

    def wait_for(
        self,
        name: str,
        where: Callable[[Event], bool] = lambda _event: True,
        timeout_s: float = _EVENT_TIMEOUT_S,
    ) -> Event:
        """The next event called `name` for which `where` holds; those before it are passed over.

        Raises JavaError when the program ends first, or `timeout_s` goes by; the message shows
        what it did say.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                while self._awaited < len(self.events):
                    event = self.events[self._awaited]
                    self._awaited += 1
                    if event.get("event") == name and where(event):
                        return event
                if self._ended:
                    raise JavaError(f"ended before an event {name!r}: {self._describe()}")
                if not self._changed.wait(deadline - time.monotonic()):
                    raise JavaError(f"no event {name!r} in {timeout_s} s: {self._describe()}")

    def wait(self, timeout_s: float = _EXIT_TIMEOUT_S) -> int:
        """Wait until the program ends by itself and return its exit code.

        Raises JavaError, with the program still running, when that takes longer than `timeout_s`.
        """
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise JavaError(f"still running after {timeout_s} s: {self._describe()}") from None
        self._release()
        return code

    def kill(self) -> None:
        """End the program with SIGKILL, as a crash of a client would; safe to call twice."""
        self._process.kill()
        self._process.wait()
        self._release()

    def _read_lines(self) -> None:
        for line in self._stream(self._process.stdout):
            event = _parse_event(line)
            with self._changed:
                if event is None:
                    self.log.append(line.rstrip("\n"))
                else:
                    self.events.append(event)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _release(self) -> None:
        # What was not sent yet cannot be sent any more.
        with contextlib.suppress(BrokenPipeError):
            self._stream(self._process.stdin).close()
        self._reader.join()
        self._stream(self._process.stdout).close()

    def _describe(self) -> str:
        lines = [json.dumps(event) for event in self.events[-5:]] + self.log[-15:]
        return "\n  ".join(["it said", *lines]) if lines else "it said nothing"

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def _parse_event(line: str) -> Event | None:
    # A native library may have begun a line on standard error, into which the event then falls.
    begin = line.find('{"')
    if begin < 0:
        return None
    try:
        event = json.loads(line[begin:])
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _compile(sources: Sequence[Path], classes: Path, jars: Sequence[str]) -> None:
    command = [check_javac(), "-Xlint:all", "-cp", compute_class_path(jars)]
    # Renamed into place at the end, so that a folder under this name is always complete.
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=classes.parent))
    try:
        done = subprocess.run(
            [*command, "-d", str(unfinished), *map(str, sources)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise JavaError(f"the Java programs do not compile:\n{done.stdout}")
        unfinished.rename(classes)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
