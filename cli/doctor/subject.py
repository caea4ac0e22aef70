"""What is examined: settings, a data folder, and the server that uses it if one does."""

from __future__ import annotations

from dataclasses import dataclass

from cli.data_folder import DataFolder
from cli.doctor.running_server import RunningServer
from cli.settings import Resolved


@dataclass(frozen=True, slots=True)
class Subject:
    """``server`` is ``None`` if no server uses the folder."""

    resolved: Resolved
    folder: DataFolder
    server: RunningServer | None
