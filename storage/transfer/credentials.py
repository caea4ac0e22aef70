"""Leaves the credentials of users out of a copy of a store, without a trace.

A tombstone would only hide them, so the copy is compacted. That takes as long as there are side
records, and rocksdict holds the GIL meanwhile: a process of its own does it, so that a server that
makes a backup goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from storage.folder.watermark import sync_folder
from storage.log_store import StoreFailed
from storage.rocks.rocks_opening import remove_side
from storage.side_codec import CREDENTIAL_KINDS, SCRAM_CREDENTIAL_KIND

_PROGRAM: Final = "import sys; from storage.transfer.credentials import main; main(sys.argv[1])"
_WRITTEN_ON_OPENING: Final = ("LOG", "LOCK")
_KIND_AND_MECHANISM: Final = 2
"""Bytes of the key of a credential before the user."""


def leave_out_credentials(rocksdb: Path) -> int:
    """Remove the credentials from a database that nobody has open; how many users had any.

    Raises ``StoreFailed``; the copy must then be discarded.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, str(rocksdb)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise StoreFailed(f"{rocksdb}: the credentials cannot be left out: {why[0]}")
    for file in rocksdb.iterdir():
        if file.name.startswith(_WRITTEN_ON_OPENING):
            file.unlink()
        else:
            _sync(file)
    sync_folder(rocksdb)
    return int(done.stdout)


def main(rocksdb: str) -> None:
    """The program of the process: prints the number of users."""
    removed = remove_side(Path(rocksdb), CREDENTIAL_KINDS)
    users = {key[_KIND_AND_MECHANISM:] for key in removed if key.startswith(SCRAM_CREDENTIAL_KIND)}
    sys.stdout.write(f"{len(users)}\n")


def has_credentials(key: bytes) -> bool:
    """Whether the side record with this key must not leave the store without being asked for."""
    return key.startswith(CREDENTIAL_KINDS)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
