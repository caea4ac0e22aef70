"""Build hook that adds the server's dependencies: the SDK of the same version, and the listed ones.

SDK and server are released together, and the server imports the code that they share from the SDK.
"""

from __future__ import annotations

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ServerMetadata(MetadataHookInterface):
    """``[tool.hatch.metadata.hooks.custom]``: sets the dependencies."""

    def update(self, metadata: dict[str, Any]) -> None:
        sdk = f"muster[classic]=={metadata['version']}"
        metadata["dependencies"] = [sdk, *self.config["dependencies"]]
