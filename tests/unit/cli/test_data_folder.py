"""Who may read a data folder: it has the keys of users."""

from __future__ import annotations

from pathlib import Path

from cli.data_folder import DataFolder


def compute_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "new" / "data")
    folder.prepare()
    assert compute_mode(folder.path) == 0o700
    folder.prepare()
    assert compute_mode(folder.path) == 0o700


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir()
    path.chmod(0o750)
    DataFolder(path).prepare()
    assert compute_mode(path) == 0o750
