"""Decompression of record batches with a bound on the output size, and compression.

Muster compresses only when it rewrites a compressed batch with fewer records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cramjam

from storage.codec.errors import (
    CodecError,
    TooLargeError,
    TruncatedError,
    UnsupportedCompressionError,
)

DEFAULT_MAX_BYTES = 100 << 20
_FIRST_BUFFER = 64 << 10
_GROWTH = 8
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_BLOCK_LENGTH = struct.Struct(">i")
_BUFFER_TOO_SMALL = "failed to write whole buffer"


def decompress(codec: int, data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Decompress the records section of a batch (codec 1 gzip, 2 snappy, 3 lz4, 4 zstd).

    Raises ``CodecError`` if the data is damaged, and ``TooLargeError`` if the output would exceed
    ``max_bytes``; it never allocates more than that.
    """
    match codec:
        case 1:
            return _decompress_frame(cramjam.gzip.decompress_into, data, max_bytes)
        case 2:
            return _decompress_snappy(data, max_bytes)
        case 3:
            return _decompress_frame(cramjam.lz4.decompress_into, data, max_bytes)
        case 4:
            return _decompress_frame(cramjam.zstd.decompress_into, data, max_bytes)
        case _:
            raise UnsupportedCompressionError(f"compression {codec} is unknown")


def compress(codec: int, data: bytes) -> bytes:
    """Compress a records section so that any Kafka client can read it; favors speed over size."""
    match codec:
        case 1:
            return bytes(cramjam.gzip.compress(data, level=1))
        case 2:
            block = bytes(cramjam.snappy.compress_raw(data))
            return _XERIAL_HEADER + _BLOCK_LENGTH.pack(len(block)) + block
        case 3:
            return bytes(cramjam.lz4.compress(data))
        case 4:
            return bytes(cramjam.zstd.compress(data))
        case _:
            raise UnsupportedCompressionError(f"compression {codec} is unknown")


def _decompress_frame(
    decompress_into: Callable[[Any, Any], int], data: bytes, max_bytes: int
) -> bytes:
    """Decompress a frame into a buffer that grows: frames need not declare their content size."""
    size = min(max(_FIRST_BUFFER, _GROWTH * len(data)), max_bytes)
    while True:
        buffer = bytearray(size)
        try:
            length = decompress_into(data, buffer)
            return bytes(memoryview(buffer)[:length])
        except cramjam.DecompressionError as error:
            if str(error) != _BUFFER_TOO_SMALL:
                raise CodecError(f"compressed records are damaged: {error}") from None
        if size == max_bytes:
            raise _compute_too_large(max_bytes)
        size = min(size * _GROWTH, max_bytes)


def _decompress_snappy(data: bytes, max_bytes: int) -> bytes:
    """Decompress snappy: the Java client writes xerial-framed blocks, others one raw block."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_block(data, 0, max_bytes)
    parts = []
    pos, total = _XERIAL_HEADER_SIZE, 0
    while pos < len(data):
        if pos + _BLOCK_LENGTH.size > len(data):
            raise TruncatedError("compressed records end within the length of a block")
        (length,) = _BLOCK_LENGTH.unpack_from(data, pos)
        pos += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - pos:
            raise TruncatedError(f"compressed records have a block of {length} bytes at {pos}")
        part = _decompress_block(data[pos : pos + length], total, max_bytes)
        total += len(part)
        parts.append(part)
        pos += length
    return b"".join(parts)


def _decompress_block(data: bytes, before: int, max_bytes: int) -> bytes:
    try:
        if before + cramjam.snappy.decompress_raw_len(data) > max_bytes:
            raise _compute_too_large(max_bytes)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise CodecError(f"compressed records are damaged: {error}") from None


def _compute_too_large(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"compressed records would take more than {max_bytes} bytes")
