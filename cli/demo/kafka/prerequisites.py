"""What a Kafka broker needs on the machine, and the one line that says what to install."""

import re
import shutil
import subprocess

JAVA_MAJOR_REQUIRED = 17


class MissingPrerequisite(RuntimeError):
    """Something that Kafka needs is not on this machine; the message says what to install."""


def check_java() -> str:
    """Return the path of a Java that runs Kafka 4.3, or raise MissingPrerequisite."""
    return _check_jdk_command("java", "openjdk-17-jre-headless")


def check_javac() -> str:
    """Return the path of a Java compiler for the client programs, or raise MissingPrerequisite."""
    return _check_jdk_command("javac", "openjdk-17-jdk-headless")


def check_maven() -> str:
    """Return the path of `mvn`, or raise MissingPrerequisite."""
    check_java()
    path = shutil.which("mvn")
    if path is None:
        raise MissingPrerequisite("needs Maven (mvn) to copy Kafka's jars: install maven")
    return path


def _check_jdk_command(command: str, package: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise MissingPrerequisite(
            f"needs {command} of Java {JAVA_MAJOR_REQUIRED}: install {package}"
        )
    major = _read_major_version(path)
    if major < JAVA_MAJOR_REQUIRED:
        raise MissingPrerequisite(
            f"needs {command} of Java {JAVA_MAJOR_REQUIRED}, found {major}: install {package}"
        )
    return path


def _read_major_version(path: str) -> int:
    """Major version of a java or javac; 0 where its answer cannot be read (as 1.8 counts as 1)."""
    # `java` knows `-version` in every release (on stderr) and `--version` only since 9.
    done = subprocess.run(
        [path, "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    match = re.search(r'(?:version "|javac )(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match else 0
