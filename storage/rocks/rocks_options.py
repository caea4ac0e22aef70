"""The options of RocksDB: of the database, and of each of its column families."""

from __future__ import annotations

from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from tempfile import TemporaryDirectory
from typing import Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    SstFileWriter,
)

FAMILIES: Final = ("log", "latest", "pending", "kept", "side", "meta")
RAW_MODE: Final = '{"raw_mode":true,"prefix_extractors":{}}'
"""What rocksdict finds in its own file of a database whose keys and values are bytes."""

_WRITE_BUFFER_SIZE = 32 << 20
_LOG_FILE_SIZE: Final = 4 << 20
"""Of RocksDB's own log, of which four files are kept."""
_MAX_TOTAL_WAL_SIZE = 64 << 20
"""What a start after a kill replays at most, and so how long it takes."""
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
    """How many files RocksDB may hold open where the process may open ``limit`` (-1: any)."""
    return OPEN_FILES_MAX if limit == RLIM_INFINITY else min(OPEN_FILES_MAX, limit // 4)


def make_options(folder: Path, *, create: bool) -> tuple[Options, dict[str, Options]]:
    """Those of the database and of its families; ``folder`` is for a file that is gone after."""
    options, log_options = _load_base_options(folder)
    _set_options(options, create=create)
    names = ("default", *FAMILIES)
    families = {name: compute_family_options(name) for name in names if name != "log"}
    return options, families | {"log": _set_family_options("log", log_options)}


def make_reading_options(folder: Path) -> Options:
    """Those of the database for opening it read-only; ``folder`` is as for ``make_options``.

    A database that notes its WAL files must be opened with the option for it, also read-only:
    without it RocksDB 9.8 would strike them off, which read-only it has no place for, and the
    process ends.
    """
    options, _ = _load_base_options(folder)
    return options


def _set_options(options: Options, *, create: bool) -> None:
    options.create_if_missing(create)
    options.create_missing_column_families(True)
    # A torn record at the end of the WAL was never acknowledged; any other damage is refused.
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
    """Options of the database and of ``log`` that rocksdict has no setters for.

    It reads any option from a file. The first notices a WAL file that is gone or cut though a
    newer one is there; without it RocksDB opens such a store as if nothing were missing. The second
    keeps the place of the last key of each partition, behind which the next one goes.
    """
    with TemporaryDirectory(prefix="options-", dir=folder) as name:
        (Path(name) / "OPTIONS-000001").write_text(_BASE_OPTIONS)
        (Path(name) / "rocksdict-config.json").write_text(RAW_MODE)
        options, families = Options.load_latest(name)
    return options, families["log"]


def compute_family_options(name: str) -> Options:
    """Those of one family, for what is read or made beside the database."""
    return _set_family_options(name, Options(raw_mode=True))


def make_sst_writer(name: str) -> SstFileWriter:
    """What writes an SST file that a family takes as it is, its keys in ascending order."""
    options = compute_family_options(name)
    options.set_compression_type(DBCompressionType.lz4())
    return SstFileWriter(options=options)


def _set_family_options(name: str, options: Options) -> Options:
    table = BlockBasedOptions()
    if name == "log":
        # Batches go to blob files and are never rewritten: only their keys are compacted. (FIFO
        # compaction would do as well, but RocksDB gives it a time to live of 30 days.)
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
