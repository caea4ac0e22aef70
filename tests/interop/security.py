"""How a client is to show who it is, and to know its server, in the words of each library.

kafka-python and aiokafka take objects of their own: their programs translate for themselves.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

PLAIN, SCRAM_256, SCRAM_512, OAUTHBEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"

_MODULES: Final = "org.apache.kafka.common.security"
_LOGIN_MODULES: Final = {
    PLAIN: f"{_MODULES}.plain.PlainLoginModule",
    SCRAM_256: f"{_MODULES}.scram.ScramLoginModule",
    SCRAM_512: f"{_MODULES}.scram.ScramLoginModule",
    OAUTHBEARER: f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_LIFE_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Security:
    """What a client is given; an empty text is for nothing.

    ``certificate`` is a file with the client's key and certificate, ``token_file`` one with its
    token, which is read anew whenever a token is wanted.
    """

    protocol: str = "PLAINTEXT"
    ca: str = ""
    certificate: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    token_file: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(**json.loads(text))

    def format(self) -> str:
        """The option of the programs for it."""
        return json.dumps(asdict(self))

    def read_token(self) -> str:
        return Path(self.token_file).read_text()


NO_SECURITY: Final = Security()


def compute_java_settings(security: Security) -> dict[str, str]:
    """For Java's clients and Kafka's tools."""
    settings = {"security.protocol": security.protocol}
    if security.ca:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca}
    if security.certificate:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": security.certificate}
    if not security.mechanism:
        return settings
    settings["sasl.mechanism"] = security.mechanism
    login = f"{_LOGIN_MODULES[security.mechanism]} required"
    if security.mechanism == OAUTHBEARER:
        oauthbearer = f"{_MODULES}.oauthbearer"
        settings |= {
            "sasl.login.callback.handler.class": f"{oauthbearer}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.jwt.retriever.class": f"{oauthbearer}.FileJwtRetriever",
            "sasl.oauthbearer.token.endpoint.url": Path(security.token_file).as_uri(),
        }
    else:
        login += f' username="{security.user}" password="{security.password}"'
    return settings | {"sasl.jaas.config": f"{login};"}


def compute_jvm_options(security: Security) -> list[str]:
    """A JVM reads a token from no other file than it is allowed to."""
    if not security.token_file:
        return []
    allowed = Path(security.token_file).as_uri()
    return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}"]


def write_java_settings(security: Security, path: Path) -> Path:
    """A file for ``--command-config``."""
    settings = compute_java_settings(security)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def compute_librdkafka_settings(security: Security) -> dict[str, Any]:
    """For confluent-kafka."""
    settings: dict[str, Any] = {"security.protocol": security.protocol}
    if security.ca:
        settings["ssl.ca.location"] = security.ca
    if security.certificate:
        settings["ssl.certificate.location"] = security.certificate
        settings["ssl.key.location"] = security.certificate
    if not security.mechanism:
        return settings
    settings["sasl.mechanism"] = security.mechanism
    if security.mechanism == OAUTHBEARER:
        settings["oauth_cb"] = lambda _: (security.read_token(), time.time() + _TOKEN_LIFE_S)
    else:
        settings |= {"sasl.username": security.user, "sasl.password": security.password}
    return settings
