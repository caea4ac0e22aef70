"""Kafka's jars, copied once from the Maven repository of this machine into the checkout's cache.

`python -m tests.kafka.jars` does it from the command line and prints the folder.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kafka.prerequisites import MissingPrerequisite, check_java, check_maven

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache"
KAFKA_VERSION = "4.3.0"

BROKER, STREAMS, CONNECT = "kafka", "streams", "connect"
"""Sets of jars: a broker with its tools and clients; Kafka Streams alone, to be put before those;
Connect's workers with all that they need."""
KAFKA_3_9, KAFKA_2_8 = "kafka-3.9.1", "kafka-2.8.2"
"""Brokers of other releases, each with its tools and clients; 2.8.2 comes with its ZooKeeper."""
_SETS = {
    BROKER: ("pom.xml", f"{BROKER}-{KAFKA_VERSION}"),
    STREAMS: ("streams.xml", f"{STREAMS}-{KAFKA_VERSION}"),
    CONNECT: ("connect.xml", f"{CONNECT}-{KAFKA_VERSION}"),
    KAFKA_3_9: ("kafka_3_9.xml", KAFKA_3_9),
    KAFKA_2_8: ("kafka_2_8.xml", KAFKA_2_8),
}
"""The pom of each, beside this file, and its folder in the cache."""

_COPY_TIMEOUT_S = 600


def ensure_jars(cache: Path = CACHE, name: str = BROKER) -> Path:
    """Return the folder with a set of Kafka's jars, copying them first where that was not done yet.

    Safe for several processes at once: one copies, the others wait for it. Raises
    MissingPrerequisite where Java or Maven is missing, or no Maven repository can be reached.
    """
    check_java()
    pom_name, folder = _SETS[name]
    pom = Path(__file__).with_name(pom_name)
    home = cache / folder
    libs, stamp = home / "libs", home / "complete"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
    if _is_complete(stamp, wanted):
        return libs
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock"):
        if not _is_complete(stamp, wanted):
            stamp.unlink(missing_ok=True)
            # A copy that was cut short leaves half a jar behind, which Maven would not replace.
            shutil.rmtree(libs, ignore_errors=True)
            _copy_dependencies(pom, libs)
            stamp.write_text(wanted)
    return libs


def class_path(libs: Path) -> str:
    """The class path of every jar in `libs`, in the form `java -cp` takes."""
    return str(libs / "*")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`, which is made; it ends with this process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_complete(stamp: Path, wanted: str) -> bool:
    try:
        return stamp.read_text() == wanted
    except FileNotFoundError:
        return False


def _copy_dependencies(pom: Path, libs: Path) -> None:
    command = [check_maven(), "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={libs}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_COPY_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        reason = errors[0] if errors else f"mvn ended with {done.returncode}"
        raise MissingPrerequisite(
            f"needs Kafka's jars: let mvn reach a Maven repository, then try again ({reason})"
        )


def main() -> int:
    try:
        libs = ensure_jars()
        for name in (STREAMS, KAFKA_3_9, KAFKA_2_8):
            ensure_jars(name=name)
    except MissingPrerequisite as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"{libs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
