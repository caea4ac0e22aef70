"""`muster log verify`: check a log, and report the first invalid record of each partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import CommandError, ExitCode
from cli.log.dump import PathArgument
from cli.log.log_sources import find_store, source_errors
from cli.options import OutputOption, QuietOption
from cli.output import Format, Listing, print_listing
from cli.progress import Progress

if TYPE_CHECKING:
    from storage.verify.violation import PartitionReport, Violation

_SHOWN_VIOLATIONS = 20


def verify(
    path: PathArgument,
    output: OutputOption = Format.TABLE,
    allow_torn_tail: Annotated[
        bool,
        typer.Option(
            "--allow-torn-tail",
            help="Accept an incomplete last batch, left in a segment by a crash.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Check every batch and record of a log, and the side records of a store.

    Each partition is checked up to its first error. The exit code is 1 if there is any.
    """
    with source_errors(), Progress(is_quiet=quiet) as progress:
        reports, violations = read_reports(path, progress, allow_torn_tail=allow_torn_tail)
    print_listing(_compute_listing(reports, violations), output)
    if violations:
        lines = [str(violation) for violation in violations[:_SHOWN_VIOLATIONS]]
        if len(violations) > _SHOWN_VIOLATIONS:
            lines.append(f"and {len(violations) - _SHOWN_VIOLATIONS} more partitions")
        raise CommandError("\n".join(lines))


def check_store(store: Path, progress: Progress, *, is_forced: bool = False) -> None:
    """Check a store. Raises ``CommandError`` with 1 and the first violation.

    ``is_forced`` prints a note instead if the bytes are intact and only the state of groups is
    inconsistent.
    """
    with source_errors():
        _, violations = _verify_store(store, progress)
        if violations and is_forced:
            _, of_bytes = _verify_store(store, progress, with_groups=False)
            for violation in violations if not of_bytes else ():
                progress.warn(str(violation))
            violations = of_bytes
    if violations:
        raise CommandError(f"{store} is damaged: {violations[0]}")


def read_reports(
    path: Path, progress: Progress, *, allow_torn_tail: bool
) -> tuple[list[PartitionReport], list[Violation]]:
    """A report for each partition, and its first violation if it has one."""
    if not path.exists():
        raise CommandError(f"{path} does not exist", ExitCode.NOT_FOUND)
    store = find_store(path)
    if store is not None:
        return _verify_store(store, progress)
    from storage.segments.folder import open_segments
    from storage.verify.segments import verify_segments

    folder = open_segments(path)
    for note in folder.notes:
        progress.warn(note)
    found = verify_segments(folder, allows_torn_tail=allow_torn_tail)
    return _collect(found, progress, len(folder.partitions))


def _verify_store(
    store: Path, progress: Progress, *, with_groups: bool = True
) -> tuple[list[PartitionReport], list[Violation]]:
    from storage.rocks.rocks_reader import open_store_reader
    from storage.verify.stores import verify_causes, verify_meta, verify_side, verify_store

    reader = open_store_reader(store)
    try:
        meta = verify_meta(reader.meta(), reader.cluster_id, reader.partitions)
        found = verify_store(reader, with_groups=with_groups)
        reports, violations = _collect(found, progress, reader.partitions)
        side, causes = verify_side(reader), verify_causes(reader.causes())
    finally:
        reader.close()
    return reports, [each for each in (meta, *violations, side, causes) if each is not None]


def _collect(
    found: Iterator[PartitionReport], progress: Progress, partitions: int
) -> tuple[list[PartitionReport], list[Violation]]:
    reports = []
    progress.begin("records are checked")
    for report in found:
        for note in report.notes:
            progress.warn(note)
        reports.append(report)
        progress.count(len(reports), partitions, "partitions")
    return reports, [report.violation for report in reports if report.violation is not None]


def _compute_listing(reports: list[PartitionReport], violations: list[Violation]) -> Listing:
    names = ("batches", "records", "bytes", "groups", "missing_offsets")
    totals = {name: sum(getattr(report, name) for report in reports) for name in names}
    counts: dict[str, int] = {"partitions": len(reports), **totals, "violations": len(violations)}
    return Listing(
        "log.verify",
        tuple(name.upper().replace("_", "-") for name in counts),
        [list(counts.values())],
        {**counts, "violations": [_describe(violation) for violation in violations]},
        "violations",
    )


def _describe(violation: Violation) -> dict[str, Any]:
    return {
        "partition": violation.partition,
        "offset": violation.offset,
        "key": None if violation.key is None else violation.key.hex(),
        "rule": violation.rule,
        "why": violation.why,
    }
