"""The file of `muster whatif --weights`: the config's entries, or CSV of `muster config weigh`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.admin.whatif.weights_file import read_weights
from cli.errors import CommandError, ExitCode


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("orders:0=2\n# none\n\norders:1-3=0.5\n", ["orders:0=2", "orders:1-3=0.5"]),
        ("orders=1, orders:3=12.5", ["orders=1", "orders:3=12.5"]),
        ("TOPIC,PARTITION,WEIGHT\norders,0,2\norders,1,0.3\n", ["orders:0=2", "orders:1=0.3"]),
        ("", []),
    ],
)
def test_both_forms_are_read(text: str, entries: list[str], tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_text(text)
    assert read_weights(path) == entries


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"orders:0", "orders:0 is not TOPIC"),
        (b"orders:0=-1", "no weight of 0 or more"),
        (b"TOPIC,PARTITION,WEIGHT\norders,0\n", "orders,0 is not topic,partition,weight"),
        (b"\xff\xfe", "is not text"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(data: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(data)
    with pytest.raises(CommandError, match=says) as caught:
        read_weights(path)
    assert caught.value.exit_code is ExitCode.USAGE
