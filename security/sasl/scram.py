"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the server's side.

The password never arrives, and the client does the costly part. Left out: channel binding, for
which a client would send the flag ``p``, and extensions (Kafka's ``tokenauth``, for delegation
tokens).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import scramp
from scramp.utils import ServerError

from model.access.scram import ScramMechanism
from security.identity import Identity
from security.sasl.conversation import Authenticated, Challenge, NotAuthenticated, Step, decode_text
from security.sasl.scram_users import find_credential
from security.scram_credentials import ScramCredentials

TOKEN_BYTES_MAX: Final = 4 * 1024


class Scram:
    """One of the two mechanisms, for the users with credentials."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: ScramCredentials,
        find_secret: Callable[[], bytes],
    ) -> None:
        """``find_secret``: what the salts of unknown users are derived from."""
        self.mechanism = mechanism
        self.credentials = credentials
        self.find_secret = find_secret

    @property
    def name(self) -> str:
        return self.mechanism.value

    def begin(self, nonce: str) -> ScramConversation:
        """A conversation of two tokens."""
        return ScramConversation(self, nonce)


class _Lookup:
    """What the library asks for. An object of its own, so that nothing refers to itself."""

    def __init__(self, scram: Scram) -> None:
        self._scram = scram
        self.user = ""
        self.is_real = False

    def find(self, _prepared: str) -> tuple[bytes, bytes, bytes, int]:
        """The credential of the user, whose name is as the client sent it, as in Kafka."""
        scram = self._scram
        found, self.is_real = find_credential(
            scram.credentials, scram.mechanism, self.user, scram.find_secret()
        )
        return found.salt, found.stored_key, found.server_key, found.iterations


class ScramConversation:
    """One client's two messages."""

    def __init__(self, scram: Scram, nonce: str) -> None:
        self._lookup = _Lookup(scram)
        self._is_first = True
        library = scramp.ScramMechanism(scram.name)
        self._server = library.make_server(self._lookup.find, s_nonce=nonce)

    def answer(self, token: bytes, now_s: float) -> Step:
        """Answer the first message with the salt, the second with the server's signature."""
        text = decode_text(token, TOKEN_BYTES_MAX)
        try:
            return self._answer_first(text) if self._is_first else self._answer_final(text)
        except scramp.ScramException as error:
            is_wrong = error.server_error is ServerError.INVALID_PROOF
            reason = "wrong user or password" if is_wrong else "the message is malformed"
            raise NotAuthenticated(reason) from None
        except ValueError:
            raise NotAuthenticated("the message is malformed") from None

    def _answer_first(self, text: str) -> Challenge:
        self._is_first = False
        name = text.split(",", 3)[2] if text.count(",") >= 3 else ""
        # The library checks the whole message, also that a name is where this one is.
        self._lookup.user = name.removeprefix("n=").replace("=2C", ",").replace("=3D", "=")
        if text.startswith("p="):
            raise NotAuthenticated("the client asks for channel binding")
        self._server.set_client_first(text)
        return Challenge(self._server.get_server_first().encode("utf-8"))

    def _answer_final(self, text: str) -> Authenticated:
        self._server.set_client_final(text)
        if not self._lookup.is_real:
            raise NotAuthenticated("wrong user or password")
        last = self._server.get_server_final().encode("utf-8")
        return Authenticated(Identity(f"User:{self._lookup.user}"), last)
