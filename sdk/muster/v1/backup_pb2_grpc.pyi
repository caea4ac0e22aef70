# Generated from proto/muster/v1/backup.proto.
from collections.abc import AsyncIterator
from typing import overload

import grpc
import grpc.aio
from muster.v1 import backup_pb2

class BackupServiceStub:
    CreateBackup: grpc.UnaryUnaryMultiCallable[backup_pb2.CreateBackupRequest, backup_pb2.CreateBackupResponse]
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> BackupServiceAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> BackupServiceStub: ...

class BackupServiceAsyncStub(BackupServiceStub):
    CreateBackup: grpc.aio.UnaryUnaryMultiCallable[backup_pb2.CreateBackupRequest, backup_pb2.CreateBackupResponse]

class BackupServiceServicer:
    async def CreateBackup(self, request: backup_pb2.CreateBackupRequest, context: grpc.aio.ServicerContext[backup_pb2.CreateBackupRequest, backup_pb2.CreateBackupResponse]) -> backup_pb2.CreateBackupResponse: ...

def add_BackupServiceServicer_to_server(
    servicer: BackupServiceServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
