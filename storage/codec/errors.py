"""What a codec raises: bytes, or JSON, that are not what they should be."""

from __future__ import annotations


class CodecError(Exception):
    """The input cannot be decoded, or a value cannot be encoded; the message says why."""


class TruncatedError(CodecError):
    """The input ends before the structure does."""


class ChecksumError(CodecError):
    """A record batch does not have the CRC-32C that it says it has."""


class TooLargeError(CodecError):
    """Compressed records are more than may be held."""


class UnsupportedCompressionError(CodecError):
    """A record batch is compressed in a way that cannot be read here."""
