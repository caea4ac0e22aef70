"""The sections about what is to be done: migration, and what an audit found."""

from __future__ import annotations

from pipeline.report.elements import Section, make_cell, make_head_cell, name_group, wrap_table
from pipeline.report.figures import AuditFigures, JudgedGroup, ReadinessFigures
from pipeline.report.scales import show_count
from pipeline.report.svg import element, escape

_VERDICTS = {"READY": "ready", "WARN": "with a warning", "BLOCKED": "blocked"}


def show_readiness(readiness: ReadinessFigures | None) -> Section:
    """Which classic groups can move to the consumer protocol, and what is in the way."""
    title = "Migration to the consumer protocol"
    if readiness is None:
        return Section("readiness", title, "The log has no classic groups.", [])
    intro = (
        "Whether each classic group can be converted, by the rules of Kafka's coordinator; "
        "the command readiness has all of them."
    )
    counts = ", ".join(
        f"{show_count(count)} {_VERDICTS.get(name, name)}"
        for name, count in readiness.counts.items()
    )
    content = [element("p", escape(f"Classic groups: {counts}."))]
    if readiness.groups:
        rows = [element("tr", *_show_judged(group)) for group in readiness.groups]
        columns = ("Group", "Verdict", "Members", "Why", "Change first")
        if readiness.other_groups:
            rest = f"{show_count(readiness.other_groups)} other groups that are not ready"
            rows.append(element("tr", element("td", rest, colspan=len(columns)), class_="rest"))
        content.append(wrap_table("Groups that are not ready", columns, rows, numeric=(2,)))
    return Section("readiness", title, intro, content)


def _show_judged(group: JudgedGroup) -> list[str]:
    return [
        make_head_cell(group.group_id),
        make_cell(_VERDICTS.get(group.verdict, group.verdict)),
        make_cell(group.members, is_number=True),
        element("td", escape("; ".join(group.reasons)), class_="why"),
        element(
            "td",
            element("bdi", escape(", ".join(group.clients_to_change) or "–")),
            class_="why",
        ),
    ]


def show_audit(audit: AuditFigures | None) -> Section:
    """Broken invariants, unreadable parts, and transactions that never ended."""
    title = "Audit"
    if audit is None:
        return Section("audit", title, "This log was not audited: leave out --no-audit.", [])
    intro = (
        "Whether the log shows a violation of what a coordinator must hold: one owner for each "
        "partition, epochs that rise, offsets that only their own rules delete."
    )
    content = []
    if audit.counts:
        counts = ", ".join(f"{name} {show_count(count)}" for name, count in audit.counts.items())
        content.append(element("p", escape(f"Found: {counts}."), class_="warn"))
    else:
        content.append(element("p", "No violation was found."))
    if audit.findings:
        rows = [
            element(
                "tr",
                make_cell(each.what),
                element("td", element("bdi", escape(name_group(each.group_id))), class_="why"),
                make_cell(each.log_partition, is_number=True),
                make_cell(each.offset, is_number=True),
                element("td", escape(each.detail), class_="why"),
            )
            for each in audit.findings
        ]
        columns = ("Rule", "Group", "Log partition", "Offset", "What")
        content.append(wrap_table("Findings", columns, rows, numeric=(2, 3)))
    if audit.open_offsets:
        content.append(
            element(
                "p",
                f"{show_count(audit.open_offsets)} offsets of {show_count(audit.open_producers)} "
                "producers wait in transactions that were open at the end of the log.",
            )
        )
    return Section("audit", title, intro, content)
