"""One Metadata request over a plain socket: is a server of the Kafka wire ready to be used?"""

import io
import socket
import struct
import time
from collections.abc import Callable

from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.response_header.v1.header import ResponseHeader
from kio.serial import entity_reader, entity_writer

_CLIENT_ID = b"muster-probe"
_PAUSE_S = 0.05

_write_request = entity_writer(MetadataRequest)
_read_header = entity_reader(ResponseHeader)
_read_response = entity_reader(MetadataResponse)


def wait_until_ready(
    host: str, port: int, deadline: float, has_ended: Callable[[], bool] = lambda: False
) -> bool:
    """Ask for metadata until a broker is listed in it.

    False when `deadline` (monotonic seconds) passes, or once the server's process `has_ended`.
    A Kafka broker accepts connections, and even answers, before its controller lists it; topics
    that are created then get no leader.
    """
    while (remaining := deadline - time.monotonic()) > 0 and not has_ended():
        try:
            if read_metadata(host, port, min(remaining, 2.0)).brokers:
                return True
        except OSError:
            pass
        time.sleep(_PAUSE_S)
    return False


def read_metadata(host: str, port: int, timeout_s: float) -> MetadataResponse:
    """Brokers and cluster id of the server, without topics. Raises OSError, also on a time-out."""
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(_encode_request())
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", _read_exactly(stream, 4))
            payload = _read_exactly(stream, size)
    _, start = _read_header(payload, 0)
    response, _ = _read_response(payload, start)
    return response


def _encode_request() -> bytes:
    body = io.BytesIO()
    header = struct.pack(">hhih", MetadataRequest.__api_key__, 12, 1, len(_CLIENT_ID))
    body.write(header + _CLIENT_ID + b"\0")
    _write_request(
        body,
        MetadataRequest(
            topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
        ),
    )
    frame = body.getvalue()
    return struct.pack(">i", len(frame)) + frame


def _read_exactly(stream: io.BufferedIOBase, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionError("the server closed the connection within an answer")
    return data
