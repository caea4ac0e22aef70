"""The clocks: commits and retention go by the wall clock, sessions by the monotonic one."""

from __future__ import annotations

import ctypes
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from wording.times import render_second

_LOOK_S: Final = 0.3
_JUMP_MAX_S: Final = 0.05
"""The clocks may be slewed against each other by 0.05 % (adjtimex(2))."""
_FUTURE_MAX_S: Final = 60.0
_OFFSET_MAX_S: Final = 1.0
_UNSYNCHRONIZED: Final = 0x40
_NANOSECONDS: Final = 0x2000
_TIMEX: Final = struct.Struct("@IqqqqiI")
"""The first fields of ``struct timex``: modes, offset, freq, maxerror, esterror, status."""
_TIMEX_BYTES: Final = 512


class NtpState(NamedTuple):
    """What the kernel was told by whatever sets the clock."""

    is_synchronized: bool
    offset_s: float
    error_max_s: float


def check_clock(subject: Subject) -> Iterator[Finding]:
    """Whether the clocks go alike, the time is believable, and somebody sets it."""
    yield describe_jump(measure_jump(time.sleep))
    yield _check_time(subject.folder.store)
    state = read_ntp_state()
    if state is not None:
        yield describe_ntp(state)


def measure_jump(sleep: Callable[[float], None]) -> float:
    """By how many seconds the wall clock went ahead of the monotonic one in a third of a second."""
    wall_s, monotonic_s = time.time(), time.monotonic()
    sleep(_LOOK_S)
    return (time.time() - wall_s) - (time.monotonic() - monotonic_s)


def describe_jump(jump_s: float) -> Finding:
    """What it means."""
    if abs(jump_s) <= _JUMP_MAX_S:
        return ok("wall clock and monotonic clock go alike")
    return warn(
        f"the wall clock jumped by {jump_s * 1e3:.0f} ms while it was looked at",
        "let chrony or systemd-timesyncd slew the clock, and nothing else set it",
    )


def _check_time(store: Path) -> Finding:
    """A clock behind what was written here last was set back."""
    try:
        newest_s = max((each.stat().st_mtime for each in store.rglob("*")), default=0.0)
    except OSError:
        newest_s = 0.0
    now_s = time.time()
    now = render_second(round(now_s * 1_000))
    oldest_s = Path(__file__).stat().st_mtime
    if newest_s > now_s + _FUTURE_MAX_S:
        return fail(
            f"it is {now}, and the store was written {newest_s - now_s:.0f} s later than that",
            "set the clock",
        )
    if oldest_s > now_s + 86_400:
        return fail(f"it is {now}, which was before this program was installed", "set the clock")
    return ok(f"it is {now}")


def describe_ntp(state: NtpState) -> Finding:
    """What it means."""
    what = (
        f"the clock is off by {state.offset_s * 1e3:.1f} ms, by its own account, "
        f"and by {state.error_max_s * 1e3:.0f} ms at most"
    )
    if not state.is_synchronized:
        return warn(
            "nothing keeps the clock right that tells the kernel so",
            "run chrony or systemd-timesyncd; in a container its host does",
        )
    if abs(state.offset_s) > _OFFSET_MAX_S:
        return warn(what, "look at `chronyc tracking` or `timedatectl timesync-status`")
    return ok(what)


def read_ntp_state() -> NtpState | None:
    """From adjtimex(2), which only reads here; ``None`` where that is not to be had."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        status = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    if status < 0:
        return None
    _, offset, _, error_max, _, flags, _ = _TIMEX.unpack_from(buffer)
    scale = 1e-9 if flags & _NANOSECONDS else 1e-6
    return NtpState(not flags & _UNSYNCHRONIZED, offset * scale, error_max * 1e-6)
