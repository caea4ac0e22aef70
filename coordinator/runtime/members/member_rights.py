"""What a live member is still allowed: asked again at its heartbeats and before each assignment.

Kafka asks for the topics of a subscription only when a heartbeat names them, so a member keeps what
was taken away from it for as long as it lives. Here a right that is taken away holds from the next
heartbeat on.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.runtime.api import Coordinator
from coordinator.runtime.authorizer import AllowAll, Authorizer
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from model.errors import GroupAuthorizationFailed, GroupError, TopicAuthorizationFailed
from model.ids import GroupId, MemberId, TopicName
from model.log.records import TopicPartitions


class MemberRights:
    """Asks ``authorizer`` about members of the coordinator's consumer groups."""

    __slots__ = ("_authorizer", "_coordinator")

    def __init__(self, coordinator: Coordinator, authorizer: Authorizer) -> None:
        self._coordinator = coordinator
        self._authorizer = authorizer

    @property
    def version(self) -> int:
        """As long as this is the same, so are the rights of a member with one subscription."""
        return self._authorizer.version

    def find_refusal(
        self, caller: Caller, group_id: GroupId, member_id: MemberId
    ) -> GroupError | None:
        """Why a live member is refused: READ on its group, DESCRIBE on each topic by its name."""
        if not self._may(caller, Operation.READ, ResourceType.GROUP, group_id):
            return GroupAuthorizationFailed("Not authorized to the group.")
        return self._find_refused_topic(
            caller, self._coordinator.find_subscribed_names(group_id, member_id)
        )

    def find_refused_assignment(
        self, caller: Caller, assignment: Iterable[TopicPartitions]
    ) -> GroupError | None:
        """Why the member must not see this assignment: it may not DESCRIBE each of the topics.

        A regular expression stands for topics that the member was allowed until its group's next
        resolution, which follows the change of ACLs.
        """
        topics = self._coordinator.image.by_id
        names = (topics[each.topic_id].name for each in assignment if each.topic_id in topics)
        return self._find_refused_topic(caller, names)

    def find_refused_answer(
        self,
        caller: Caller,
        group_id: GroupId,
        member_id: MemberId,
        assignment: Iterable[TopicPartitions],
    ) -> GroupError | None:
        """Why the member must not see an answer: a right was revoked since it asked."""
        refusal = self.find_refusal(caller, group_id, member_id)
        return refusal or self.find_refused_assignment(caller, assignment)

    def _find_refused_topic(self, caller: Caller, names: Iterable[TopicName]) -> GroupError | None:
        for name in names:
            if not self._may(caller, Operation.DESCRIBE, ResourceType.TOPIC, name):
                return TopicAuthorizationFailed("Not authorized to a subscribed topic.")
        return None

    def _may(self, caller: Caller, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._authorizer.authorize(caller, operation, kind, name)


def make_member_rights(coordinator: Coordinator, authorizer: Authorizer) -> MemberRights | None:
    """``None`` without access control."""
    return None if isinstance(authorizer, AllowAll) else MemberRights(coordinator, authorizer)
