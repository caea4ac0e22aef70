"""The benchmark's peer, a Kafka 4.3.0 broker, and kload, the load generator for both sides.

The same generator drives Kafka and Muster over the same protocol. Kafka must be warm for a fair
comparison: in its first seconds a new JVM is half as fast as later.
"""

import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.kafka.broker import SERVER_JVM_OPTIONS, KafkaBroker, Setting
from tests.kafka.jars import CACHE, CHECKOUT, locked
from tests.kafka.prerequisites import MissingPrerequisite, check_javac

KLOAD_SOURCES = Path(__file__).with_name("kload")
WARM_UP_S = 10.0

Report = dict[str, Any]

_BUILD_TIMEOUT_S = 300.0
_RUN_TIMEOUT_S = 600.0


class KloadError(RuntimeError):
    """kload did not build, or failed; the message has its error."""


def build_kload(cache: Path = CACHE) -> Path:
    """Build kload if its sources have changed; return the path of the program.

    Safe for several processes at once. Raises MissingPrerequisite without Go, KloadError with the
    compiler's messages.
    """
    digest = hashlib.sha256()
    for source in [KLOAD_SOURCES / "go.mod", *sorted(KLOAD_SOURCES.glob("*.go"))]:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    home = cache / "kload"
    program = home / digest.hexdigest()[:16] / "kload"
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock"):
        if not program.exists():
            _build(program)
    return program


class Load:
    """A running load program that prints one JSON object at its end; a `with` block ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def read_report(self, timeout_s: float = _RUN_TIMEOUT_S) -> Report:
        """Wait for the end and return the measurements.

        Raises KloadError with the program's message, and subprocess.TimeoutExpired.
        """
        output, message = self._process.communicate(timeout=timeout_s)
        if self._process.returncode != 0:
            raise KloadError(message.strip())
        report: Report = json.loads(output)
        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._process.kill()
        self._process.communicate()


def start_kload(subcommand: str, bootstrap: str, *words: str, **options: object) -> Load:
    """Start a subcommand of kload.

    `options` are kload's own, with `_` for `-`: `start_kload("commits", b, pid=1, warm_up=10)`;
    `pid` may also be a list.
    """
    return Load(_kload_command(subcommand, bootstrap, words, options))


def run_kload(
    subcommand: str,
    bootstrap: str,
    *words: str,
    timeout_s: float = _RUN_TIMEOUT_S,
    **options: object,
) -> Report:
    """Run a subcommand of kload, with options as above, and return its measurements.

    Raises KloadError with its message, and subprocess.TimeoutExpired after killing it.
    """
    with start_kload(subcommand, bootstrap, *words, **options) as load:
        return load.read_report(timeout_s)


class HeldMembers:
    """Settled members that stay until a `with` block ends; `report` has kload's memory figures.

    If there is no report within `timeout_s`, kload is killed and KloadError raised.
    """

    def __init__(
        self, bootstrap: str, *, timeout_s: float = _RUN_TIMEOUT_S, **options: object
    ) -> None:
        self._process = subprocess.Popen(
            _kload_command("memory", bootstrap, (), {**options, "hold": True}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._is_abandoned = False
        try:
            self.report = read_line(self._process, timeout_s, "members")
        except BaseException:
            self._process.kill()
            self._process.communicate()
            raise

    def __enter__(self) -> Self:
        return self

    def abandon(self) -> None:
        """Kill the members instead: leaving would take as long as joining."""
        self._is_abandoned = True

    def __exit__(self, kind: type[BaseException] | None, *_raised: object) -> None:
        gives_up = kind is not None or self._is_abandoned
        if gives_up:
            self._process.kill()
        _, message = self._process.communicate()
        if not gives_up and self._process.returncode != 0:
            raise KloadError(message.strip())


def start_kafka(
    settings: Mapping[str, Setting] | None = None,
    *,
    listeners: Mapping[str, str] | None = None,
    assignment_interval_ms: int | None = 0,
    heap: str = "1g",
) -> KafkaBroker:
    """Start a broker for a benchmark; the caller closes it.

    With `assignment_interval_ms=0` Kafka computes a target for every join; None leaves Kafka's own
    default, at most one target a second. `listeners`: further ones, as of `KafkaBroker`.
    """
    chosen: dict[str, Setting] = dict(settings or {})
    if assignment_interval_ms is not None:
        chosen.setdefault("group.consumer.assignment.interval.ms", assignment_interval_ms)
    broker = KafkaBroker(
        chosen,
        listeners=listeners,
        jvm=SERVER_JVM_OPTIONS,
        jvm_options=(f"-Xms{heap}", f"-Xmx{heap}"),
    )
    try:
        return broker.start()
    except BaseException:
        broker.close()
        raise


def warm_up(bootstrap: str, seconds: float = WARM_UP_S, **security: object) -> None:
    """Send a server every kind of request that is measured later, for `seconds` in total.

    `security` are kload's options for TLS.
    """
    share = seconds / 4
    run_kload("commits", bootstrap, seconds=share, **security)
    run_kload("commits", bootstrap, partitions=100, seconds=share, **security)
    run_kload("heartbeats", bootstrap, partitions=1000, seconds=share * 2, **security)
    run_kload("joins", bootstrap, partitions=1000, rounds=2, **security)


def live_heap_bytes(broker: KafkaBroker) -> int:
    """Bytes of all live objects of a broker, after a full garbage collection.

    Its resident memory says little, because a JVM keeps memory that it once took. To measure a
    difference, take the first reading after a warm-up with the same topic, whose logs and classes
    take memory too.
    """
    jcmd = Path(check_javac()).resolve().with_name("jcmd")
    if not jcmd.exists():
        raise MissingPrerequisite("needs jcmd of Java 17: install openjdk-17-jdk-headless")
    done = subprocess.run(
        [jcmd, str(broker.pid), "GC.class_histogram"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    total = done.stdout.strip().splitlines()[-1].split()
    if total[0] != "Total":
        raise KloadError(f"jcmd gave no total: {done.stdout[-200:]!r}")
    return int(total[2])


def _kload_command(
    subcommand: str, bootstrap: str, words: tuple[str, ...], options: Mapping[str, object]
) -> list[str]:
    command = [str(build_kload()), subcommand, "-addr", bootstrap]
    for name, value in options.items():
        if isinstance(value, list | tuple):
            value = ",".join(map(str, value))
        command.append(f"-{name.replace('_', '-')}={_format_option(value)}")
    return [*command, *words]


def _format_option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _build(program: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise MissingPrerequisite("needs Go 1.24 to build the load generator: install golang-go")
    unfinished = program.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [go, "build", "-o", str(unfinished), "."],
        cwd=KLOAD_SOURCES,
        # The program has no dependencies, and nothing may be downloaded.
        env={**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise KloadError(f"kload does not build:\n{done.stdout}")
    unfinished.rename(program)


def read_line(process: subprocess.Popen[str], timeout_s: float, awaited: str) -> Report:
    """The object that kload prints as a line; kills it and raises KloadError if there is none."""
    assert process.stdout is not None
    late = threading.Timer(timeout_s, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        late.cancel()
    if not line:
        message = process.communicate()[1].strip()
        raise KloadError(message or f"no {awaited} within {timeout_s:.0f} s")
    report: Report = json.loads(line)
    return report
