"""Jars copied once from the Maven repository that ``mvn`` of this machine uses."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cli.demo.kafka.prerequisites import MissingPrerequisite, check_java, check_maven

KAFKA_VERSION = "4.3.0"
BROKER = {
    "org.apache.kafka:kafka_2.13": KAFKA_VERSION,
    "org.apache.logging.log4j:log4j-slf4j-impl": "2.24.3",
}
"""A broker's artefacts with their versions; Maven finds what they need."""

_PLUGIN_VERSION = "3.8.1"
_COPY_TIMEOUT_S = 600


def find_user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Where this user's programs keep what they can fetch again."""
    root = environment.get("XDG_CACHE_HOME", "")
    return (Path(root) if root else Path.home() / ".cache") / "muster"


def ensure_artefacts(home: Path, artefacts: Mapping[str, str]) -> Path:
    """The folder with the jars of artefacts and all that they need, copied if that was not done.

    Raises what ``ensure_pom_jars`` raises.
    """
    return ensure_pom_jars(home, compute_pom(artefacts))


def ensure_pom_jars(home: Path, pom: str) -> Path:
    """The folder in ``home`` with all jars that a pom names, copied if that was not done.

    Safe for several processes at once: one copies, the others wait for it. Raises
    ``MissingPrerequisite`` if Java or Maven is missing, or no Maven repository can be reached.
    """
    check_java()
    libs, stamp = home / "libs", home / "complete"
    wanted = hashlib.sha256(pom.encode()).hexdigest()
    if _is_complete(stamp, wanted):
        return libs
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock"):
        if not _is_complete(stamp, wanted):
            stamp.unlink(missing_ok=True)
            # A copy that was cut short leaves half a jar behind, which Maven would not replace.
            shutil.rmtree(libs, ignore_errors=True)
            file = home / "pom.xml"
            file.write_text(pom)
            _copy_dependencies(file, libs)
            stamp.write_text(wanted)
    return libs


def compute_pom(artefacts: Mapping[str, str]) -> str:
    """A pom of which only the dependencies matter."""
    dependencies = "".join(
        "    <dependency>"
        f"<groupId>{name.partition(':')[0]}</groupId>"
        f"<artifactId>{name.partition(':')[2]}</artifactId>"
        f"<version>{version}</version>"
        "</dependency>\n"
        for name, version in artefacts.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>muster</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}  </dependencies>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId>
    <artifactId>maven-dependency-plugin</artifactId>
    <version>{_PLUGIN_VERSION}</version>
  </plugin></plugins></build>
</project>
"""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path``, which is made; it ends with this process."""
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
    try:
        done = subprocess.run(
            [*command, f"-DoutputDirectory={libs}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COPY_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MissingPrerequisite(f"needs Kafka's jars: mvn took {_COPY_TIMEOUT_S} s") from error
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        reason = errors[0] if errors else f"mvn ended with {done.returncode}"
        raise MissingPrerequisite(
            f"needs Kafka's jars: let mvn reach a Maven repository, then try again ({reason})"
        )
