"""ListConfigResources (74), versions 0 and 1: the resources that have configs.

Version 0 lists client metrics only, of which there are none. Groups are listed if they have configs
of their own. Needs DESCRIBE_CONFIGS on the cluster.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.runtime.api import Answer
from gateway.api import Api, RequestContext
from gateway.apis.cluster.k32_describe_configs import BROKER, GROUP, TOPIC
from gateway.apis.cluster.k44_incremental_alter_configs import BROKER_LOGGER, CLIENT_METRICS
from gateway.codec.kio_schema import response_schema
from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.configs import ListGroupConfigs
from model.errors import ErrorCode, GroupError
from model.responses.configs import ListGroupConfigsResponse

KEY = 74
wire = response_schema(KEY)

SUPPORTED: Final = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def handle(context: RequestContext, request: Any) -> None:
    """List the resources of the requested types; an empty list requests all types."""
    if not context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        context.reply(_make(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ()))
        return
    types = set(getattr(request, "resource_types", (CLIENT_METRICS,)) or SUPPORTED)
    if not types <= set(SUPPORTED):
        context.reply(_make(ErrorCode.UNSUPPORTED_VERSION, ()))
        return

    def on_answer(answer: Answer) -> None:
        if isinstance(answer, GroupError):
            context.reply(_make(answer.code, ()))
            return
        assert isinstance(answer, ListGroupConfigsResponse)
        names: dict[int, Any] = {
            GROUP: answer.group_ids,
            CLIENT_METRICS: (),
            BROKER_LOGGER: (str(context.node.settings.node_id),),
            BROKER: (str(context.node.settings.node_id),),
            TOPIC: sorted(context.node.coordinator.image.by_name),
        }
        context.reply(
            _make(
                ErrorCode.NONE,
                [
                    wire.ConfigResource(resource_name=name, resource_type=resource_type)
                    for resource_type in SUPPORTED
                    if resource_type in types
                    for name in names[resource_type]
                ],
            )
        )

    context.submit(ListGroupConfigs(context.caller), on_answer)


def _make(code: ErrorCode, resources: Any) -> Any:
    return wire.ListConfigResourcesResponse(
        throttle_time=0, error_code=code, config_resources=resources
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _make(code, ())


API = Api(key=KEY, name="ListConfigResources", versions=range(2), handler=handle, failed=failed)
