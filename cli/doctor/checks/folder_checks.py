"""The data folder: whose it is, what is in it, and the disk below it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.doctor.checks.mounts import find_file_system
from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from storage.folder.store_folder import WATERMARK_NAME
from storage.folder.watermark import FORMAT_VERSION, read_watermark_header
from storage.log_store import FormatTooNew, StoreError

_GIB: Final = 1 << 30
_MIB: Final = 1 << 20
_FILES_LEAST: Final = 10_000
_PASSING: Final = {"tmpfs": "is memory", "ramfs": "is memory", "overlay": "ends with the container"}
_REMOTE: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs")


def find_nearest(path: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def check_folder(subject: Subject) -> Iterator[Finding]:
    """Rights, contents, and what kind of disk it is on."""
    path = subject.folder.path
    nearest = find_nearest(path)
    if nearest != path.absolute():
        if os.access(nearest, os.W_OK | os.X_OK):
            yield ok(f"{path} is not there yet and can be made")
        else:
            yield fail(
                f"{path} is not there, and this user may not make it in {nearest}",
                f"make it, and give it to the server's user: install -d -m 0700 -o muster {path}",
            )
    elif not path.is_dir():
        yield fail(f"{path} is not a folder", "set another data.dir")
    else:
        yield from _check_rights(path)
        yield from _check_contents(subject)
    yield from _check_file_system(nearest)


def _check_rights(path: Path) -> Iterator[Finding]:
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        owner = path.stat().st_uid
        yield fail(
            f"this user ({os.geteuid()}) may not use {path}, which is of user {owner}",
            f"run the server and this as that user, or chown -R {os.geteuid()} {path}",
        )
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield warn(
            f"others may look into {path} (mode {mode:04o}), which has the keys of users",
            f"chmod 0700 {path}",
        )
    else:
        yield ok(f"{path} is for its owner alone")


def _check_contents(subject: Subject) -> Iterator[Finding]:
    folder = subject.folder
    if not os.access(folder.path, os.R_OK | os.X_OK):
        return
    foreign = folder.find_foreign()
    if foreign is not None:
        yield fail(f"{folder.path} has {foreign}, and is no data folder", "set another data.dir")
        return
    if folder.path.joinpath("store.building").exists():
        yield fail(
            f"a restore or an import into {folder.path} was not finished",
            "run the same command again, or remove store.building to begin anew",
        )
    watermark = folder.store / WATERMARK_NAME
    if not watermark.exists():
        yield ok("there is no store yet")
        return
    try:
        header = read_watermark_header(watermark)
    except FormatTooNew as error:
        yield fail(str(error), "install the version that wrote it, or restore a backup")
    except StoreError as error:
        yield fail(str(error), "look into docs/operations.md, disaster recovery")
    else:
        yield _describe_format(header.format_version)


def _describe_format(version: int) -> Finding:
    if version == FORMAT_VERSION:
        return ok(f"the store has format {version}, which this version writes")
    return warn(
        f"the store has format {version}; the first start raises it to {FORMAT_VERSION}, which "
        "older versions refuse",
        "make a backup first (docs/operations.md, upgrade)",
    )


def _check_file_system(path: Path) -> Iterator[Finding]:
    kind = find_file_system(path)
    if kind in _PASSING:
        yield warn(
            f"the disk is {kind}, which {_PASSING[kind]}", "mount a volume or a disk for data.dir"
        )
    elif kind in _REMOTE:
        yield warn(
            f"the disk is {kind}, over a network",
            "use a local disk: each commit waits for it, and two machines must never share a store",
        )
    elif kind is not None:
        yield ok(f"the disk is {kind}")


def check_space(subject: Subject) -> Iterator[Finding]:
    """Free space against what the settings want to be free."""
    resolved = subject.resolved
    nearest = find_nearest(subject.folder.path)
    usage = shutil.disk_usage(nearest)
    reserve, least = (
        resolved.integer(name) for name in ("log.reserve.bytes", "log.min.free.bytes")
    )
    try:
        held = subject.folder.reserve.stat().st_size
    except OSError:
        held = 0
    usable = usage.free - max(reserve - held, 0)
    what = f"{usable / _GIB:.1f} GiB of {usage.total / _GIB:.1f} GiB are free"
    if usable < least:
        yield fail(
            f"{what}; below {least // _MIB} MiB (log.min.free.bytes) commits are refused",
            "make room, or a larger disk",
        )
    elif usable < least + _GIB:
        yield warn(what, f"make room: below {least // _MIB} MiB commits are refused")
    else:
        yield ok(what)
    files = os.statvfs(nearest)
    if files.f_files and files.f_favail < _FILES_LEAST:
        yield warn(f"only {files.f_favail} more files can be made there", "remove small files")
