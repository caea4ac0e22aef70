"""The table of Kafka APIs in front of a cluster: those of groups are served, others passed on."""

from __future__ import annotations

from typing import Final

from gateway.api import Api
from gateway.apis.fronted import find_coordinator, remembered_metadata
from gateway.apis.fronted.passed_apis import PASSED_APIS
from gateway.apis.fronted.shared_apis import SHARED_APIS
from gateway.fronting.offered import SERVED_HERE

TXN_OFFSET_COMMIT: Final = 28
"""Served here, and passed on with the transaction: in the versions that both sides know."""


def make_fronted_apis(apis: tuple[Api, ...]) -> tuple[Api, ...]:
    """The table for a server that serves ``apis`` when it stands alone."""
    here = tuple(api for api in apis if api.key in SERVED_HERE or api.key == TXN_OFFSET_COMMIT)
    passed = (api for api in PASSED_APIS if api.key != remembered_metadata.API.key)
    return (*here, find_coordinator.API, remembered_metadata.API, *SHARED_APIS, *passed)
