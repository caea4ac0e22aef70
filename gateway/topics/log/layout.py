"""The layout of the store's folder, and the file operations that run off the event loop."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.topics.log.segment import SUFFIX
from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicId

_DELETED_SUFFIX = ".deleted"
_log = logging.getLogger(__name__)


class SegmentFile(NamedTuple):
    """A segment file found on disk; ``written_ns`` is the time of its last write."""

    key: PartitionKey
    base_offset: int
    size: int
    written_ns: int


def compute_partition_path(folder: Path, key: PartitionKey) -> Path:
    """The folder of a partition."""
    return folder / key.topic_id.hex() / str(key.partition)


def find_segment_files(folder: Path) -> list[SegmentFile]:
    """The segment files of all partitions."""
    found: list[SegmentFile] = []
    for topic in folder.iterdir():
        if topic.suffix != _DELETED_SUFFIX and topic.is_dir():
            # The topic may be deleted while it is listed.
            with contextlib.suppress(FileNotFoundError):
                found.extend(_find_in_topic(topic))
    return found


def find_leftovers(folder: Path) -> list[Path]:
    """The folders of deleted topics that are set aside but not removed yet."""
    return list(folder.glob("*" + _DELETED_SUFFIX))


def remove_leftover(path: Path, is_stopping: Callable[[], bool]) -> None:
    """Remove a folder that was set aside, until ``is_stopping``.

    A topic of many partitions takes seconds; the next start removes the rest.
    """
    for partition in path.iterdir():
        if is_stopping():
            return
        shutil.rmtree(partition, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


def set_aside(folder: Path, topic_id: TopicId) -> Path | None:
    """Rename a deleted topic's folder, which takes it out of use; return the folder to remove.

    ``None`` if there is no folder or it cannot be renamed. The removal may take its time.
    """
    path = folder / topic_id.hex()
    try:
        return path.rename(path.with_suffix(_DELETED_SUFFIX))
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.error("cannot remove the records of a deleted topic in %s: %s", path, error)
        return None


def sync_file(path: Path) -> None:
    """Fsync a complete segment; best effort, as the store does not promise durable records."""
    try:
        make_durable(path)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("cannot fsync %s: %s", path, error)


def make_durable(path: Path) -> None:
    """Fsync a file; raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _find_in_topic(topic: Path) -> Iterator[SegmentFile]:
    try:
        topic_id = TopicId(bytes.fromhex(topic.name))
    except ValueError:
        return
    for partition in topic.iterdir():
        if not partition.name.isdecimal():
            continue
        for path in partition.iterdir():
            if path.suffix == SUFFIX and path.stem.isdecimal():
                status = path.stat()
                key = PartitionKey(topic_id, int(partition.name))
                yield SegmentFile(key, int(path.stem), status.st_size, status.st_mtime_ns)
