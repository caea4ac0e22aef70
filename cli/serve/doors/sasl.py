"""Makes SASL for each listener from the settings, and keeps the keys of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cli.errors import CommandError, ExitCode
from cli.settings import Resolved, SettingsError, Value
from cli.settings.listeners.listener_tls import PREFIX, compute_prefix_name, get_of_listener
from gateway.sasl.sasl_listener import SaslListener
from model.access.scram import ScramMechanism
from model.secret import Secret
from security.endpoints import Endpoint
from security.sasl.claimed_names import make_name_readers
from security.sasl.conversation import OAUTHBEARER, Mechanism
from security.sasl.jaas import parse_plain_users
from security.sasl.plain import PLAIN, Plain
from security.sasl.scram_users import PasswordVerifier
from security.scram_credentials import ScramCredentials

if TYPE_CHECKING:
    from cli.serve.doors.jwks_keys import JwksKeys
    from security.sasl.bearer_tokens import BearerVerifier
    from upstream.cluster.cluster import Cluster
    from upstream.logins.cluster_logins import ClusterLogins


class SaslSetup:
    """SASL of a server's listeners."""

    def __init__(self, resolved: Resolved, cluster: Cluster | None = None) -> None:
        """With ``cluster``, which Muster stands in front of, clients log in there."""
        self._resolved = resolved
        self._cluster = cluster
        self._keys: dict[str, JwksKeys] = {}
        self._find_secret: Callable[[], bytes] | None = None
        self.credentials = ScramCredentials()
        """Those of SCRAM users, which the coordinator fills."""

    async def start(self, find_secret: Callable[[], bytes]) -> None:
        """Read the keys of tokens. Raises ``CommandError`` if a file of them cannot be used.

        ``find_secret``: what the salts of unknown users are derived from.
        """
        self._find_secret = find_secret
        for keys in self._keys.values():
            try:
                await keys.start()
            except ValueError as error:
                line = f"sasl.oauthbearer.jwks.endpoint.url: {error}"
                raise CommandError(line, ExitCode.USAGE) from error

    def stop(self) -> None:
        """Read no more keys."""
        for keys in self._keys.values():
            keys.stop()

    def make_sasl(self, endpoint: Endpoint) -> SaslListener:
        """What the clients of this listener have to show. Raises ``SettingsError``."""
        name, resolved = endpoint.name, self._resolved
        if self._cluster is not None:
            return self._make_passed_on(name, self._cluster)
        enabled = self.find_enabled(name)
        if not enabled:
            raise SettingsError(
                [
                    f"the listener {name} uses SASL, and no mechanism is enabled: set "
                    "sasl.enabled.mechanisms=SCRAM-SHA-256"
                ]
            )
        reauth = {each: self._number(name, "connections.max.reauth.ms", each) for each in enabled}
        return SaslListener(
            {each: self._make_mechanism(name, each) for each in enabled},
            max_receive_size=self._number(name, "sasl.server.max.receive.size"),
            reauth_ms=reauth,
            timeout_ms=resolved.integer("gateway.authentication.timeout.ms"),
            failure_delay_ms=resolved.integer("connection.failed.authentication.delay.ms"),
            keys=self.find_keys(name) if OAUTHBEARER in enabled else None,
        )

    def _make_passed_on(self, listener: str, cluster: Cluster) -> SaslListener:
        """Clients show the cluster who they are, by the mechanisms that it has."""
        from upstream.logins.passed_login import PassedLogins

        resolved = self._resolved
        return SaslListener(
            {},
            max_receive_size=self._number(listener, "sasl.server.max.receive.size"),
            timeout_ms=resolved.integer("gateway.authentication.timeout.ms"),
            failure_delay_ms=resolved.integer("connection.failed.authentication.delay.ms"),
            logins=PassedLogins(cluster),
            readers=make_name_readers(self._find_sub_claim(listener)),
        )

    def make_cluster_logins(self, listener: str, mechanism: str) -> ClusterLogins | None:
        """Checks credentials at the cluster; ``None`` if there is none behind."""
        if self._cluster is None:
            return None
        # As in other places here: what it imports takes long, and few servers need it.
        from upstream.logins.cluster_logins import ClusterLogins

        reader = make_name_readers(self._find_sub_claim(listener))[mechanism]
        return ClusterLogins(self._cluster, mechanism, reader)

    def _find_sub_claim(self, listener: str) -> str:
        return str(self._get(listener, "sasl.oauthbearer.sub.claim.name", OAUTHBEARER))

    def find_enabled(self, listener: str) -> tuple[str, ...]:
        """The mechanisms that are enabled on a listener."""
        return self._texts(listener, "sasl.enabled.mechanisms")

    def find_password_mechanism(self, listener: str) -> str | None:
        """What checks passwords that arrive as they are; PLAIN does so only in a cluster."""
        names = [each.value for each in ScramMechanism]
        if self._cluster is not None:
            names.append(PLAIN)
        return next((each for each in self.find_enabled(listener) if each in names), None)

    def find_session_ms(self, listener: str, mechanisms: Sequence[str]) -> int:
        """After how long who uses one of these has to authenticate again; 0 for never."""
        name = "connections.max.reauth.ms"
        limits = (self._number(listener, name, each) for each in mechanisms)
        return min((limit for limit in limits if limit), default=0)

    def make_password_verifier(self) -> PasswordVerifier:
        """Checks the passwords of SCRAM users, of clients that send them as they are."""
        return PasswordVerifier(self.credentials, self._salt_secret)

    def make_bearer_verifier(self, listener: str) -> BearerVerifier:
        """Checks the tokens of this listener's clients. Raises ``SettingsError``."""
        # Here and below: what these import takes long, and few servers need it.
        from security.sasl.bearer_tokens import BearerRules, BearerVerifier

        prefix = "sasl.oauthbearer."
        issuer, sub, scope = (
            self._get(listener, prefix + each, OAUTHBEARER)
            for each in ("expected.issuer", "sub.claim.name", "scope.claim.name")
        )
        keys = self.find_keys(listener)
        rules = BearerRules(
            None if issuer is None else str(issuer),
            self._texts(listener, prefix + "expected.audience", OAUTHBEARER),
            self._number(listener, prefix + "clock.skew.seconds", OAUTHBEARER),
            str(sub),
            str(scope),
        )
        return BearerVerifier(lambda: keys.keys, rules)

    def _make_mechanism(self, listener: str, mechanism: str) -> Mechanism:
        match mechanism:
            case "PLAIN":
                return self._make_plain(listener)
            case "OAUTHBEARER":
                from security.sasl.oauthbearer import OauthBearer

                return OauthBearer(self.make_bearer_verifier(listener))
            case _:
                from security.sasl.scram import Scram

                return Scram(ScramMechanism(mechanism), self.credentials, self._salt_secret)

    def _salt_secret(self) -> bytes:
        assert self._find_secret is not None, "nobody is served before the start"
        return self._find_secret()

    def _make_plain(self, listener: str) -> Plain:
        text = self._get(listener, "sasl.jaas.config", PLAIN)
        name = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
        if not isinstance(text, Secret):
            raise SettingsError([f"PLAIN is enabled and has no users: set {name}"])
        try:
            return Plain(parse_plain_users(text.reveal()))
        except ValueError as error:
            raise SettingsError([f"{name}: {error}"]) from error

    def find_keys(self, listener: str) -> JwksKeys:
        """The keys that this listener's tokens are signed with, which listeners may share."""
        from cli.serve.doors.jwks_keys import JwksKeys

        name = "sasl.oauthbearer.jwks.endpoint.url"
        url = self._get(listener, name, OAUTHBEARER)
        if not isinstance(url, str):
            raise SettingsError([f"OAUTHBEARER is enabled and has no keys: set {name}=file:/PATH"])
        if url not in self._keys:
            prefix = "sasl.oauthbearer.jwks.endpoint."
            times = (
                self._number(listener, prefix + each, OAUTHBEARER)
                for each in ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")
            )
            try:
                self._keys[url] = JwksKeys(url, *times)
            except ValueError as error:
                raise SettingsError([f"{name}: {error}"]) from error
        return self._keys[url]

    def _get(self, listener: str, name: str, mechanism: str | None = None) -> Value:
        """The value for a mechanism at a listener, else for the listener, else for all."""
        values = self._resolved.values
        if mechanism is not None:
            own = f"{PREFIX}{compute_prefix_name(f'{listener}.{mechanism}')}.{name}"
            if own in values:
                return values[own]
        return get_of_listener(values, listener, name)

    def _texts(self, listener: str, name: str, mechanism: str | None = None) -> tuple[str, ...]:
        value = self._get(listener, name, mechanism)
        assert value is None or isinstance(value, tuple), name
        return tuple(str(each) for each in value or ())

    def _number(self, listener: str, name: str, mechanism: str | None = None) -> int:
        value = self._get(listener, name, mechanism)
        assert isinstance(value, int), name
        return value
