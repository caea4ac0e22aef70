"""The cleanup policies that topics were created with, where it is another than ``delete``.

A small file in the topic's folder says so. It is durable before the topic is created, so that no
topic that was asked to keep the last record of each key ever drops one.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

from model.ids import TopicId

DELETE: Final = "delete"
COMPACT: Final = "compact"
CLEANUP_POLICIES: Final = frozenset({DELETE, COMPACT, "compact,delete", "delete,compact"})
"""What Kafka accepts as ``cleanup.policy``, but for the empty list."""

FILE_NAME: Final = "cleanup-policy"


class CleanupPolicies:
    """Policies by topic. ``write`` and ``remove`` alone may run in another thread."""

    def __init__(self, folder: Path) -> None:
        """Read what is in ``folder``. Raises ``OSError``."""
        self._folder = folder
        self._policies: dict[TopicId, str] = {}
        for path in folder.glob(f"*/{FILE_NAME}"):
            text = path.read_text()
            if len(path.parent.name) == 2 * 16 and text in CLEANUP_POLICIES:
                self._policies[TopicId(bytes.fromhex(path.parent.name))] = text

    def get(self, topic_id: TopicId) -> str:
        """The policy of a topic."""
        return self._policies.get(topic_id, DELETE)

    def topic_ids(self) -> Collection[TopicId]:
        """The topics that have another policy than ``delete``."""
        return self._policies.keys()

    def add(self, topic_id: TopicId, policy: str) -> None:
        """From now on; what is written makes it last."""
        self._policies[topic_id] = policy

    def forget(self, topic_id: TopicId) -> None:
        """The topic is gone, and its folder with it."""
        self._policies.pop(topic_id, None)

    def write(self, topic_id: TopicId, policy: str) -> None:
        """Make the policy of a topic durable, before there is the topic. Raises ``OSError``."""
        folder = self._folder / topic_id.hex()
        folder.mkdir(exist_ok=True)
        with (folder / FILE_NAME).open("w") as file:
            file.write(policy)
            file.flush()
            os.fsync(file.fileno())
        for parent in (folder, self._folder):
            descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
