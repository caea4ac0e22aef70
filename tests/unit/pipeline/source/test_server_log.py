"""A live server's log is the log of its store: the same offsets, marks, slices and rows."""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pyarrow as pa
import pytest
import pytest_asyncio

from pipeline.decoding.bounds import Bounds
from pipeline.schema import RECORDS
from pipeline.source.errors import DataLoss, OptionError, SourceError, Unreachable
from pipeline.source.logs.group_log import GroupLog, ServerSlice, Slice
from pipeline.source.logs.store_log import StoreLog
from pipeline.source.options import LogOptions, parse_options
from pipeline.source.server.addresses import ServerAddress, parse_address
from pipeline.source.server.log_calls import LogCalls, compute_failure
from pipeline.source.server.server_access import ServerAccess, find_access
from pipeline.source.server.server_log import ServerLog
from pipeline.source.slice_reading import read_slices
from tests.golden.past_server import PastServer, import_golden, running_past_server
from tests.support.certificates import Authority
from tests.support.service.logins import Logins
from tests.support.service.server_tls import make_server_tls
from tests.support.service.stand import running_stand

RECORDS_OPTIONS = parse_options({"path": "/x", "decode": "records"})


class Both(NamedTuple):
    """A server, its log, and the log of its store."""

    server: PastServer
    served: ServerLog
    stored: StoreLog


@pytest_asyncio.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    import_golden(tmp_path / "store")
    async with running_past_server(tmp_path / "store") as server:
        served = await asyncio.to_thread(ServerLog, ServerAddress(server.target))
        stored = StoreLog(tmp_path / "store")
        try:
            yield Both(server, served, stored)
        finally:
            await asyncio.to_thread(served.close)
            stored.close()


