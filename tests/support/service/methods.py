"""The calls of all services that a server has. A service that comes is among them by itself."""

from __future__ import annotations

from typing import Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default

from coordinator.service.grpc_server import SERVICES

METHODS: Final[dict[str, MethodDescriptor]] = {
    f"{service.name}.{method.name}": method
    for service in map(Default().FindServiceByName, SERVICES)
    for method in service.methods
}
"""By service and name: ``AdminService.ListGroups``."""
