"""Files that commands are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.admin import text_files
from cli.admin.resets.reset_positions import read_plan
from cli.admin.whatif.weights_file import read_weights
from cli.errors import CommandError, ExitCode


@pytest.mark.parametrize("read", [read_plan, read_weights])
def test_a_file_without_end_is_refused(read: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "FILE_BYTES_MAX", 1 << 20)
    with pytest.raises(CommandError, match="larger than 1 MiB: is it the right file") as caught:
        read(Path("/dev/zero"))  # type: ignore[operator]
    assert caught.value.exit_code is ExitCode.USAGE


def test_lines_end_as_they_may(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_bytes(b"orders,0,1\r\norders,1,2\n")
    assert read_plan(path).text == "orders,0,1\r\norders,1,2\n"
    path.write_bytes(b"orders:0=1\r\norders:1=2\r\n")
    assert read_weights(path) == ["orders:0=1", "orders:1=2"]
