"""What servers with security and their clients share: certificates, users, an issuer of tokens."""

from __future__ import annotations

import time
from pathlib import Path

from tests.interop.security import OAUTHBEARER, PLAIN, SCRAM_256, SCRAM_512, Security
from tests.support.certificates import Authority
from tests.support.tokens import TokenIssuer

MECHANISMS = (PLAIN, SCRAM_256, SCRAM_512, OAUTHBEARER)
SSL, MTLS, SASL_PLAINTEXT, SASL_SSL = "SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL"
LISTENERS = {SSL: SSL, MTLS: SSL, SASL_PLAINTEXT: SASL_PLAINTEXT, SASL_SSL: SASL_SSL}
"""Listeners beside PLAINTEXT, and the protocol of each; MTLS asks clients for certificates."""
ANONYMOUS, ROOT = "ANONYMOUS", "root"
SUPER_USERS = (ANONYMOUS, ROOT)
"""Whoever comes by PLAINTEXT may do everything, and so prepares a server."""
PRINCIPAL_RULES = "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT"


def password_of(user: str) -> str:
    return f"{user}-secret"


class Trust:
    """The one authority and the one issuer that are trusted, and of each another that is not."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.issuer = TokenIssuer(folder / "issuer")
        self.server = self.authority.issue("server").both
        self._stranger = Authority(folder, "stranger")
        self._forger = TokenIssuer(folder / "forger")
        self._now_s = int(time.time())

    def log_in(self, mechanism: str, user: str, protocol: str = SASL_SSL) -> Security:
        """A client that shows who it is by SASL."""
        token = str(self.issuer.write(user, self._now_s)) if mechanism == OAUTHBEARER else ""
        return self._make(mechanism, user, password_of(user), token, protocol)

    def fail_to_log_in(self, mechanism: str, user: str, protocol: str = SASL_SSL) -> Security:
        """One with a wrong password, or a token that another issuer has signed."""
        token = str(self._forger.write(user, self._now_s)) if mechanism == OAUTHBEARER else ""
        return self._make(mechanism, user, "wrong", token, protocol)

    def certify(self, user: str) -> Security:
        """A client that shows who it is by its certificate."""
        certificate = str(self.authority.issue(user).both)
        return Security(SSL, str(self.authority.file), certificate)

    def fail_to_certify(self, user: str) -> Security:
        """One whose certificate is of an authority that the server does not know."""
        certificate = str(self._stranger.issue(f"{user}-of-a-stranger").both)
        return Security(SSL, str(self.authority.file), certificate)

    def _make(
        self, mechanism: str, user: str, password: str, token_file: str, protocol: str
    ) -> Security:
        return Security(
            protocol,
            str(self.authority.file) if protocol == SASL_SSL else "",
            mechanism=mechanism,
            user="" if mechanism == OAUTHBEARER else user,
            password="" if mechanism == OAUTHBEARER else password,
            token_file=token_file,
        )
