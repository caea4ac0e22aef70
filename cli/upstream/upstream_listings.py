"""What `muster upstream` prints: the cluster, how groups stand, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from cli.errors import CommandError, ExitCode
from cli.messages import as_dict
from cli.output import Listing
from muster.v1 import upstream_pb2
from wording.times import render_second

GROUP_COLUMNS: Final = (
    "GROUP", "PLACE", "SINCE", "#HERE", "#THERE", "IN-THE-WAY", "CAUSE", "ERROR", "STEP",
    "SENTINEL", "GENERATION", "PROTOCOL",
)  # fmt: skip
_WIDE: Final = 4
REPORT_COLUMNS: Final = ("GROUP", "PLACE", "#HERE", "#THERE", "IN-THE-WAY", "RESULT")
_SHOWN_MAX: Final = 3
_BROKERS_SHOWN_MAX: Final = 10
_PREFIX: Final = "GROUP_PLACE_"

_EXIT_CODES: Final = {
    "GROUP_ID_NOT_FOUND": ExitCode.NOT_FOUND,
    "COORDINATOR_NOT_AVAILABLE": ExitCode.UNREACHABLE,
    "COORDINATOR_LOAD_IN_PROGRESS": ExitCode.UNREACHABLE,
    "REQUEST_TIMED_OUT": ExitCode.UNREACHABLE,
}


def compute_status(
    found: upstream_pb2.GetUpstreamResponse, groups: Sequence[upstream_pb2.UpstreamGroup]
) -> Listing:
    """A table of groups under some lines about the cluster."""
    rows = [
        [
            group.group_id,
            render_place(group.place),
            render_second(group.since_ms) if group.since_ms else "",
            group.members_here,
            group.members_there,
            render_strangers(group),
            group.cause,
            group.error,
            group.step,
            group.sentinel_member_id,
            group.sentinel_generation or "",
            group.protocol_type,
        ]
        for group in groups
    ]
    content = {"cluster": as_dict(found), "groups": [_group_dict(group) for group in groups]}
    return Listing(
        "upstream.status", GROUP_COLUMNS, rows, content, "groups", _WIDE, _describe_cluster(found)
    )


def compute_reports(command: str, reports: Sequence[upstream_pb2.GroupReport]) -> Listing:
    """A row for each group that was to be moved."""
    rows = [
        [
            report.group.group_id,
            render_place(report.group.place),
            report.group.members_here,
            report.group.members_there,
            render_strangers(report.group),
            _render_result(report),
        ]
        for report in reports
    ]
    items = [{**as_dict(each), "group": _group_dict(each.group)} for each in reports]
    return Listing(command, REPORT_COLUMNS, rows, {"reports": items}, "reports")


def compute_failures(reports: Iterable[upstream_pb2.GroupReport]) -> list[CommandError]:
    """An error for each group that was not moved."""
    failed = []
    for report in reports:
        if report.HasField("error"):
            message = f"{report.group.group_id}: {_render_result(report)}"
            code = _EXIT_CODES.get(report.error.reason, ExitCode.PRECONDITION)
            failed.append(CommandError(message, code))
    return failed


def render_place(place: int) -> str:
    """A place as the documentation writes it."""
    if place == upstream_pb2.GROUP_PLACE_UNSPECIFIED:
        return "unknown"
    try:
        name = upstream_pb2.GroupPlace.Name(place)
    except ValueError:
        return str(place)
    return name.removeprefix(_PREFIX).lower()


def render_strangers(group: upstream_pb2.UpstreamGroup) -> str:
    """Who is in the way, as ``CLIENT-ID@HOST``, with a number where there are several."""
    counts = Counter(
        f"{each.client_id or each.member_id}@{each.host.removeprefix('/')}"
        for each in group.strangers
    )
    shown = [
        name if count == 1 else f"{name} ({count})"
        for name, count in counts.most_common(_SHOWN_MAX)
    ]
    if len(counts) > _SHOWN_MAX:
        shown.append(f"{len(counts) - _SHOWN_MAX} more")
    return ", ".join(shown)


def _render_result(report: upstream_pb2.GroupReport) -> str:
    if not report.HasField("error"):
        return "ok"
    error = report.error
    return f"{error.reason}: {error.error_message}".removesuffix(": ")


def _describe_cluster(found: upstream_pb2.GetUpstreamResponse) -> list[str]:
    release = f" (Kafka {found.release})" if found.release else ""
    reached = "reachable" if found.reachable else "NOT REACHABLE"
    count = f"{len(found.brokers)} broker{'' if len(found.brokers) == 1 else 's'}"
    lines = [f"cluster {found.cluster_id}{release}: {count}, {reached}"]
    if found.fault:
        lines.append(f"fault: {found.fault}")
    for broker in found.brokers[:_BROKERS_SHOWN_MAX]:
        relay = broker.relay_address or "none yet"
        lines.append(f"  broker {broker.node_id} at {broker.address}, relay {relay}")
    if len(found.brokers) > _BROKERS_SHOWN_MAX:
        lines.append(f"  and {len(found.brokers) - _BROKERS_SHOWN_MAX} more")
    own = "serves the consumer protocol itself" if found.has_consumer_protocol else "classic only"
    ids = "topics have ids" if found.has_topic_ids else "topics have no ids"
    lines.append(f"groups of the cluster: {own}; {ids}")
    taken = f"groups that match {found.takeover_groups}" if found.takeover_groups else "none"
    lines.append(
        f"Muster: {found.identity or 'not known'} at {found.node_address or 'no address'}; "
        f"offsets in {found.offsets_store or 'upstream'}; taken by themselves: {taken}"
    )
    return lines


def _group_dict(group: upstream_pb2.UpstreamGroup) -> dict[str, object]:
    return {**as_dict(group), "place": render_place(group.place)}
