"""Copying Kafka's jars, with a Java and a Maven that only pretend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka.jars import CHECKOUT, CONNECT, STREAMS, ensure_jars
from tests.kafka.prerequisites import MissingPrerequisite, check_javac

JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
JAVA_8 = "echo 'java version \"1.8.0_401\"' >&2"
# Takes a moment, so that a second process would be at it too if nothing held it back.
MAVEN = """
for argument; do case $argument in -DoutputDirectory=*) out=${argument#*=};; esac; done
echo run >> "$(dirname "$0")/runs"
mkdir "$out" || exit 1
echo half > "$out/a.jar"; sleep 0.3; echo whole > "$out/a.jar"; echo whole > "$out/b.jar"
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is searched first for commands, with nothing of Java after it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "mkdir", "sleep"):
        (folder / name).symlink_to(Path("/bin") / name)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(commands: Path, name: str, script: str) -> None:
    path = commands / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def runs(commands: Path) -> int:
    return len((commands / "runs").read_text().splitlines())


def test_copies_once(commands: Path, tmp_path: Path) -> None:
    install(commands, "java", JAVA_17)
    install(commands, "mvn", MAVEN)
    libs = ensure_jars(tmp_path)
    assert sorted(jar.name for jar in libs.iterdir()) == ["a.jar", "b.jar"]
    assert ensure_jars(tmp_path) == libs
    assert runs(commands) == 1


def test_each_set_of_jars_has_a_folder_of_its_own(commands: Path, tmp_path: Path) -> None:
    install(commands, "java", JAVA_17)
    install(commands, "mvn", MAVEN)
    folders = {ensure_jars(tmp_path), *(ensure_jars(tmp_path, name) for name in (STREAMS, CONNECT))}
    assert len(folders) == runs(commands) == 3


def test_two_processes_at_once_copy_once_and_both_see_whole_jars(
    commands: Path, tmp_path: Path
) -> None:
    install(commands, "java", JAVA_17)
    install(commands, "mvn", MAVEN)
    program = (
        "import sys, pathlib; from tests.kafka.jars import ensure_jars;"
        "libs = ensure_jars(pathlib.Path(sys.argv[1]));"
        "print([jar.read_text().strip() for jar in sorted(libs.iterdir())])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    assert [process.communicate()[0] for process in both] == ["['whole', 'whole']\n"] * 2
    assert runs(commands) == 1


def test_copies_again_what_was_cut_short(commands: Path, tmp_path: Path) -> None:
    install(commands, "java", JAVA_17)
    install(commands, "mvn", MAVEN)
    libs = ensure_jars(tmp_path)
    (libs.parent / "complete").unlink()
    (libs / "a.jar").write_text("half")
    assert (ensure_jars(tmp_path) / "a.jar").read_text() == "whole\n"


def test_a_failing_maven_leaves_nothing_that_counts_as_complete(
    commands: Path, tmp_path: Path
) -> None:
    install(commands, "java", JAVA_17)
    install(commands, "mvn", "echo '[ERROR] no route to host'; exit 1")
    with pytest.raises(MissingPrerequisite, match=r"mvn reach .* no route to host"):
        ensure_jars(tmp_path)
    install(commands, "mvn", MAVEN)
    assert (ensure_jars(tmp_path) / "b.jar").exists()


def test_without_maven(commands: Path, tmp_path: Path) -> None:
    install(commands, "java", JAVA_17)
    with pytest.raises(MissingPrerequisite, match=r"install maven$"):
        ensure_jars(tmp_path)


def test_without_java(commands: Path, tmp_path: Path) -> None:
    with pytest.raises(
        MissingPrerequisite, match=r"^needs java of Java 17: install openjdk-17-jre"
    ):
        ensure_jars(tmp_path)


def test_with_an_old_java(commands: Path, tmp_path: Path) -> None:
    install(commands, "java", JAVA_8)
    with pytest.raises(MissingPrerequisite, match=r"found 1: install openjdk-17-jre-headless$"):
        ensure_jars(tmp_path)


def test_javac_prints_its_version_in_another_form(commands: Path) -> None:
    install(commands, "javac", "echo 'javac 17.0.15'")
    assert check_javac() == str(commands / "javac")
    install(commands, "javac", "echo 'javac 11.0.2'")
    with pytest.raises(MissingPrerequisite, match=r"found 11: install openjdk-17-jdk-headless$"):
        check_javac()


def test_the_command_line_says_what_is_missing_in_one_line(commands: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kafka.jars"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "needs java of Java 17: install openjdk-17-jre-headless\n"
