"""``muster.v1.BackupService``: backups of the log, for operators on the server's machine."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path
from typing import TypeAlias

import grpc.aio
import structlog

from coordinator.runtime.audit import NO_AUDIT, Audit, Change
from coordinator.runtime.retention.backups import Backups
from coordinator.service.calls.access import Access
from coordinator.service.calls.grpc_caller import compute_caller
from coordinator.service.calls.guard import Guard
from coordinator.service.wire.error_statuses import InvalidField
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.caller import Caller
from model.errors import (
    ClusterAuthorizationFailed,
    PolicyViolation,
    UnknownServerError,
    UnsupportedVersion,
)
from muster.v1 import backup_pb2, backup_pb2_grpc
from storage.log_store import StoreError
from storage.transfer.backup import Backup, BackupRefused

log = structlog.get_logger()

_Context: TypeAlias = grpc.aio.ServicerContext[
    backup_pb2.CreateBackupRequest, backup_pb2.CreateBackupResponse
]


class BackupService(backup_pb2_grpc.BackupServiceServicer):
    """Makes backups. See ``coordinator.service.wire.error_statuses`` for the statuses of errors."""

    def __init__(self, access: Access, backups: Backups | None, audit: Audit = NO_AUDIT) -> None:
        self._access = access
        self._backups = backups
        self._audit = audit
        self._making: set[asyncio.Task[Backup]] = set()

    async def CreateBackup(  # noqa: N802
        self, request: backup_pb2.CreateBackupRequest, context: _Context
    ) -> backup_pb2.CreateBackupResponse:
        async with Guard(context):
            caller = compute_caller(context.peer(), "")
            self._access.check_cluster(caller, Operation.ALTER)
            # The caller chooses where the server writes, and a listener may ask for no credentials.
            # So only local ones are allowed.
            if not is_local(caller.client_host):
                raise ClusterAuthorizationFailed("only callers on this machine may make backups")
            folder = _decode_folder(request.folder)
            if self._backups is None:
                raise UnsupportedVersion("this server has no store on disk")
            # A task of its own: the backup is finished, and so noted, even if the client goes away.
            making = asyncio.create_task(
                self._make(self._backups, caller, folder, request.with_credentials)
            )
            self._making.add(making)
            making.add_done_callback(self._making.discard)
            try:
                made = await asyncio.shield(making)
            except BackupRefused as error:
                raise PolicyViolation(str(error)) from error
            except StoreError as error:
                raise UnknownServerError(str(error)) from error
            return backup_pb2.CreateBackupResponse(
                folder=str(folder),
                cluster_id=made.cluster_id,
                bytes=made.bytes,
                files=len(made.files),
                next_offsets=made.next_offsets,
                users_left_out=made.users_left_out,
            )

    async def _make(
        self, backups: Backups, caller: Caller, folder: Path, with_credentials: bool
    ) -> Backup:
        made = await backups.create(folder, with_credentials=with_credentials)
        log.info("backup_made", folder=str(folder), bytes=made.bytes)
        self._audit.changed(caller, _compute_change(folder, made.bytes, with_credentials))
        return made


def _compute_change(folder: Path, size: int, with_credentials: bool) -> Change:
    after = {"folder": str(folder), "bytes": size, "with_credentials": with_credentials}
    return Change("CreateBackup", Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME, None, after)


def is_local(client_host: str) -> bool:
    """Whether a caller connects through a loopback address of this machine."""
    try:
        return ipaddress.ip_address(client_host.removeprefix("/")).is_loopback
    except ValueError:
        return False


def _decode_folder(text: str) -> Path:
    folder = Path(text)
    if not text or "\0" in text or not folder.is_absolute():
        raise InvalidField("folder", "folder must be an absolute path on the server's machine")
    return folder
