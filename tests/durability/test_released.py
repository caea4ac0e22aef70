"""A store of the last release is upgraded, and taken back, as docs/operations.md says.

``tests/golden/released`` has the release's code and a store that it has written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from cli.main import make_app
from storage.folder.watermark import FORMAT_VERSION
from tests.golden.released.released import (
    FORMAT,
    SEEN,
    ReleasedServer,
    look,
    run_muster,
    unpack_code,
    unpack_store,
)
from tests.server import MusterServer, ServerNotStarted
from tests.support.storage.formats import set_format

BEFORE = json.loads(SEEN.read_text())
AFTER = {"payments-0": [11, ""], "payments-1": [5, ""]}


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_code(tmp_path_factory.mktemp("released"))


def commit(server: MusterServer) -> None:
    """What only the new version has acknowledged."""
    consumer = Consumer({"bootstrap.servers": server.kafka, "group.id": "stored"})
    consumer.commit(offsets=[TopicPartition("payments", 0, 11)], asynchronous=False)
    consumer.close()


def test_a_store_of_the_release_is_upgraded_and_goes_back(tmp_path: Path, code: Path) -> None:
    data = unpack_store(tmp_path / "data")
    with MusterServer(data) as server:
        assert look(server) == BEFORE
        commit(server)
        assert server.terminate() == 0
    verified = CliRunner().invoke(make_app("log"), ["log", "verify", str(data)])
    assert verified.exit_code == 0, verified.output
    if FORMAT_VERSION == FORMAT:
        # The same format: the older version goes on with what the newer one has acknowledged.
        expected = {**BEFORE, "offsets": {**BEFORE["offsets"], "stored": AFTER}}
        with ReleasedServer(data, code) as released:
            assert look(released) == expected
            assert released.terminate() == 0
    else:
        check_refused(data, code)


def test_a_newer_format_is_refused_by_name_and_the_backup_is_the_way_back(
    tmp_path: Path, code: Path
) -> None:
    data = unpack_store(tmp_path / "data")
    backup, former = tmp_path / "backup", tmp_path / "former"
    with ReleasedServer(data, code) as released:
        run_muster(released, "log", "backup", str(backup), "--with-credentials")
        released.terminate()
    set_format(data / "store", FORMAT + 1)
    check_refused(data, code)
    restore = (
        "import sys; from pathlib import Path; "
        "from storage.transfer.backup import read_backup, restore_backup; "
        "folder, data = map(Path, sys.argv[1:]); restore_backup(folder, read_backup(folder), data)"
    )
    subprocess.run(
        [sys.executable, "-c", restore, str(backup), str(former)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(code)},
        check=True,
    )
    with ReleasedServer(former, code) as released:
        assert look(released) == BEFORE


def check_refused(data: Path, code: Path) -> None:
    """In one line, and nothing is changed."""
    before = {path: path.stat().st_mtime_ns for path in find_files(data)}
    with pytest.raises(ServerNotStarted) as caught:
        ReleasedServer(data, code).start()
    said = caught.value.output.splitlines()[-1]
    assert said.endswith(f"this version reads up to {FORMAT}: use a newer version")
    after = {path: path.stat().st_mtime_ns for path in find_files(data)}
    assert {path: time_ns for path, time_ns in after.items() if path in before} == before


def find_files(data: Path) -> Iterator[Path]:
    """But for the lock, which has the number of the process."""
    found = (data / "store").rglob("*")
    return (path for path in found if path.is_file() and path.name != "lock")
