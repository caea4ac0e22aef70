"""The PEM files of a client's TLS, read again when they change."""

from __future__ import annotations

import os
from typing import Final, TypeAlias

import grpc

from muster.credentials import Pem, Tls
from muster.errors import MusterError

_PARTS: Final = ("ca", "certificate", "key")
_Stamp: TypeAlias = tuple[int, int, int] | None


class TlsFiles:
    """``make_credentials`` reads the files; ``has_changed`` whether they are others since."""

    __slots__ = ("_stamps", "_tls")

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._stamps: tuple[_Stamp, ...] = ()

    def has_changed(self) -> bool:
        """Whether a file is another than the one that was read last."""
        return self._find_stamps() != self._stamps

    def make_credentials(self) -> grpc.ChannelCredentials:
        """The credentials of a new channel. Raises ``MusterError`` for what cannot be read."""
        # Before the files are read: one that changes meanwhile is then read once more.
        self._stamps = self._find_stamps()
        ca, certificate, key = (self._read(part) for part in _PARTS)
        if certificate is not None and key is None:
            key = certificate
        if key is not None and b"ENCRYPTED" in key:
            raise MusterError("the key of tls has a password: muster.Tls takes keys without one")
        return grpc.ssl_channel_credentials(ca, key, certificate)

    def _find_stamps(self) -> tuple[_Stamp, ...]:
        return tuple(_find_stamp(getattr(self._tls, part)) for part in _PARTS)

    def _read(self, part: str) -> bytes | None:
        value: Pem | None = getattr(self._tls, part)
        if value is None or isinstance(value, bytes):
            return value
        try:
            with open(value, "rb") as file:
                return file.read()
        except OSError as error:
            path = os.fspath(value)
            raise MusterError(f"cannot read {path}, the {part} of tls: {error.strerror}") from error


def _find_stamp(value: Pem | None) -> _Stamp:
    if value is None or isinstance(value, bytes):
        return None
    try:
        found = os.stat(value)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
