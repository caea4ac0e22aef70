"""ApiVersions (18), versions 0 to 4: the served APIs and the finalized features.

A request of a later version gets UNSUPPORTED_VERSION, encoded in version 0 (KIP-511). Features:
``group.version`` 1 is the consumer group protocol; ``metadata.version`` stands for the Kafka
release whose wire protocol is served. Left out: features that are not served (share groups,
streams, transactions).

In front of a cluster: what this server serves, and what it passes on as all brokers serve it. The
cluster's features are its own brokers' to tell: epoch 0, so that clients believe those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.fronting.front import Front
from gateway.fronting.offered import compute_offered
from model.errors import ErrorCode

KEY = 18
wire = response_schema(KEY)

GROUP_VERSION: Final = 1
METADATA_VERSION: Final = 30
OLDEST_METADATA_VERSION: Final = 7
GROUP: Final = "group.version"
_LEVELS: Final = {
    GROUP: (0, GROUP_VERSION),
    "metadata.version": (OLDEST_METADATA_VERSION, METADATA_VERSION),
}
"""The lowest and the highest level of each feature; the highest is finalized."""
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_ZERO_MIN_FEATURES_SINCE: Final = 4
"""Below version 4 a feature with minimum level 0 must be left out (KIP-1022)."""


def handle(context: RequestContext, request: Any) -> None:
    """Reply; from version 3 the client's software name and version are validated (KIP-511)."""
    name = getattr(request, "client_software_name", None)
    software = getattr(request, "client_software_version", None)
    if name is not None and not (_is_software(name) and _is_software(software)):
        context.reply(_make(context, ErrorCode.INVALID_REQUEST, ()))
        return
    if context.client.sasl is not None:
        context.client.sasl.note_greeting()
    node = context.node
    if node.front is not None and not node.front.versions:
        # A client believes what it hears, and gives up what is not there.
        context.client.refuse("cluster-unreachable", "what the brokers serve is not known yet")
        return
    served = _served(node.apis) if node.front is None else _offered(node.front, node.apis)
    context.reply(_make(context, ErrorCode.NONE, served))


def _is_software(text: str | None) -> bool:
    return text is not None and _SOFTWARE.fullmatch(text) is not None


@cache
def _served(apis: tuple[Api, ...]) -> tuple[Any, ...]:
    return tuple(_api_version(api) for api in sorted(apis, key=lambda api: api.key))


def _offered(front: Front, apis: tuple[Api, ...]) -> tuple[Any, ...]:
    """What a node in front of a cluster serves and passes on now."""
    rows = []
    for api in sorted(apis, key=lambda api: api.key):
        offered = compute_offered(front, api.key, api.versions)
        if offered:
            least = offered[0] if api.least_advertised is None else api.least_advertised
            rows.append(
                wire.ApiVersion(api_key=api.key, min_version=least, max_version=offered[-1])
            )
    return tuple(rows)


def _api_version(api: Api) -> Any:
    least, last = api.advertised
    return wire.ApiVersion(api_key=api.key, min_version=least, max_version=last)


def _make(context: RequestContext, code: ErrorCode, api_keys: tuple[Any, ...]) -> Any:
    front = context.node.front
    levels = _LEVELS if front is None else _compute_levels(front)
    return wire.ApiVersionsResponse(
        error_code=code,
        api_keys=api_keys,
        throttle_time=0,
        supported_features=tuple(
            wire.SupportedFeatureKey(name=name, min_version=least, max_version=level)
            for name, (least, level) in levels.items()
            if least or context.version >= _ZERO_MIN_FEATURES_SINCE
        ),
        finalized_features_epoch=1 if front is None else 0,
        finalized_features=tuple(
            wire.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, (_, level) in levels.items()
        ),
    )


def _compute_levels(front: Front) -> Mapping[str, tuple[int, int]]:
    return {GROUP: _LEVELS[GROUP]} if front.offers_consumer_protocol else {}


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request; UNSUPPORTED_VERSION carries the served range of ApiVersions itself."""
    keys = (_api_version(API),) if code is ErrorCode.UNSUPPORTED_VERSION else ()
    return _make(context, code, keys)


API = Api(key=KEY, name="ApiVersions", versions=range(5), handler=handle, failed=failed)
