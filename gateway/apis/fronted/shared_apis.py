"""APIs that are served here or by the cluster, by what a request is about.

Configs of groups and of Muster's node are here, all others are the cluster's. What every node has
of its own, log directories and transactions, Muster's node has none of: tools that ask all nodes
must not see those of some broker twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from gateway.api import Api, Handler, RequestContext
from gateway.apis.cluster import (
    k32_describe_configs,
    k44_incremental_alter_configs,
    k74_list_config_resources,
)
from gateway.apis.fronted.passed_apis import pass_decoded
from gateway.codec.kio_schema import response_schema
from gateway.rewriting.versions import readable_versions

BROKER: Final = k32_describe_configs.BROKER
GROUP: Final = k32_describe_configs.GROUP

log_dirs = response_schema(35)
transactions = response_schema(66)


def _are_configs_here(context: RequestContext, request: Any) -> bool:
    own = str(context.node.settings.node_id)
    return all(
        row.resource_type == GROUP or (row.resource_type == BROKER and row.resource_name == own)
        for row in request.resources
    )


def _are_groups_listed(context: RequestContext, request: Any) -> bool:
    return getattr(request, "resource_types", ()) == (GROUP,)


def _share(api: Api, is_here: Callable[[RequestContext, Any], bool]) -> Api:
    serve: Handler = api.handler

    def handle(context: RequestContext, request: Any) -> None:
        if is_here(context, request):
            serve(context, request)
        else:
            pass_decoded(context, request)

    return replace(api, handler=handle, is_large=True)


def _list_no_log_dirs(context: RequestContext, request: Any) -> None:
    context.reply(log_dirs.DescribeLogDirsResponse(throttle_time=0, error_code=0, results=()))


def _list_no_transactions(context: RequestContext, request: Any) -> None:
    context.reply(
        transactions.ListTransactionsResponse(
            throttle_time=0, error_code=0, unknown_state_filters=(), transaction_states=()
        )
    )


SHARED_APIS: Final = (
    _share(k32_describe_configs.API, _are_configs_here),
    _share(k44_incremental_alter_configs.API, _are_configs_here),
    _share(k74_list_config_resources.API, _are_groups_listed),
    Api(35, "DescribeLogDirs", readable_versions(35), _list_no_log_dirs),
    Api(66, "ListTransactions", readable_versions(66), _list_no_transactions),
)
