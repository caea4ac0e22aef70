"""``BackupService``: who may make backups, and where."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import grpc.aio
import pytest

from coordinator.runtime.authorizer import AllowAll
from coordinator.runtime.retention.backups import StoreBackups
from coordinator.service.admin.backup_service import BackupService, is_local
from coordinator.service.calls.access import Access
from muster.v1 import backup_pb2, backup_pb2_grpc
from storage.log_store import StoreFailed
from storage.rocks.rocks_opening import open_store
from storage.transfer.backup import Backup, BackupRefused
from tests.support.audits import KeptAudit
from tests.support.storage.appends import append, mark_all, offset_key, offset_value
from tests.support.waiting import until


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("/127.0.0.1", True),
        ("/127.9.0.1", True),
        ("/0:0:0:0:0:0:0:1", True),
        ("/10.0.0.1", False),
        ("/0:0:0:0:0:0:0:2", False),
        ("/", False),
        ("", False),
    ],
)
def test_who_is_on_this_machine(host: str, local: bool) -> None:
    assert is_local(host) is local


class FailingBackups:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def create(self, folder: Path, *, with_credentials: bool = False) -> Backup:
        raise self.error


class SlowBackups:
    """Makes a backup as soon as it may go on."""

    def __init__(self) -> None:
        self.has_begun, self.going_on = asyncio.Event(), asyncio.Event()

    async def create(self, folder: Path, *, with_credentials: bool = False) -> Backup:
        self.has_begun.set()
        await asyncio.shield(asyncio.ensure_future(self.going_on.wait()))
        return Backup("cluster", 0, (), {})


async def test_a_backup_is_audited_even_if_its_caller_goes_away() -> None:
    backups, audit = SlowBackups(), KeptAudit()
    service = BackupService(Access(AllowAll()), backups, audit)
    server = grpc.aio.server()
    backup_pb2_grpc.add_BackupServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = backup_pb2_grpc.BackupServiceStub(channel)
            request = backup_pb2.CreateBackupRequest(folder="/somewhere", with_credentials=True)
            call = stub.CreateBackup(request)
            await backups.has_begun.wait()
        with pytest.raises(asyncio.CancelledError):
            await call
        # The server learns of it, and ends the call.
        await server.stop(None)
        assert not audit.changes
        backups.going_on.set()
        await until(lambda: audit.changes, "the backup is audited")
        assert audit.changes[0].after == {
            "folder": "/somewhere",
            "bytes": 0,
            "with_credentials": True,
        }
    finally:
        await server.stop(None)


async def ask(service: BackupService, folder: str) -> grpc.StatusCode:
    server = grpc.aio.server()
    backup_pb2_grpc.add_BackupServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = backup_pb2_grpc.BackupServiceStub(channel)
            try:
                await stub.CreateBackup(backup_pb2.CreateBackupRequest(folder=folder))
            except grpc.aio.AioRpcError as error:
                return error.code()
            return grpc.StatusCode.OK
    finally:
        await server.stop(None)


@pytest.mark.parametrize("folder", ["", "relative", "../up", "/nul\0"])
async def test_a_folder_is_an_absolute_path(folder: str) -> None:
    backups = FailingBackups(AssertionError("not asked"))
    service = BackupService(Access(AllowAll()), backups)
    assert await ask(service, folder) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BackupRefused("taken"), grpc.StatusCode.FAILED_PRECONDITION),
        (StoreFailed("no space"), grpc.StatusCode.INTERNAL),
    ],
)
async def test_what_fails_has_a_status(error: Exception, status: grpc.StatusCode) -> None:
    service = BackupService(Access(AllowAll()), FailingBackups(error))
    assert await ask(service, "/somewhere") is status


async def test_a_server_without_a_store_has_no_backups() -> None:
    service = BackupService(Access(AllowAll()), None)
    assert await ask(service, "/somewhere") is grpc.StatusCode.UNIMPLEMENTED


async def test_one_backup_at_a_time_and_the_store_stays_for_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    append(store, {0: [(offset_key("g"), offset_value(1))]})
    mark_all(store)
    backups = StoreBackups(store, tmp_path / "store")
    waiting = asyncio.create_task(backups.create(tmp_path / "backup"))
    await asyncio.sleep(0)
    with pytest.raises(BackupRefused, match="already in progress"):
        await backups.create(tmp_path / "other")
    waiting.cancel()
    await backups.wait()
    assert (tmp_path / "backup" / "backup.json").exists()
    made = await backups.create(tmp_path / "other")
    assert made.next_offsets == (1,)
    store.close()
