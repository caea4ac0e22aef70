"""Authorization of gRPC calls, with the operations and resources of the Kafka requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator.runtime.authorizer import AclAuthorizer, Authorizer
from coordinator.service.calls.grpc_caller import compute_caller
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.caller import Caller
from model.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    SecurityDisabled,
    TopicAuthorizationFailed,
)
from model.ids import GroupId, TopicName
from security.acl_index import Decision, Request

_NO_AUTHORIZER: Final = (
    "No Authorizer is configured: start the server with authorizer.class.name=StandardAuthorizer"
)


class Access:
    """Authorizes callers. ``check_*`` raises the authorization error of the resource."""

    __slots__ = ("_authorizer",)

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check_group(self, caller: Caller, operation: Operation, group_id: GroupId) -> None:
        """Raise ``GroupAuthorizationFailed`` unless the caller may do this to the group."""
        if not self._may(caller, operation, ResourceType.GROUP, group_id):
            raise GroupAuthorizationFailed(
                f"{caller.principal} is not authorized to {operation.value} this group"
            )

    def check_topics(
        self, caller: Caller, operation: Operation, topics: Iterable[TopicName]
    ) -> None:
        """Raise ``TopicAuthorizationFailed`` if any topic is denied, without naming it."""
        for topic in topics:
            if not self.may_topic(caller, operation, topic):
                raise TopicAuthorizationFailed(
                    f"{caller.principal} is not authorized to {operation.value} all these topics"
                )

    def check_cluster(self, caller: Caller, operation: Operation) -> None:
        """Raise ``ClusterAuthorizationFailed`` unless the caller may do this to the cluster."""
        if not self._may(caller, operation, ResourceType.CLUSTER, CLUSTER_NAME):
            raise ClusterAuthorizationFailed(
                f"{caller.principal} is not authorized to {operation.value} the cluster"
            )

    def check_cluster_caller(self, peer: str, operation: Operation) -> Caller:
        """The caller behind a gRPC peer. Raises what ``check_cluster`` raises."""
        caller = compute_caller(peer, "")
        self.check_cluster(caller, operation)
        return caller

    def check_acls(self, caller: Caller, operation: Operation) -> None:
        """Raise an error unless the caller may do this to ACLs, and an authorizer has them."""
        self.check_cluster(caller, operation)
        if not isinstance(self._authorizer, AclAuthorizer):
            raise SecurityDisabled(_NO_AUTHORIZER)

    def decide(self, request: Request) -> Decision:
        """Decide for any principal, and say why. Raises ``SecurityDisabled``."""
        if not isinstance(self._authorizer, AclAuthorizer):
            raise SecurityDisabled(_NO_AUTHORIZER)
        return self._authorizer.decide(request)

    def may_topic(self, caller: Caller, operation: Operation, topic: TopicName) -> bool:
        """Whether the caller may do this to the topic; if not, it is refused."""
        return self._may(caller, operation, ResourceType.TOPIC, topic)

    # Where a denial refuses nothing: it is left out of a list, or another right would do.

    def sees_group(self, caller: Caller, operation: Operation, group_id: GroupId) -> bool:
        return self._authorizer.may_see(caller, operation, ResourceType.GROUP, group_id)

    def sees_topic(self, caller: Caller, operation: Operation, topic: TopicName) -> bool:
        return self._authorizer.may_see(caller, operation, ResourceType.TOPIC, topic)

    def sees_cluster(self, caller: Caller, operation: Operation) -> bool:
        return self._authorizer.may_see(caller, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def _may(self, caller: Caller, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._authorizer.authorize(caller, operation, kind, name)
