"""TLS of the gRPC listener, and how its clients authenticate, from the settings."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from cli.serve.doors.certificates import Certificates
from cli.serve.doors.listening import add_certificates
from cli.serve.doors.sasl import SaslSetup
from cli.settings import Resolved, SettingsError
from cli.settings.listeners.door_rules import GRPC
from cli.settings.listeners.listener_tls import compute_tls_settings
from coordinator.runtime.audit import Audit
from coordinator.service.credentials.authentication import (
    Authenticate,
    CertificateAuthentication,
    MetadataAuthentication,
)
from coordinator.service.credentials.login_checks import LoginChecks
from coordinator.service.credentials.password_checks import PasswordChecks
from coordinator.service.credentials.server_tls import ServerTls
from coordinator.service.credentials.shared_checks import SharedChecks
from model.access.scram import ScramMechanism
from security.sasl.conversation import OAUTHBEARER
from security.scram_credentials import ScramCredentials
from security.tls.tls_settings import ClientAuth

_KEY_BYTES = 32
_SCRAM_MECHANISMS = tuple(each.value for each in ScramMechanism)


@dataclass(frozen=True, slots=True)
class GrpcSecurity:
    """What the gRPC server needs to know; without ``authenticate`` its clients are nobody."""

    tls: ServerTls | None = None
    authenticate: Authenticate | None = None
    passwords: SharedChecks | None = None
    takes_tokens: bool = False

    @property
    def needs_credentials(self) -> bool:
        """Whether each call shows a password or a token."""
        return self.passwords is not None or self.takes_tokens

    def stop(self) -> None:
        """Check no passwords any more."""
        if self.passwords is not None:
            self.passwords.stop()


def make_grpc_security(
    resolved: Resolved,
    certificates: Certificates,
    sasl: SaslSetup,
    credentials: ScramCredentials,
    audit: Audit,
) -> GrpcSecurity:
    """What the settings ask for. Raises ``SettingsError``, ``CommandError``."""
    endpoint = resolved.endpoint(GRPC)
    tls = None
    if endpoint.protocol.uses_tls:
        contexts = add_certificates(resolved, endpoint, GRPC, certificates)
        client_auth = compute_tls_settings(resolved.values, endpoint).client_auth
        tls = ServerTls(contexts, requires_client=client_auth is ClientAuth.REQUIRED)
    if endpoint.protocol.uses_sasl:
        return _make_sasl(resolved, sasl, credentials, audit, tls)
    if tls is None:
        return GrpcSecurity()
    return GrpcSecurity(tls, CertificateAuthentication(tls.compute_identity, audit).authenticate)


def _make_sasl(
    resolved: Resolved,
    sasl: SaslSetup,
    credentials: ScramCredentials,
    audit: Audit,
    tls: ServerTls | None,
) -> GrpcSecurity:
    listener = resolved.endpoint(GRPC).name
    enabled = sasl.find_enabled(listener)
    by_password = sasl.find_password_mechanism(listener)
    takes_tokens = OAUTHBEARER in enabled
    if by_password is None and not takes_tokens:
        raise SettingsError(
            [
                f"{GRPC}: its clients show passwords of SCRAM users, or tokens: set "
                "listener.name.grpc.sasl.enabled.mechanisms=SCRAM-SHA-256,OAUTHBEARER, or to one "
                "of them"
            ]
        )
    key = secrets.token_bytes(_KEY_BYTES)
    passwords: SharedChecks | None = None
    token_logins = None
    if by_password is not None:
        logins = sasl.make_cluster_logins(listener, by_password)
        passwords = (
            LoginChecks(logins, key)
            if logins is not None
            else PasswordChecks(sasl.make_password_verifier(), credentials.find_mechanisms, key)
        )
    if takes_tokens and (logins := sasl.make_cluster_logins(listener, OAUTHBEARER)) is not None:
        token_logins = LoginChecks(logins, key)
    verifies_tokens = takes_tokens and token_logins is None
    made = MetadataAuthentication(
        tokens=sasl.make_bearer_verifier(listener) if verifies_tokens else None,
        passwords=passwords,
        token_logins=token_logins,
        delay_s=resolved.integer("connection.failed.authentication.delay.ms") / 1_000,
        password_session_ms=sasl.find_session_ms(listener, _SCRAM_MECHANISMS),
        token_session_ms=sasl.find_session_ms(listener, (OAUTHBEARER,)),
        audit=audit,
        key=key,
        wall_clock_s=time.time,
        refresh_keys=sasl.find_keys(listener).refresh if verifies_tokens else None,
    )
    return GrpcSecurity(tls, made.authenticate, passwords, takes_tokens)
