"""Connections over TLS without sockets: every cut of the bytes, every end, slow readers, alerts."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator.runtime.audit import NoAudit
from gateway.api import Api, RequestContext
from gateway.apis.cluster.k18_api_versions import API as API_VERSIONS
from gateway.codec.kio_schema import response_schema
from gateway.connection.connection_turns import REQUESTS
from gateway.settings import GatewaySettings
from gateway.tls.handshake import HANDSHAKE_BYTES_MAX
from model.access.quotas import QuotaEntity
from model.errors import ErrorCode
from security.endpoints import SecurityProtocol
from security.tls.tls_settings import ClientAuth, TlsSettings
from tests.support.certificates import Authority
from tests.support.gateway.tls_door import TlsDoor, TlsGateway, make_client_context
from tests.support.gateway.wire_door import Gateway
from tests.support.wire.frames import frame, make_request

LIST_GROUPS = 16
wire = response_schema(LIST_GROUPS)


class Echo:
    """An API that answers with as many groups as the test wants, and knows who has asked."""

    def __init__(self) -> None:
        self.principals: list[str] = []
        self.groups = 0
        self.api = Api(LIST_GROUPS, "Echo", range(4, 5), self.handle, self.failed)

    def handle(self, context: RequestContext, request: Any) -> None:
        self.principals.append(context.caller.principal)
        group = wire.ListedGroup(
            group_id="g" * 100,
            protocol_type="consumer",
            group_state="Stable",
            group_type="consumer",
        )
        groups = (group,) * self.groups
        context.reply(wire.ListGroupsResponse(throttle_time=0, error_code=0, groups=groups))

    def failed(self, context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
        raise AssertionError(message)


class Noting(NoAudit):
    def __init__(self) -> None:
        self.failed: list[tuple[str, str, str, str]] = []

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        self.failed.append((host, listener, mechanism, reason))


class Stand:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.authority = Authority(folder)
        self.echo = Echo()
        tls = {key: settings.pop(key) for key in list(settings) if hasattr(TlsSettings, key)}
        self.handshakes_max = settings.pop("handshakes_max", 100)
        self.protocol = settings.pop("protocol", SecurityProtocol.SSL)
        self.gateway = Gateway(GatewaySettings(**settings), apis=(self.echo.api, API_VERSIONS))
        self.audit = Noting()
        self.gateway.shared.audit = self.audit
        self.settings = TlsSettings(
            keystore_location=str(self.authority.issue("server").both),
            truststore_location=str(self.authority.file),
            **tls,
        )
        self.tls = TlsGateway(
            self.gateway,
            self.settings,
            handshakes_max=self.handshakes_max,
            protocol=self.protocol,
        )

    def connect(self, own: Path | None = None, version: str | None = None) -> TlsDoor:
        context = make_client_context(self.authority.file, own)
        if version is not None:
            context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        return self.tls.connect(context)

    def connect_slow_reader(self, groups: int) -> TlsDoor:
        """A client that has asked for so many groups, and reads nothing."""
        door = self.connect()
        door.shake()
        self.echo.groups = groups
        door.socket.is_full = True
        door.send(ask())
        return door

    @property
    def refusals(self) -> Mapping[str, int]:
        return self.gateway.shared.refusals.counts

    @property
    def connections(self) -> int:
        return len(self.gateway.shared.connections)


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def ask(correlation_id: int = 1) -> bytes:
    return frame(LIST_GROUPS, 4, correlation_id, make_request(LIST_GROUPS, 4))


def ids(door: TlsDoor) -> list[int]:
    return [struct.unpack_from(">i", each)[0] for each in door.frames()]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_bytes_may_be_cut_anywhere(stand: Stand, version: str, size: int) -> None:
    door = stand.connect(version=version)
    door.shake(size)
    for number in range(3):
        door.send(ask(number), size)
    door.send(ask(3) + ask(4), size)
    assert ids(door) == [0, 1, 2, 3, 4]
    assert stand.echo.principals == ["User:ANONYMOUS"] * 5
    assert stand.connections == 1


@pytest.mark.parametrize("last", [1, 60, 2_000])
def test_a_large_record_may_end_with_few_bytes(stand: Stand, last: int) -> None:
    """All that is in it is handed over then, although fewer bytes have come."""
    door = stand.connect()
    door.shake()
    record = door.encrypt(b"".join(ask(number) for number in range(100)))
    door.deliver(record[:-last])
    assert ids(door) == []
    door.deliver(record[-last:])
    assert ids(door) == list(range(100))


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_what_comes_with_the_end_is_answered_before_it(stand: Stand, version: str) -> None:
    """A client commits, leaves and ends its side: its last requests are in the same bytes."""
    door = stand.connect(version=version)
    door.shake()
    records = door.encrypt(ask(1)) + door.encrypt(ask(2))
    with pytest.raises(ssl.SSLWantReadError):
        door.client.unwrap()
    sent = len(door.socket.sent)
    door.deliver(records + door.outgoing.read())
    assert stand.echo.principals == ["User:ANONYMOUS"] * 2
    assert len(door.socket.sent) > sent
    assert not door.socket.is_open


def test_records_before_a_broken_one_are_served(stand: Stand) -> None:
    door = stand.connect()
    door.shake()
    records = bytearray(door.encrypt(ask(1)) + door.encrypt(ask(2)))
    records[-1] ^= 1
    door.deliver(bytes(records))
    assert stand.echo.principals == ["User:ANONYMOUS"]
    assert stand.refusals == {"tls-record": 1}


def test_a_request_may_come_with_the_end_of_the_handshake(stand: Stand) -> None:
    door = stand.connect()
    door.deliver(door.hello())
    door.flow()
    door.client.do_handshake()
    door.client.write(ask(9) + ask(10))
    door.deliver(door.outgoing.read())
    assert ids(door) == [9, 10]


def test_the_principal_is_that_of_the_certificate(tmp_path: Path) -> None:
    stand = Stand(
        tmp_path,
        client_auth=ClientAuth.REQUESTED,
        principal_mapping_rules="RULE:^CN=([^,]*),.*$/$1/U,DEFAULT",
    )
    for own in (stand.authority.issue("client").both, None):
        door = stand.connect(own)
        door.shake()
        door.send(ask())
    assert stand.echo.principals == ["User:CLIENT", "User:ANONYMOUS"]


def test_a_client_of_sasl_is_nobody_yet(tmp_path: Path) -> None:
    stand = Stand(tmp_path, client_auth=ClientAuth.REQUESTED, protocol=SecurityProtocol.SASL_SSL)
    door = stand.connect(stand.authority.issue("client").both)
    door.shake()
    door.send(ask())
    assert stand.echo.principals == ["User:ANONYMOUS"]


def test_a_client_that_no_rule_names_is_refused(tmp_path: Path) -> None:
    stand = Stand(tmp_path, client_auth=ClientAuth.REQUIRED, principal_mapping_rules="RULE:^X$/x/")
    door = stand.connect(stand.authority.issue("client").both)
    door.shake()
    assert not door.socket.is_open
    assert stand.refusals == {"tls-principal": 1}
    assert stand.connections == 0
    reason = "no rule of ssl.principal.mapping.rules matches the certificate's name"
    assert stand.audit.failed == [("/127.0.0.1", "SSL", "SSL", reason)]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize(
    ("kind", "reason", "alert"),
    [
        ("none", "tls-no-certificate", "ALERT"),
        ("expired", "tls-certificate-expired", "ALERT_CERTIFICATE_EXPIRED"),
        ("unknown", "tls-unknown-ca", "ALERT_UNKNOWN_CA"),
    ],
)
def test_a_bad_certificate_is_told_to_the_client_the_log_and_the_audit(
    tmp_path: Path, kind: str, reason: str, alert: str, version: str
) -> None:
    stand = Stand(tmp_path, client_auth=ClientAuth.REQUIRED)
    own = None
    if kind == "expired":
        own = stand.authority.issue("client", days_left=-1).both
    elif kind == "unknown":
        own = Authority(tmp_path, "others").issue("client").both
    door = stand.connect(own, version)

    def shake_and_read() -> None:
        """With TLS 1.3 the client learns of it when it reads."""
        door.shake()
        door.receive()

    with pytest.raises(ssl.SSLError, match=alert):
        shake_and_read()
    assert stand.refusals == {reason: 1}
    ((host, listener, mechanism, said),) = stand.audit.failed
    assert (host, listener, mechanism) == ("/127.0.0.1", "SSL", "SSL")
    assert "certificate" in said
    assert not door.socket.is_open
    assert (stand.connections, stand.gateway.shared.held.requests) == (0, 0)


def test_a_version_that_is_not_enabled_is_refused(tmp_path: Path) -> None:
    stand = Stand(tmp_path, enabled_protocols=("TLSv1.3",))
    with pytest.raises(ssl.SSLError):
        stand.connect(version="TLSv1_2").shake()
    assert stand.refusals == {"tls-protocol-version": 1}


def test_no_common_cipher_is_refused(tmp_path: Path) -> None:
    stand = Stand(
        tmp_path,
        enabled_protocols=("TLSv1.2",),
        cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",),
    )
    context = make_client_context(stand.authority.file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        stand.tls.connect(context).shake()
    assert stand.refusals == {"tls-no-shared-cipher": 1}


def test_a_client_that_refuses_our_certificate_is_named(stand: Stand, tmp_path: Path) -> None:
    context = make_client_context(Authority(tmp_path, "others").file)
    door = stand.tls.connect(context)
    with pytest.raises(ssl.SSLCertVerificationError):
        door.shake()
    door.deliver(door.outgoing.read())
    assert stand.refusals == {"tls-refused-by-client": 1}
    assert stand.audit.failed == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [(ask(), "plaintext"), (b"GET / HTTP/1.1\r\n\r\n", "http"), (b"\x80\x2e\x01", "plaintext")],
)
def test_a_client_without_tls_is_refused_at_its_first_bytes(
    stand: Stand, data: bytes, reason: str
) -> None:
    door = stand.connect()
    door.deliver(data)
    assert stand.refusals == {reason: 1}
    assert (door.socket.is_open, door.socket.sent, stand.connections) == (False, b"", 0)


def test_bytes_that_are_no_handshake_are_refused(stand: Stand) -> None:
    door = stand.connect()
    door.deliver(b"\x16\x03\x01\x00\x05hello")
    assert stand.refusals == {"tls-handshake": 1}
    assert door.socket.sent[:1] == b"\x15"
    assert not door.socket.is_open


def test_a_hello_that_never_ends_is_refused(stand: Stand) -> None:
    """Records of a ClientHello of 120 KB, which OpenSSL itself would wait for."""
    door = stand.connect()
    whole = b"\x01\x01\xd4\xc0" + bytes(120_000)
    sent = 0
    for start in range(0, len(whole), 16_000):
        piece = whole[start : start + 16_000]
        if not door.socket.is_open:
            break
        door.deliver(b"\x16\x03\x01" + struct.pack(">H", len(piece)) + piece)
        sent += len(piece)
    assert sum(stand.refusals.values()) == 1
    assert not door.socket.is_open
    assert sent <= HANDSHAKE_BYTES_MAX + 16_000


def test_a_first_piece_beyond_the_limit_costs_nothing(stand: Stand) -> None:
    door = stand.connect()
    door.deliver(b"\x16\x03\x01" + bytes(HANDSHAKE_BYTES_MAX))
    assert stand.refusals == {"tls-handshake-size": 1}


def test_bytes_that_wait_for_a_step_count_as_those_of_requests(stand: Stand) -> None:
    door, held = stand.connect(), stand.gateway.shared.held
    door.socket.protocol.data_received(hello := door.hello())
    assert held.requests == len(hello)
    door.turn()
    assert held.requests == 0


def test_an_alert_that_is_not_read_is_not_waited_for(stand: Stand) -> None:
    door = stand.connect()
    door.socket.is_full = True
    door.deliver(b"\x16\x03\x01\x00\x05hello")
    assert not door.socket.was_aborted
    stand.gateway.clock.advance(6)
    assert door.socket.was_aborted


def test_a_handshake_and_what_follows_it_are_one_new_connection(stand: Stand) -> None:
    """The rate allows two at once."""
    quotas = stand.gateway.shared.quotas.index
    quotas.put(QuotaEntity(ip="127.0.0.1"), {"connection_creation_rate": 0.2})
    for _ in range(2):
        door = stand.connect()
        door.shake()
        door.send(ask(1))
        assert ids(door) == [1]
    assert not stand.connect().socket.is_open
    assert stand.refusals == {"too-fast-of-one-address": 1}


def test_a_slow_handshake_is_refused(stand: Stand) -> None:
    door = stand.connect()
    door.deliver(door.hello()[:50])
    (connection,) = stand.gateway.shared.connections
    now = stand.gateway.clock.time()
    connection.check_deadlines(now + 10)
    assert stand.refusals == {}
    connection.check_deadlines(now + 10.1)
    assert stand.refusals == {"tls-handshake-timeout": 1}
    assert not door.socket.is_open


def test_a_flood_of_half_open_ones_locks_nobody_out(tmp_path: Path) -> None:
    stand = Stand(tmp_path, handshakes_max=20)
    silent = [stand.connect() for _ in range(30)]
    begun = [stand.connect() for _ in range(10)]
    for door in begun:
        door.deliver(door.hello())
    door = stand.connect()
    door.shake()
    door.send(ask())
    assert ids(door) == [1]
    assert stand.refusals == {"tls-handshakes": 21}
    assert [door.socket.is_open for door in silent] == [False] * 21 + [True] * 9
    assert len(stand.tls.handshakes) == 19


def test_unfinished_handshakes_count_as_connections(tmp_path: Path) -> None:
    stand = Stand(tmp_path, max_connections=2)
    first, second, third = (stand.connect() for _ in range(3))
    assert stand.refusals == {"too-many-connections": 1}
    assert [door.socket.is_open for door in (first, second, third)] == [True, True, False]
    first.shake()
    assert stand.connections == 2


def test_a_connection_that_ends_in_its_handshake_leaves_nothing(stand: Stand) -> None:
    silent, begun, waiting = (stand.connect() for _ in range(3))
    begun.deliver(begun.hello())
    waiting.socket.protocol.data_received(waiting.hello())
    for door in (silent, begun, waiting):
        door.socket.protocol.connection_lost(None)
    waiting.turn()
    assert (stand.connections, len(stand.tls.handshakes)) == (0, 0)
    assert stand.gateway.shared.held.requests == 0
    assert stand.refusals == {"tls-abandoned": 1}


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_ends_are_told(stand: Stand, version: str) -> None:
    door = stand.connect(version=version)
    door.shake()
    door.send(struct.pack(">ihhih", 10, 9_999, 0, 1, -1))
    assert stand.refusals == {"unsupported": 1}
    assert door.is_ended
    assert not door.socket.is_open
    other = stand.connect(version=version)
    other.shake()
    with pytest.raises(ssl.SSLWantReadError):
        other.client.unwrap()
    other.deliver(other.outgoing.read())
    assert other.is_ended
    assert not other.socket.is_open
    assert stand.refusals == {"unsupported": 1}


def test_the_end_of_the_stream_closes_once_all_is_sent(stand: Stand) -> None:
    door = stand.connect_slow_reader(20_000)
    assert door.socket.protocol.eof_received() is True
    assert door.socket.is_open
    while door.socket.unsent:
        door.socket.take(100_000)
        door.turn()
    assert len(door.receive()) > 2_000_000
    assert not door.socket.is_open


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_the_last_requests_of_a_client_that_closes_are_served(stand: Stand, version: str) -> None:
    """It commits, leaves and says its end at once; what has to wait is not lost, as without TLS."""
    door = stand.connect(version=version)
    door.shake()
    count = REQUESTS + 3
    records = door.encrypt(b"".join(ask(number) for number in range(count)))
    with pytest.raises(ssl.SSLWantReadError):
        door.client.unwrap()
    door.deliver(records + door.outgoing.read())
    assert len(stand.echo.principals) == count
    assert not door.socket.is_open


def test_a_broken_record_ends_the_connection(stand: Stand) -> None:
    door = stand.connect()
    door.shake()
    record = bytearray(door.encrypt(ask()))
    record[-1] ^= 1
    door.deliver(bytes(record))
    assert stand.refusals == {"tls-record": 1}
    assert door.socket.was_aborted
    assert stand.echo.principals == []


def test_a_slow_reader_makes_the_server_hold_no_more_than_the_answer(stand: Stand) -> None:
    """The answer is encrypted as the socket takes it, and what waits is counted."""
    door = stand.connect_slow_reader(100_000)
    (connection,) = stand.gateway.shared.connections
    assert connection.transport is not None
    size = connection.transport.get_write_buffer_size()
    assert 10_000_000 < size < 12_000_000
    assert door.socket.most_unsent <= 512 * 1024
    now = stand.gateway.clock.time()
    assert connection.measure_answers(now + 5) >= size
    # A second request is held back: the client does not read.
    door.socket.protocol.data_received(door.encrypt(ask(8)))
    door.turn()
    assert stand.echo.principals == ["User:ANONYMOUS"]
    stand.echo.groups = 0
    got = b""
    while door.socket.unsent:
        door.socket.take(300_000)
        door.turn()
        got += door.receive()
    assert door.socket.most_unsent <= 512 * 1024
    door.socket.is_full = False
    door.turn()
    got += door.receive()
    first = 4 + struct.unpack_from(">i", got)[0]
    assert struct.unpack_from(">i", got, 4)[0] == 1
    assert struct.unpack_from(">i", got, first + 4)[0] == 8
    assert connection.transport.get_write_buffer_size() == 0


def test_a_slow_reader_is_refused_after_its_time(stand: Stand) -> None:
    door = stand.connect_slow_reader(100_000)
    (connection,) = stand.gateway.shared.connections
    connection.check_deadlines(stand.gateway.clock.time() + 61)
    assert stand.refusals == {"slow-reader": 1}
    stand.gateway.clock.advance(6)
    assert door.socket.was_aborted
    assert stand.connections == 0


def test_closing_in_the_middle_of_a_large_answer_sends_it_whole(stand: Stand) -> None:
    door = stand.connect_slow_reader(10_000)
    (connection,) = stand.gateway.shared.connections
    connection.close()
    assert stand.connections == 0
    assert door.socket.is_open
    got = b""
    while door.socket.unsent:
        door.socket.take(200_000)
        door.turn()
        got += door.receive()
    assert len(got) == 4 + struct.unpack_from(">i", got)[0]
    assert door.is_ended
    assert not door.socket.is_open


def test_a_client_that_does_not_read_is_not_waited_for(stand: Stand) -> None:
    door = stand.connect_slow_reader(10_000)
    (connection,) = stand.gateway.shared.connections
    connection.close()
    stand.gateway.clock.advance(6)
    assert door.socket.was_aborted


def test_what_arrives_while_reading_is_paused_is_kept(stand: Stand) -> None:
    door = stand.connect()
    door.shake()
    (connection,) = stand.gateway.shared.connections
    assert connection.transport is not None
    connection.transport.pause_reading()
    assert door.socket.is_paused
    door.socket.protocol.data_received(door.encrypt(ask(1)))
    door.socket.protocol.data_received(door.encrypt(ask(2)))
    door.turn()
    assert ids(door) == []
    connection.transport.resume_reading()
    door.turn()
    assert ids(door) == [1, 2]
    assert not door.socket.is_paused


def test_a_flood_of_tiny_records_takes_turns(tmp_path: Path) -> None:
    """Each piece is decrypted as the iteration has time; the socket is not read meanwhile."""
    stand = Stand(tmp_path)
    spent = [0.0]

    def now() -> float:
        spent[0] += 0.002
        return spent[0]

    stand.tls = TlsGateway(stand.gateway, stand.settings, now=now)
    door = stand.connect()
    door.shake()
    whole = b"".join(ask(number) for number in range(500))
    records = b"".join(door.encrypt(whole[at : at + 1]) for at in range(len(whole)))
    assert len(records) > 64 * 1024
    door.socket.protocol.data_received(records)
    assert door.socket.is_paused
    turns = 0
    while stand.gateway.clock.turn():
        turns += 1
    assert turns >= 3
    assert ids(door) == list(range(500))
    assert not door.socket.is_paused


def test_keys_may_be_replaced_between_handshakes(stand: Stand, tmp_path: Path) -> None:
    """The one under way goes on with the keys it began with, the connection lives on."""
    from security.tls.server_contexts import load_tls

    old, begun = stand.connect(), stand.connect()
    old.shake()
    begun.deliver(begun.hello())
    other = stand.authority.issue("renewed")
    stand.tls.contexts.replace(load_tls(TlsSettings(keystore_location=str(other.both))))
    begun.flow()
    begun.client.do_handshake()
    begun.deliver(begun.outgoing.read())
    new = stand.connect()
    new.shake()
    names = []
    for door in (old, begun, new):
        door.send(ask())
        assert ids(door) == [1]
        subject = dict(pair[0] for pair in door.client.getpeercert()["subject"])  # type: ignore[misc, index]
        names.append(subject["commonName"])
    assert names == ["server", "server", "renewed"]


def test_renegotiation_is_refused(stand: Stand) -> None:
    assert stand.tls.contexts.current.context.options & ssl.OP_NO_RENEGOTIATION
    assert stand.tls.contexts.current.context.options & ssl.OP_NO_COMPRESSION


def test_draining_drops_handshakes_and_closes_idle_connections(stand: Stand) -> None:
    silent, door = stand.connect(), stand.connect()
    door.shake()
    for connection in list(stand.gateway.shared.connections):
        connection.drain()
        assert connection.is_idle
    assert not silent.socket.is_open
    assert door.socket.is_paused
    (connection,) = stand.gateway.shared.connections
    connection.close()
    assert door.is_ended
