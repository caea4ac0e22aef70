"""ApiVersions (18), versions 0 to 4: the served APIs and the finalized features.

A request of a later version gets UNSUPPORTED_VERSION, encoded in version 0 (KIP-511). Features:
``group.version`` 1 is the consumer group protocol; ``metadata.version`` stands for the Kafka
release whose wire protocol is served. Left out: features that are not served (share groups,
streams, transactions).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from model.errors import ErrorCode

KEY = 18
wire = response_schema(KEY)

GROUP_VERSION: Final = 1
METADATA_VERSION: Final = 30
OLDEST_METADATA_VERSION: Final = 7
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
    context.reply(_make(context, ErrorCode.NONE, _served(context.node.apis)))


def _is_software(text: str | None) -> bool:
    return text is not None and _SOFTWARE.fullmatch(text) is not None


@cache
def _served(apis: tuple[Api, ...]) -> tuple[Any, ...]:
    return tuple(_api_version(api) for api in sorted(apis, key=lambda api: api.key))


def _api_version(api: Api) -> Any:
    least, last = api.advertised
    return wire.ApiVersion(api_key=api.key, min_version=least, max_version=last)


def _make(context: RequestContext, code: ErrorCode, api_keys: tuple[Any, ...]) -> Any:
    supported = [
        wire.SupportedFeatureKey(
            name="metadata.version",
            min_version=OLDEST_METADATA_VERSION,
            max_version=METADATA_VERSION,
        )
    ]
    if context.version >= _ZERO_MIN_FEATURES_SINCE:
        supported.insert(
            0,
            wire.SupportedFeatureKey(
                name="group.version", min_version=0, max_version=GROUP_VERSION
            ),
        )
    return wire.ApiVersionsResponse(
        error_code=code,
        api_keys=api_keys,
        throttle_time=0,
        supported_features=tuple(supported),
        finalized_features_epoch=1,
        finalized_features=(
            wire.FinalizedFeatureKey(
                name="group.version",
                max_version_level=GROUP_VERSION,
                min_version_level=GROUP_VERSION,
            ),
            wire.FinalizedFeatureKey(
                name="metadata.version",
                max_version_level=METADATA_VERSION,
                min_version_level=METADATA_VERSION,
            ),
        ),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request; UNSUPPORTED_VERSION carries the served range of ApiVersions itself."""
    keys = (_api_version(API),) if code is ErrorCode.UNSUPPORTED_VERSION else ()
    return _make(context, code, keys)


API = Api(key=KEY, name="ApiVersions", versions=range(5), handler=handle, failed=failed)
