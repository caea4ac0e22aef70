"""How the server does: each line is fine, to be looked at, or bad, and says what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from console.facts import Disk, ServerFacts, Times
from wording.times import render_span, render_time

SLOW_FLUSH_S: Final = 0.1
SLOW_LOOP_S: Final = 0.05
CERTIFICATE_DAYS: Final = 14
_DAY_S: Final = 86_400


class Status(Enum):
    """How it is, in a word that needs no colour."""

    FINE = "fine"
    LOOK = "look at it"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``advice`` is empty while it is fine."""

    key: str
    text: str
    value: str
    status: Status = Status.FINE
    advice: str = ""


@dataclass(frozen=True, slots=True)
class TimesRow:
    """How long something took since the start."""

    text: str
    count: int
    mean: str
    median: str
    p99: str
    longest: str


@dataclass(frozen=True, slots=True)
class HealthView:
    """``status`` is the worst of the checks."""

    status: Status
    checks: Sequence[Check]
    times: Sequence[TimesRow]


def compute_health_view(facts: ServerFacts, now_s: float) -> HealthView:
    """What is shown; ``now_s`` is wall time."""
    checks = [
        *_check_serving(facts),
        *_check_times(facts),
        *_check_disk(facts),
        *_check_certificates(facts, now_s),
    ]
    order = list(Status)
    worst = max((check.status for check in checks), key=order.index)
    times = [
        compute_times_row("Syncs of the log", facts.flushes),
        compute_times_row("Writes to the store", facts.writes),
        compute_times_row("Delays of the event loop", facts.loop),
        compute_times_row("Garbage collections", facts.collections),
    ]
    return HealthView(worst, checks, times)


def _check_serving(facts: ServerFacts) -> Iterator[Check]:
    counts = facts.counts
    if facts.is_ready:
        yield Check("ready", "Ready", "yes")
    else:
        yield Check("ready", "Ready", "no", Status.LOOK, "Groups are still being loaded: wait.")
    stopped = [each.number for each in facts.log_partitions if each.is_stopped]
    yield _check(
        "stopped",
        "Stopped log partitions",
        ", ".join(map(str, stopped)) or "none",
        "Keep the evidence that the log names, and restart the server.",
        Status.BAD if stopped else Status.FINE,
    )
    yield _check(
        "violations",
        "Violated invariants",
        str(counts.invariant_violations),
        "This is a bug: report it with the evidence that the log names.",
        Status.BAD if counts.invariant_violations else Status.FINE,
    )
    yield _check(
        "audit",
        "Audit lines left out",
        str(counts.audit_lines_left_out),
        "Raise audit.rate.max, or see who floods it.",
        Status.LOOK if counts.audit_lines_left_out else Status.FINE,
    )


def _check_times(facts: ServerFacts) -> Iterator[Check]:
    for key, text, times, slow_s, advice in (
        ("flush", "Sync of the log", facts.flushes, SLOW_FLUSH_S, "The disk is slow: every answer "
         "waits for it. See docs/operations.md."),
        ("loop", "Delay of the event loop", facts.loop, SLOW_LOOP_S, "The machine is too busy, or "
         "stops the process now and then."),
    ):  # fmt: skip
        p99_s = compute_quantile_s(times, 0.99)
        slow = p99_s is not None and p99_s > slow_s
        value = "none yet" if p99_s is None else f"99 % within {_render_s(p99_s)}"
        yield _check(key, text, value, advice, Status.LOOK if slow else Status.FINE)
    stalled_ms = facts.counts.stalled_ms
    yield Check("stalled", "Stalled since the start", render_span(stalled_ms))


def _check_disk(facts: ServerFacts) -> Iterator[Check]:
    disk, counts = facts.disk, facts.counts
    full = disk.free_bytes < disk.min_free_bytes
    near = disk.free_bytes < 2 * disk.min_free_bytes
    free, least = render_bytes(disk.free_bytes), render_bytes(disk.min_free_bytes)
    yield _check(
        "disk",
        "Free on the disk",
        f"{free}, commands that write need {least}",
        "Make room: below this, commands that write are refused; then all goes on by itself.",
        Status.BAD if full else Status.LOOK if near else Status.FINE,
    )
    yield _check(
        "refused",
        "Writes refused",
        str(counts.writes_refused),
        "The disk was full, or writing too slow.",
        Status.LOOK if counts.writes_refused else Status.FINE,
    )
    yield Check("store", "Store", render_bytes(disk.store_bytes))
    yield Check("topics", "Records of topics", render_bytes(disk.topics_bytes))
    yield Check("history", "History", _describe_history(disk))
    yield _check(
        "untrimmed",
        "Log partitions that are not trimmed",
        str(counts.history_partitions_left),
        "Run muster log verify on a backup: they cannot be read.",
        Status.BAD if counts.history_partitions_left else Status.FINE,
    )
    yield Check("checkpoint", "Keys for the next checkpoint", str(counts.unsettled_keys))


def _describe_history(disk: Disk) -> str:
    age = f", {render_span(disk.history_age_ms)}" if disk.history_age_ms else ""
    most = f"{render_bytes(disk.history_max_bytes)} and {render_span(disk.history_max_ms)}"
    return f"{render_bytes(disk.history_bytes)}{age} of at most {most}"


def _check_certificates(facts: ServerFacts, now_s: float) -> Iterator[Check]:
    for name, not_after_s in facts.certificates.items():
        left_s = not_after_s - now_s
        status = Status.FINE
        if left_s < CERTIFICATE_DAYS * _DAY_S:
            status = Status.BAD if left_s <= 0 else Status.LOOK
        said = f"until {render_time(int(not_after_s * 1_000))}"
        advice = "Replace the file of its certificate: nothing needs a restart."
        yield _check(f"certificate-{name}", f"Certificate of {name}", said, advice, status)


def _check(key: str, text: str, value: str, advice: str, status: Status) -> Check:
    return Check(key, text, value, status, "" if status is Status.FINE else advice)


# --------------------------------------------------------------------------------------- times


def compute_times_row(text: str, times: Times) -> TimesRow:
    """A row of the table of times."""
    count = sum(times.counts)
    mean = _render_s(times.sum_s / count) if count else "-"
    median, p99, longest = (
        "-" if found is None else f"≤ {_render_s(found)}"
        for found in (compute_quantile_s(times, share) for share in (0.5, 0.99, 1.0))
    )
    return TimesRow(text, count, mean, median, p99, longest)


def compute_quantile_s(times: Times, share: float) -> float | None:
    """The bound within which this share is; beyond the last bound infinite; ``None`` for none."""
    total = sum(times.counts)
    if not total:
        return None
    seen = 0
    for bound_s, count in zip(times.bounds_s, times.counts, strict=False):
        seen += count
        if seen >= share * total:
            return bound_s
    return float("inf")


def _render_s(time_s: float) -> str:
    if time_s == float("inf"):
        return "longer than is counted"
    if time_s < 0.001:
        return f"{time_s * 1_000_000:.0f} µs"
    return f"{time_s * 1_000:.4g} ms" if time_s < 1 else f"{time_s:.4g} s"


def render_bytes(count: int) -> str:
    """``512 B``, ``64 MiB``, ``1.5 GiB``."""
    size, unit = float(count), "B"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1_024:
            break
        size, unit = size / 1_024, bigger
    return f"{size:.4g} {unit}"
