"""Smaller bounds for what is bounded, so that it is full before the first figure counts.

A cache that fills for an hour looks like a leak for an hour. Those that are settings are in
``tests.soak.run``; here are the constants.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any, Final

CACHE_ENTRIES: Final = 64
BLOCK_CACHE_BYTES: Final = 100_000

BOUNDS: Final = (
    ("storage.rocks.rocks_options", "_WRITE_BUFFER_SIZE", 1 << 20),
    ("storage.rocks.rocks_options", "_MAX_TOTAL_WAL_SIZE", 4 << 20),
    ("storage.rocks.rocks_options", "_LOG_FILE_SIZE", 64 << 10),
    ("coordinator.runtime.topics.regex_matches", "KEPT_MAX_BYTES", 20_000),
    ("coordinator.runtime.topics.regex_matches", "CHANGES_KEPT", 10),
    ("coordinator.service.streams.sessions", "PAST_MAX", 10),
    ("coordinator.service.calls.sequences", "MEMBERS_MAX", 20),
    ("coordinator.core.state.metadata_hash", "GONE_KEPT", 1),
    ("coordinator.core.deadlines.classic_deadlines", "FAR_MS", 2_000),
    ("coordinator.core.deadlines.liveness", "FAR_MS", 2_000),
    ("coordinator.core.offsets.producers", "PRODUCER_EXPIRATION_MS", 10_000),
    ("coordinator.runtime.offsets.expiry_walks", "PRODUCER_EXPIRATION_MS", 10_000),
)


def lower_caches() -> None:
    """``lru_cache`` of all modules that are imported from now on; those without a bound stay so."""
    make: Any = functools.lru_cache

    def make_small(maxsize: Any = 128, typed: bool = False) -> Any:
        if isinstance(maxsize, int):
            maxsize = min(maxsize, CACHE_ENTRIES)
        return make(maxsize, typed)

    functools.lru_cache = make_small


def lower_bounds() -> None:
    """Constants of the server's modules, which are imported, and the caches of RocksDB."""
    _lower_block_caches()
    for name, constant, bound in BOUNDS:
        module = import_module(name)
        assert getattr(module, constant) > bound
        setattr(module, constant, bound)


def _lower_block_caches() -> None:
    """Each family has one of 32 MB, be it said or not."""
    options: Any = import_module("storage.rocks.rocks_options")
    make_cache, make_table = options.Cache, options.BlockBasedOptions

    def make_small_table() -> Any:
        table = make_table()
        table.set_block_cache(make_cache(BLOCK_CACHE_BYTES))
        return table

    options.Cache = lambda size: make_cache(min(size, BLOCK_CACHE_BYTES))
    options.BlockBasedOptions = make_small_table
