"""Metadata and DescribeCluster responses: brokers get their relays' addresses.

Only the bytes up to the end of the brokers are read, so a response may be rewritten before all of
it has come.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.codec.decoding import Cursor, DecodeError
from gateway.codec.kio_schema import response_type
from gateway.rewriting.naming import CannotRewrite, Naming, check_version
from gateway.rewriting.node_arrays import pack_own, read_nodes
from gateway.rewriting.skipping import compile_skip_to, find_field
from gateway.rewriting.splices import Splices, pack_length

METADATA_KEY: Final = 3
DESCRIBE_CLUSTER_KEY: Final = 60
ENDPOINT_BROKERS: Final = 1


def rewrite_metadata(version: int, body: bytes, naming: Naming) -> bytes:
    """Rewrite a Metadata response; raises ``CannotRewrite``."""
    return _rewrite_brokers(METADATA_KEY, version, body, naming, has_own=True)


def rewrite_describe_cluster(version: int, body: bytes, naming: Naming) -> bytes:
    """Rewrite a DescribeCluster response; raises ``CannotRewrite``.

    Controllers, which a client can ask for instead of brokers, have no relays and are left out.
    """
    has_own = True
    if version >= 1:
        check_version(DESCRIBE_CLUSTER_KEY, version)
        cursor = Cursor(body, 0, len(body), len(body))
        try:
            compile_skip_to(response_type(DESCRIBE_CLUSTER_KEY, version), "endpoint_type")(cursor)
            has_own = cursor.take(1)[0] == ENDPOINT_BROKERS
        except DecodeError as error:
            raise CannotRewrite(str(error)) from error
    return _rewrite_brokers(DESCRIBE_CLUSTER_KEY, version, body, naming, has_own)


def _rewrite_brokers(key: int, version: int, body: bytes, naming: Naming, has_own: bool) -> bytes:
    check_version(key, version)
    entity: Any = response_type(key, version)
    element = find_field(entity, "brokers").entity
    cursor = Cursor(body, 0, len(body), len(body))
    try:
        compile_skip_to(entity, "brokers")(cursor)
        start = cursor.pos
        nodes = read_nodes(cursor, element, naming)
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    if naming.own is not None and has_own:
        nodes.append(pack_own(naming.own, element))
    splices = Splices(body)
    head = pack_length(len(nodes), entity.__flexible__)
    splices.replace(start, cursor.pos, head + b"".join(nodes))
    return splices.join()
