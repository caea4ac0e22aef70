"""Every test is in a group, and the groups fit into the time that there is."""

from pathlib import Path

import pytest

from tests.groups import GROUPS, compute_group, find_alone, find_tests


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("unit/assignors/test_uniform.py", "assignors"),
        ("unit/gateway/test_frames.py", "protocol"),
        ("unit/storage/rocks/test_rocks.py", "log"),
        ("unit/cli/serve/test_serve.py", "e2e"),
        ("a_new_folder/test_it.py", "protocol"),
        ("test_tidy.py", "protocol"),
        ("soak/test_soak.py", "soak"),
        ("test_readme.py", "e2e"),
    ],
)
def test_the_longest_prefix_names_the_group(path: str, group: str) -> None:
    assert compute_group(path) == group


def test_the_groups_share_40_minutes() -> None:
    assert sum(group.minutes for group in GROUPS) == 40


def test_every_test_file_is_found_once() -> None:
    found = [path for paths in find_tests().values() for path in paths]
    assert Path(__file__).resolve() in found
    assert len(found) == len(set(found))


def test_a_file_with_a_test_that_runs_alone_is_known(tmp_path: Path) -> None:
    plain, alone = tmp_path / "test_plain.py", tmp_path / "test_alone.py"
    plain.write_text("def test_it(): pass\n")
    alone.write_text("@pytest.mark." + "alone\ndef test_it(): pass\n")
    assert find_alone([plain, alone]) == [alone]
