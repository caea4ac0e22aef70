"""The versions of each API whose requests and responses can be read."""

from __future__ import annotations

from functools import cache

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType


@cache
def readable_versions(key: int) -> range:
    """The versions in which requests and responses can be read; empty for an unknown API."""
    name = api_key_map.get(key)
    if name is None:
        return range(0)
    both = {EntityType.request, EntityType.response}
    versions = [version for version, kinds in schema_name_map[name].items() if both <= set(kinds)]
    return range(min(versions), max(versions) + 1) if versions else range(0)
