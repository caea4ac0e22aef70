"""Paths as people write them, and the errors for those that do not exist."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.source.errors import NotALog
from pipeline.source.logs.paths import find_path, is_of_other_system
from pipeline.source.slice_reading import find_notes, open_log
from tests.pipeline.logged import SEGMENTS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log at a path with unusual characters, in the home and the current folder."""
    folder = tmp_path / "a b%20[1]"
    folder.mkdir()
    shutil.copytree(SEGMENTS / "__consumer_offsets-5", folder / "__consumer_offsets-5")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.mark.parametrize(
    "form",
    [
        "{path}",
        "{path}/",
        "{name}",
        "./{name}/",
        "~/{name}",
        "file:{path}",
        "file://{path}",
        "FILE://localhost{path}",
        "{uri}",
        "{path}/__consumer_offsets-5/../",
    ],
)
def test_a_path_is_found_in_any_form(folder: Path, form: str) -> None:
    text = form.format(path=folder, name=folder.name, uri=folder.as_uri())
    log = open_log(text)
    try:
        assert log.partitions == (5,)
    finally:
        log.close()
    assert find_path(text).is_absolute()
    assert find_notes(text) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nowhere", "nowhere does not exist"),
        ("file:/nowhere", "does not exist"),
        ("~nobody-here/log", "does not exist"),
        ("segments-*", "patterns are not expanded"),
        ("s3a://bucket/log", "mount what s3a: names"),
        ("x" * 5_000, "does not exist"),
        ("a\0b", "does not exist"),
    ],
)
def test_what_leads_nowhere_is_told_so(folder: Path, text: str, said: str) -> None:
    with pytest.raises(NotALog) as raised:
        open_log(text)
    assert said in str(raised.value)


def test_only_what_is_no_path_here_is_for_others(folder: Path) -> None:
    (folder.parent / "s3a:").mkdir()
    assert is_of_other_system("hdfs://name/log")
    assert is_of_other_system("kafka://localhost:9092")
    assert not is_of_other_system("s3a:")
    assert not is_of_other_system("file:/nowhere")
    assert not is_of_other_system("nowhere")
