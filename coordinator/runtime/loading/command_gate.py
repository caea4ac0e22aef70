"""Whether the server accepts commands: per group from its load until the server stops."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.runtime.api import Reply
from coordinator.runtime.loading.load_in_progress import LoadInProgress
from coordinator.runtime.loading.loading import Loading
from model.commands.command import Command
from model.errors import CoordinatorNotAvailable


class Serving:
    """Refuses commands that arrive too early or too late; ``submit`` takes the others."""

    def __init__(self, submit: Callable[[Command, Reply], None]) -> None:
        self._submit = submit
        self._loading: Loading | None = None
        self._load_in_progress: LoadInProgress | None = None
        self._is_loaded = False
        self.is_stopping = False

    def begin(self, loading: Loading, load_in_progress: LoadInProgress) -> None:
        """Accept commands for groups that are loaded; the topics are."""
        self._loading = loading
        self._load_in_progress = load_in_progress

    def note_loaded(self) -> None:
        """Note that every group is loaded."""
        self._is_loaded = True

    def stop(self) -> None:
        """Refuse every command from now on, and stop loading."""
        self.is_stopping = True
        if self._loading is not None:
            self._loading.stop()

    @property
    def loading(self) -> Loading:
        """The load in progress, or finished."""
        assert self._loading is not None, "the runtime is not started"
        return self._loading

    @property
    def is_started(self) -> bool:
        """Whether loading has begun."""
        return self._loading is not None

    @property
    def is_ready(self) -> bool:
        """Whether every command is handled."""
        return self._is_loaded and not self.is_stopping

    def refuse(self, command: Command, reply: Reply) -> bool:
        """Answer a command that arrives too early or too late; ``False`` if it can be handled."""
        if self._load_in_progress is None or self.is_stopping:
            reply(CoordinatorNotAvailable("The coordinator is not available."))
            return True
        return self._load_in_progress.refuse(command, reply, self._submit)
