"""What the server needs, for the build: the SDK of its own version, and what pyproject.toml lists.

Both are released together, and the server imports what it shares with the SDK from there.
"""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ServerMetadata(MetadataHookInterface):
    """``[tool.hatch.metadata.hooks.custom]``: adds the dependencies."""

    def update(self, metadata: dict[str, Any]) -> None:
        sdk = f"muster[classic]=={metadata['version']}"
        metadata["dependencies"] = [sdk, *self.config["dependencies"]]
