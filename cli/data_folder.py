"""The data folder: its parts, and the file in which a running server publishes its addresses."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from cli.errors import CommandError, ExitCode

STORE = "store"
TOPICS = "topics"
ENDPOINTS = "endpoints.json"
RESERVE = "reserve"
UPSTREAM = "upstream"
EVIDENCE = "evidence"
_OURS = {STORE, f"{STORE}.building", TOPICS, ENDPOINTS, RESERVE, UPSTREAM, EVIDENCE}
_HARMLESS = {"lost+found"}


class DataFolder:
    """A folder that holds the log (`store`), the records of topics (`topics`) and little else.

    `endpoints.json` exists while a server runs: its process id and, for each listener, the
    address that it is bound to: `kafka` for the first of the Kafka wire, the others by their
    names. Tests and the demo read it to learn ports that the system chose.
    A killed server leaves it behind; the next one removes it when it starts.
    `reserve` reserves disk space: see `cli.serve.disk_reserve`. `upstream` has the id of the
    cluster that the server stands in front of. `evidence` has a file for each log partition that
    was stopped because a command would have violated an invariant.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / STORE
        self.topics = path / TOPICS
        self.endpoints = path / ENDPOINTS
        self.reserve = path / RESERVE
        self.upstream = path / UPSTREAM
        self.evidence = path / EVIDENCE

    def prepare(self, *, is_filled: bool = False) -> None:
        """Create the folder if it is missing. Raises ``CommandError`` if it cannot be used.

        A folder in which a restore or an import was killed cannot be used, except by the restore
        or import that is filling it now (``is_filled``).
        """
        from storage.folder.replacement import StoreUnfinished, finish_replacement
        from storage.log_store import StoreError

        try:
            if not self.path.exists():
                # The store has the keys of SCRAM users. Who opened a folder to others keeps it so.
                self.path.mkdir(mode=0o700, parents=True)
            try:
                finish_replacement(self.store)
            except StoreUnfinished as error:
                if not is_filled:
                    raise CommandError(str(error), ExitCode.PRECONDITION) from error
            foreign = self.find_foreign()
            if foreign is not None:
                raise CommandError(
                    f"{self.path} is not empty and is not a Muster data folder (it has "
                    f"{foreign}): use another folder for --data-dir",
                    ExitCode.PRECONDITION,
                )
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise CommandError(
                    f"{self.path} is not writable: use a writable folder for --data-dir"
                )
        except OSError as error:
            raise CommandError(
                f"{self.path} cannot be used for --data-dir: {error.strerror}"
            ) from error
        except StoreError as error:
            raise CommandError(f"{self.path} cannot be used for --data-dir: {error}") from error

    def find_foreign(self) -> str | None:
        """What is in a folder that is no data folder; ``None`` for one that is, or is empty.

        Raises ``OSError``.
        """
        names = {entry.name for entry in self.path.iterdir()} - _HARMLESS
        return min(names) if names and not names & _OURS else None

    def write_evidence(self, name: str, text: str) -> Path:
        """Keep a file of evidence; it never takes the place of another."""
        self.evidence.mkdir(mode=0o700, exist_ok=True)
        path = self.evidence / name
        with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path

    def write_endpoints(self, endpoints: Mapping[str, object]) -> None:
        """Publish the server's addresses; the file appears complete or not at all."""
        unfinished = self.endpoints.with_suffix(".new")
        unfinished.write_text(json.dumps(endpoints, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(self.endpoints)

    def remove_endpoints(self) -> None:
        """Remove the published addresses."""
        self.endpoints.unlink(missing_ok=True)
