"""Where things lie in the store's folder, and what is done to it outside of the event loop."""

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
    """A segment file that was found; ``written_ns`` is the time of its last write."""

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
            # A topic that is deleted meanwhile takes its files with it.
            with contextlib.suppress(FileNotFoundError):
                found.extend(_find_in_topic(topic))
    return found


def find_leftovers(folder: Path) -> list[Path]:
    """Folders of deleted topics that were set aside and are still to be removed."""
    return list(folder.glob("*" + _DELETED_SUFFIX))


def remove_leftover(path: Path, is_stopping: Callable[[], bool]) -> None:
    """Remove a folder that was set aside, as far as it gets until ``is_stopping``.

    A topic of many partitions takes seconds; what is left goes after the next start.
    """
    for partition in path.iterdir():
        if is_stopping():
            return
        shutil.rmtree(partition, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)


def set_aside(folder: Path, topic_id: TopicId) -> Path | None:
    """Take a deleted topic's folder out of use; what is left to remove, if anything.

    The renaming is what counts, removing may take its time.
    """
    path = folder / topic_id.hex()
    try:
        return path.rename(path.with_suffix(_DELETED_SUFFIX))
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.error("records of a deleted topic stay in %s: %s", path, error)
        return None


def sync_file(path: Path) -> None:
    """Make a complete segment durable; a best effort, for records are not promised to be."""
    try:
        make_durable(path)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("%s cannot be synced: %s", path, error)


def make_durable(path: Path) -> None:
    """Make what a file has durable; raises ``OSError``."""
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
