"""Stores the cleanup policies of topics that were created with another one than ``delete``.

The policy is a small file in the topic's folder. It is durable before the topic is created, so a
compacted topic never loses the last record of a key.
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
"""The values of ``cleanup.policy`` that Kafka accepts, except the empty list."""

FILE_NAME: Final = "cleanup-policy"


class CleanupPolicies:
    """The policies by topic. Only ``write`` may run in another thread."""

    def __init__(self, folder: Path) -> None:
        """Read the policies in ``folder``. Raises ``OSError``."""
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
        """The topics with another policy than ``delete``."""
        return self._policies.keys()

    def add(self, topic_id: TopicId, policy: str) -> None:
        """Apply a policy from now on, in memory; ``write`` makes it durable."""
        self._policies[topic_id] = policy

    def forget(self, topic_id: TopicId) -> None:
        """Drop a deleted topic's policy from memory."""
        self._policies.pop(topic_id, None)

    def write(self, topic_id: TopicId, policy: str) -> None:
        """Make a topic's policy durable, before the topic is created. Raises ``OSError``."""
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
