"""Errors of the codec: malformed bytes or JSON."""

from __future__ import annotations


class CodecError(Exception):
    """The input cannot be decoded, or a value cannot be encoded; the message says why."""


class TruncatedError(CodecError):
    """The input ends before the structure does."""


class ChecksumError(CodecError):
    """A record batch does not match the CRC-32C in its header."""


class TooLargeError(CodecError):
    """Compressed records exceed the size limit when decompressed."""


class UnsupportedCompressionError(CodecError):
    """A record batch has an unknown compression, or no decompressor was given."""
