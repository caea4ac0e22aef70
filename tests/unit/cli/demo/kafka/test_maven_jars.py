"""Kafka's jars for the demo: what Maven is asked for, and what is said when something lacks."""

import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from cli.demo.kafka import maven_jars
from cli.demo.kafka.maven_jars import BROKER, compute_pom, ensure_artefacts, find_user_cache
from cli.demo.kafka.prerequisites import MissingPrerequisite


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run in place of Maven, which all succeed."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr(maven_jars, "check_java", lambda: "java")
    monkeypatch.setattr(maven_jars, "check_maven", lambda: "mvn")
    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_the_pom_names_each_artefact() -> None:
    pom = ElementTree.fromstring(compute_pom(BROKER))
    namespace = pom.tag.removesuffix("project")
    found = [
        [part.text for part in dependency] for dependency in pom.iter(f"{namespace}dependency")
    ]
    assert found[0] == ["org.apache.kafka", "kafka_2.13", BROKER["org.apache.kafka:kafka_2.13"]]
    assert len(found) == len(BROKER)


def test_jars_are_copied_once_and_again_for_other_artefacts(
    copies: list[list[str]], tmp_path: Path
) -> None:
    libs = ensure_artefacts(tmp_path / "k", {"g:a": "1"})
    ensure_artefacts(tmp_path / "k", {"g:a": "1"})
    assert len(copies) == 1
    assert f"-DoutputDirectory={libs}" in copies[0]
    ensure_artefacts(tmp_path / "k", {"g:a": "2"})
    assert len(copies) == 2


def test_an_unreachable_repository_is_said_in_one_line_and_tried_again(
    copies: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "noise\n[ERROR] no route to host\n[ERROR] x")

    with monkeypatch.context() as failing:
        failing.setattr(subprocess, "run", fail)
        with pytest.raises(
            MissingPrerequisite, match="let mvn reach a Maven repository"
        ) as missing:
            ensure_artefacts(tmp_path / "k", {"g:a": "1"})
    assert "\n" not in str(missing.value)
    ensure_artefacts(tmp_path / "k", {"g:a": "1"})
    assert len(copies) == 1


def test_without_java_nothing_is_copied(
    copies: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise MissingPrerequisite("needs java of Java 17: install a JRE")

    monkeypatch.setattr(maven_jars, "check_java", missing)
    with pytest.raises(MissingPrerequisite, match="Java 17"):
        ensure_artefacts(tmp_path / "k", {"g:a": "1"})
    assert copies == []


def test_the_cache_is_where_the_user_has_it() -> None:
    assert find_user_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/muster")
    assert find_user_cache({}) == Path.home() / ".cache" / "muster"