def list_facts(log: GroupLog) -> list[object]:
    """What a query asks of a log."""
    facts: list[object] = [log.partitions, log.identity, log.notes]
    for partition in log.partitions:
        end = log.end(partition)
        facts += [log.beginning(partition), end]
        if not end:
            continue
        mark = log.find_mark(partition, 0, end)
        assert mark is not None
        facts += [mark, log.find_mark(partition, 0, end // 2), log.find_change(partition, mark)]
        facts += [log.find_next(partition, end // 2, end), log.find_next(partition, end, end)]
        changed = log.find_change(partition, mark._replace(checksum=mark.checksum ^ 1))
        facts.append(changed is not None and changed.rpartition(":")[2])
    return facts


def list_times(log: GroupLog) -> list[object]:
    partition = next(number for number in log.partitions if log.end(number) > 40)
    rows = read_rows(log.plan([(partition, Bounds())], None))
    times = rows.column("timestamp").cast(pa.int64()).to_pylist()
    wanted = sorted({time // 1_000 + off for time in times[:4] for off in (0, 1)} | {0, 1 << 45})
    return [log.find_time(partition, at_ms) for at_ms in wanted]


def read_rows(tasks: Sequence[Sequence[Slice]]) -> pa.Table:
    batches = [rows for task in tasks for rows in read_slices(task, RECORDS_OPTIONS, RECORDS)]
    return pa.Table.from_batches(batches, RECORDS)


def read_all(log: GroupLog, min_slices: int | None) -> pa.Table:
    bounds = [(partition, Bounds()) for partition in log.partitions]
    table = read_rows(log.plan(bounds, min_slices))
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")])


async def test_it_is_the_log_of_the_store(both: Both) -> None:
    facts = await asyncio.to_thread(list_facts, both.served)
    assert facts == list_facts(both.stored)
    assert await asyncio.to_thread(list_times, both.served) == list_times(both.stored)
    expected = read_all(both.stored, None)
    assert expected.num_rows > 3_000
    for min_slices in (None, 60):
        assert (await asyncio.to_thread(read_all, both.served, min_slices)).equals(expected)


async def test_a_range_that_is_gone_is_data_loss(both: Both) -> None:
    calls = LogCalls(ServerAccess(both.server.target), 0.0)

    def read() -> None:
        for _ in calls.read(0, offset=1 << 40):
            pytest.fail("nothing is there")

    with pytest.raises(DataLoss, match="log partition 0 ends at offset"):
        await asyncio.to_thread(read)
    calls.close()


async def test_a_reading_goes_on_where_its_server_went_away(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is cut after each message: nothing is missing, nothing is there twice."""
    partition = max(both.stored.partitions, key=both.stored.end)
    end = both.stored.end(partition)
    slept: list[float] = []
    calls = LogCalls(ServerAccess(both.server.target), 60.0, slept.append)
    ask = calls._stub.ReadLog

    class Cut:
        """One message, of one batch, then the server is gone."""

        def __init__(self, request: Any, **options: Any) -> None:
            request.max_bytes = 1
            self._call = ask(request, **options)

        def __iter__(self) -> Any:
            yield next(self._call)
            raise Gone

        def cancel(self) -> None:
            self._call.cancel()

    class Gone(grpc.RpcError):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.UNAVAILABLE

        def details(self) -> str:
            return "Socket closed"

    monkeypatch.setattr(calls._stub, "ReadLog", Cut)

    def read() -> bytes:
        found = b""
        for message in calls.read(partition, offset=0, end_offset=end):
            found += message.batches
            if message.next_offset == end:
                break
        return found

    found = await asyncio.to_thread(read)
    assert found == b"".join(both.server.store.read_log(partition))  # type: ignore[arg-type]
    assert len(slept) > 5
    calls.close()


def test_who_is_not_there_is_named_in_one_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(Unreachable, match=f"^cannot reach {target}: .*gRPC address") as failed:
        ServerLog(ServerAddress(target), patience_s=0.0)
    assert "\n" not in str(failed.value)


def test_a_refusal_is_not_waited_for() -> None:
    class Refused(grpc.RpcError):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.PERMISSION_DENIED

        def details(self) -> str:
            return "CLUSTER_AUTHORIZATION_FAILED: User:a is not\n authorized"

    failure, may_pass = compute_failure("h:1", Refused())
    assert type(failure) is SourceError
    assert str(failure).startswith("h:1: CLUSTER_AUTHORIZATION_FAILED: User:a is not authorized: ")
    assert "muster acl" in str(failure)
    assert not may_pass


# ------------------------------------------------------------------------------------ addresses


def parse(**options: str) -> LogOptions:
    return parse_options({"decode": "raw", **options})


def test_an_address_is_written_and_read_back() -> None:
    for address in (
        ServerAddress("host:9094"),
        ServerAddress("[::1]:9094", "/etc/my client & co.properties"),
    ):
        assert parse_address(address.write()) == address
        options = parse(server=address.target, serverConfig=address.config)
        assert options.path == address.write()
        assert options.max_offsets_per_trigger == 1_000_000
    assert parse(server="h:1", maxOffsetsPerTrigger="7").max_offsets_per_trigger == 7
    assert parse(path="/x").max_offsets_per_trigger is None


@pytest.mark.parametrize(
    "options",
    [
        {"server": "host"},
        {"server": "host:port"},
        {"server": "user@host:9094"},
        {"server": "host:9094/x"},
        {"server": "host:9094", "path": "/x"},
        {"path": "/x", "serverConfig": "/y"},
        {"path": "muster://host:9094?other=1"},
        {},
    ],
)
def test_what_is_no_address_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        parse(**options)


def test_a_clients_file_becomes_what_a_connection_needs(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" '
        'password="s3cret";\n'
    )
    access = find_access(ServerAddress("127.0.0.1:9094", str(file)))
    assert access.metadata == (("authorization", "Basic YTpzM2NyZXQ="),)
    assert "s3cret" not in repr(access)
    assert "YTpz" not in repr(access)
    with pytest.raises(OptionError, match="in the clear"):
        find_access(ServerAddress("example.org:9094", str(file)))
    with pytest.raises(OptionError, match="cannot read"):
        find_access(ServerAddress("h:1", str(tmp_path / "none")))
    file.write_text("security.protocol=NONE\n")
    with pytest.raises(OptionError, match=r"client\.properties: security\.protocol NONE"):
        find_access(ServerAddress("h:1", str(file)))


@pytest.mark.parametrize("is_right", [True, False])
async def test_tls_and_a_password_go_with_each_call(tmp_path: Path, is_right: bool) -> None:
    """The server of this test has no log on disk, and says so to those whom it knows alone."""
    authority = Authority(tmp_path)
    file = tmp_path / "client.properties"
    password = "secret" if is_right else "planted"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="alice" password="{password}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={authority.file}\n"
    )
    logins = Logins()
    tls, authenticate = make_server_tls(authority), logins.make().authenticate
    async with running_stand(tls=tls, authenticate=authenticate) as stand:
        address = ServerAddress(stand.target, str(file))
        with pytest.raises(SourceError) as failed:
            await asyncio.to_thread(ServerLog, address, 0.0)
    logins.stop()
    assert ("no log on disk" in str(failed.value)) == is_right
    assert ("SASL_AUTHENTICATION_FAILED" in str(failed.value)) == (not is_right)
    assert "planted" not in str(failed.value)


def test_a_slice_carries_what_a_task_needs_and_can_be_sent() -> None:
    part = ServerSlice(3, ServerAccess("h:1", metadata=(("a", "b"),)), Bounds(1, 5), 4)
    assert pickle.loads(pickle.dumps(part)) == part
