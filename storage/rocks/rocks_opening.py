"""Opening of a RocksDB store: creation, recovery after a crash, and checks for damage.

``storage.rocks.rocks_store`` describes the layout of the data folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rocksdict import (
    AccessType,
    BottommostLevelCompaction,
    CompactOptions,
    DBRecoveryMode,
    Rdict,
    WriteBatch,
)

from storage.folder.replacement import lock_store
from storage.folder.store_folder import (
    ROCKSDB_NAME,
    check_files,
    open_or_create_watermark,
)
from storage.folder.watermark import FORMAT_VERSION, Watermark, WatermarkHeader, sync_folder
from storage.log_store import (
    FormatTooNew,
    StoreCorrupt,
)
from storage.rocks.rocks_cursors import errors_of
from storage.rocks.rocks_damage import describe_readable
from storage.rocks.rocks_latest import FORMAT_KEY, POSITIONS_KEY
from storage.rocks.rocks_options import (
    RAW_MODE,
    compute_family_options,
    make_options,
    make_reading_options,
)
from storage.rocks.rocks_store import RocksLogStore
from storage.rocks.wal_tail import cut_torn_tail

MAX_PARTITIONS = 1 << 16
"""A key encodes the partition in two bytes."""

_CLUSTER_ID_KEY, _PARTITIONS_KEY = b"cluster.id", b"partitions"


def open_store(
    path: str | Path, *, partitions: int, cluster_id: str | None = None
) -> RocksLogStore:
    """Open the store in a data folder, or create one if the folder is new or empty.

    ``partitions`` and ``cluster_id`` (22 characters, random by default) apply to a new store; an
    existing one keeps its own. Raises ``StoreLocked``, ``StoreCorrupt``, ``FormatTooNew`` and
    ``WatermarkViolation``, each with a one-line message for the operator.
    """
    if not 0 < partitions <= MAX_PARTITIONS:
        raise ValueError(f"a store has 1 to {MAX_PARTITIONS} partitions, not {partitions}")
    folder = Path(path)
    with ExitStack() as undo:
        lock = lock_store(folder)
        undo.callback(lock.release)
        watermark = open_or_create_watermark(folder, partitions, cluster_id)
        undo.callback(watermark.close)
        check_files(folder, is_pristine=watermark.is_pristine)
        # First, so that an older version rejects the store by its format, not by unknown families.
        watermark.raise_format()
        db, cut_bytes = _open_rocksdb(folder / ROCKSDB_NAME, watermark)
        undo.callback(db.close)
        if watermark.is_pristine:
            _finish_creation(folder, db, watermark)
        _check_meta(folder, db, watermark.header)
        undo.pop_all()
    store = RocksLogStore(folder, db, watermark, lock)
    store.cut_bytes = cut_bytes
    return store


def _open_rocksdb(path: Path, watermark: Watermark) -> tuple[Rdict, int]:
    """Open the database; also returns how many bytes of a torn tail were cut off the WAL."""
    try:
        return _open_rocksdb_as_is(path, create=watermark.is_pristine), 0
    except StoreCorrupt as damage:
        cut_bytes = cut_torn_tail(path, watermark.sequence)
        if not cut_bytes:
            readable = describe_readable(
                path, lambda: _open_rocksdb_before_damage(path), watermark.offsets
            )
            raise StoreCorrupt(f"{damage}{readable}") from damage
    return _open_rocksdb_as_is(path, create=watermark.is_pristine), cut_bytes


def _open_rocksdb_as_is(path: Path, *, create: bool) -> Rdict:
    with errors_of(path):
        options, families = make_options(path.parent, create=create)
        return Rdict(str(path), options, column_families=families)


def _open_rocksdb_before_damage(path: Path) -> Rdict:
    """Open the database read-only, up to the first damage in the WAL."""
    options, families = make_options(path.parent, create=False)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    access = AccessType.read_only(error_if_log_file_exist=False)
    return Rdict(str(path), options, column_families=families, access_type=access)


def open_rocksdb_for_reading(path: Path, families: Sequence[str]) -> Rdict:
    """Open a snapshot of the database at a path, which may belong to a running server.

    It is not opened as a secondary instance: reading blobs in one aborts the process (RocksDB 9.8
    in rocksdict 0.3.29).
    """
    (path / "rocksdict-config.json").write_text(RAW_MODE)
    options = make_reading_options(path)
    names = {name: compute_family_options(name) for name in ("default", *families)}
    access = AccessType.read_only(error_if_log_file_exist=False)
    return Rdict(str(path), options, column_families=names, access_type=access)


def remove_side(path: Path, prefixes: tuple[bytes, ...]) -> list[bytes]:
    """Remove the side records with these key prefixes from a database that nobody has open.

    Neither their values nor their keys are left in any file. Returns the keys. The files that the
    database shares with others by hard links are replaced, never changed.
    """
    force = CompactOptions()
    force.set_bottommost_level_compaction(BottommostLevelCompaction.force())
    with errors_of(path):
        db = _open_rocksdb_as_is(path, create=False)
        side = db.get_column_family("side")
        try:
            removed = _find_keys(side, prefixes)
            for key in removed:
                side.delete(key)
            # The recovered WAL is flushed with them, and then deleted.
            side.flush(True)
            side.compact_range(None, None, force)
        finally:
            side.close()
            db.close()
        # The manifest of this opening still names the first and last keys of the former files.
        _open_rocksdb_as_is(path, create=False).close()
    return removed


def _find_keys(family: Rdict, prefixes: tuple[bytes, ...]) -> list[bytes]:
    """The keys with these prefixes. An iterator that is left would keep the database locked."""
    found = family.keys()
    keys = (key for key in found if isinstance(key, bytes))
    return [key for key in keys if key.startswith(prefixes)]


def _finish_creation(folder: Path, db: Rdict, watermark: Watermark) -> None:
    header = watermark.header
    batch = WriteBatch(raw_mode=True)
    meta = db.get_column_family_handle("meta")
    batch.put(FORMAT_KEY, str(header.format_version).encode(), meta)
    batch.put(_CLUSTER_ID_KEY, header.cluster_id.encode(), meta)
    batch.put(_PARTITIONS_KEY, str(header.partitions).encode(), meta)
    batch.put(POSITIONS_KEY, bytes(8 * header.partitions), meta)
    with errors_of(folder):
        db.write(batch)
        db.flush_wal(True)
        sync_folder(folder)
    watermark.mark({}, db.latest_sequence_number())
    watermark.sync()


def _check_meta(folder: Path, db: Rdict, header: WatermarkHeader) -> None:
    meta = db.get_column_family("meta")
    try:
        with errors_of(folder):
            keys = (FORMAT_KEY, _CLUSTER_ID_KEY, _PARTITIONS_KEY)
            version, cluster_id, partitions = (meta.get(key) for key in keys)
    finally:
        meta.close()
    if version is not None and int(version) > FORMAT_VERSION:
        raise FormatTooNew(
            f"{folder} has format {int(version)}, this version reads up to {FORMAT_VERSION}: "
            "use a newer version"
        )
    if cluster_id != header.cluster_id.encode() or partitions != str(header.partitions).encode():
        raise StoreCorrupt(
            f"{folder}: the watermark belongs to another store ({header.cluster_id}); "
            "restore the data folder from one backup"
        )
