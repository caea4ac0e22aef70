"""RocksDB options of the database and of its column families."""

from __future__ import annotations

from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from tempfile import TemporaryDirectory
from typing import Any, Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    IngestExternalFileOptions,
    Options,
    SstFileWriter,
)

FAMILIES: Final = ("log", "latest", "pending", "kept", "side", "causes", "meta")
RAW_MODE: Final = '{"raw_mode":true,"prefix_extractors":{}}'
"""Content of rocksdict's own config file for a database whose keys and values are bytes."""

_WRITE_BUFFER_SIZE = 32 << 20
_LOG_FILE_SIZE: Final = 4 << 20
"""Maximum size of RocksDB's info log, of which four files are kept."""
_MAX_TOTAL_WAL_SIZE = 64 << 20
"""Bounds what a start after a kill must replay, and so how long it takes."""
OPEN_FILES_MAX: Final = 1_024

_BASE_OPTIONS = """\
[Version]
  rocksdb_version=9.8.4
  options_file_version=1.1
[DBOptions]
  track_and_verify_wals_in_manifest=true
[CFOptions "default"]
[CFOptions "log"]
  memtable_insert_with_hint_prefix_extractor=rocksdb.FixedPrefix.2
"""


def compute_open_files_max(limit: int) -> int:
    """How many files RocksDB may hold open, given the process's limit (-1: unlimited)."""
    return OPEN_FILES_MAX if limit == RLIM_INFINITY else min(OPEN_FILES_MAX, limit // 4)


def make_options(folder: Path, *, create: bool) -> tuple[Options, dict[str, Options]]:
    """The options of the database and its families; ``folder`` takes a temporary file."""
    options, log_options = _load_base_options(folder)
    _set_options(options, create=create)
    names = ("default", *FAMILIES)
    families = {name: compute_family_options(name) for name in names if name != "log"}
    return options, families | {"log": _set_family_options("log", log_options)}


def make_reading_options(folder: Path) -> Options:
    """The options for opening the database read-only; ``folder`` is as for ``make_options``.

    A database that tracks WALs in its manifest must be opened with that option even read-only.
    Otherwise RocksDB 9.8 tries to remove them from the manifest, which it cannot write in read-only
    mode, and the process aborts.
    """
    options, _ = _load_base_options(folder)
    return options


def _set_options(options: Options, *, create: bool) -> None:
    options.create_if_missing(create)
    options.create_missing_column_families(True)
    # A torn record at the end of the WAL was never acknowledged. Other damage is an error.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_paranoid_checks(True)
    options.set_max_total_wal_size(_MAX_TOTAL_WAL_SIZE)
    options.set_max_background_jobs(2)
    options.set_max_open_files(compute_open_files_max(getrlimit(RLIMIT_NOFILE)[0]))
    options.set_bytes_per_sync(1 << 20)
    options.set_skip_stats_update_on_db_open(True)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_keep_log_file_num(4)
    options.set_max_log_file_size(_LOG_FILE_SIZE)


def _load_base_options(folder: Path) -> tuple[Options, Options]:
    """Options of the database and of ``log`` for which rocksdict has no setters.

    rocksdict can read any option from an options file. ``track_and_verify_wals_in_manifest``
    detects a missing or truncated WAL file that is older than another one; without it RocksDB opens
    such a store silently. ``memtable_insert_with_hint_prefix_extractor`` remembers where the last
    key of each partition was inserted, next to which the following one goes.
    """
    with TemporaryDirectory(prefix="options-", dir=folder) as name:
        (Path(name) / "OPTIONS-000001").write_text(_BASE_OPTIONS)
        (Path(name) / "rocksdict-config.json").write_text(RAW_MODE)
        options, families = Options.load_latest(name)
    return options, families["log"]


def compute_family_options(name: str) -> Options:
    """The options of one family, for read-only access and for SST files."""
    return _set_family_options(name, Options(raw_mode=True))


def make_sst_writer(name: str) -> SstFileWriter:
    """Make a writer of an SST file that the family can ingest; keys must be ascending."""
    options = compute_family_options(name)
    options.set_compression_type(DBCompressionType.lz4())
    return SstFileWriter(options=options)


def ingest_files(family: Any, paths: list[str], is_moved: bool) -> None:
    """Add SST files to a family by moving or copying them."""
    options = IngestExternalFileOptions()
    options.set_move_files(is_moved)
    family.ingest_external_file(paths, options)


def _set_family_options(name: str, options: Options) -> Options:
    table = BlockBasedOptions()
    if name == "log":
        # Batches go to blob files, so that compaction only rewrites their keys. (FIFO compaction
        # would also do, but RocksDB applies a TTL of 30 days to it.)
        options.set_enable_blob_files(True)
        options.set_min_blob_size(0)
        options.set_blob_compression_type(DBCompressionType.lz4())
        options.set_enable_blob_gc(True)
    if name == "latest":
        table.set_bloom_filter(10, False)
        table.set_block_cache(Cache(32 << 20))
        options.set_compression_type(DBCompressionType.lz4())
    if name in ("log", "latest"):
        options.set_write_buffer_size(_WRITE_BUFFER_SIZE)
        options.set_max_write_buffer_number(4)
    else:
        options.set_write_buffer_size(4 << 20)
    options.set_block_based_table_factory(table)
    return options
