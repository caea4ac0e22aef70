"""Each check of the doctor, on what it is to find and on what is right."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from cli.data_folder import DataFolder
from cli.doctor.checks import disk_speed, folder_checks
from cli.doctor.checks.certificate_checks import check_certificates
from cli.doctor.checks.clock_checks import (
    NtpState,
    check_clock,
    describe_jump,
    describe_ntp,
    measure_jump,
    read_ntp_state,
)
from cli.doctor.checks.config_checks import check_config
from cli.doctor.checks.disk_speed import check_disk_speed, describe_syncs, measure_syncs
from cli.doctor.checks.folder_checks import check_folder, check_space
from cli.doctor.checks.limit_checks import describe_files, describe_memory, read_available_memory
from cli.doctor.checks.mounts import find_file_system
from cli.doctor.checks.port_checks import check_ports
from cli.doctor.checks.version_checks import check_versions, find_faults
from cli.doctor.examination import Check, examine
from cli.doctor.finding import Finding, Level, ok
from cli.doctor.running_server import RunningServer
from cli.doctor.subject import Subject
from cli.settings import resolve
from storage.folder import watermark
from storage.rocks.rocks_opening import open_store
from tests.support.certificates import Authority

MIB = 1 << 20
DOORS = {
    "MUSTER_LISTEN_KAFKA": "127.0.0.1:0",
    "MUSTER_LISTEN_GRPC": "127.0.0.1:0",
    "MUSTER_LISTEN_HTTP": "127.0.0.1:0",
}


def make_subject(
    folder: Path, settings: Mapping[str, str] | None = None, server: RunningServer | None = None
) -> Subject:
    return Subject(resolve((), {**DOORS, **(settings or {})}), DataFolder(folder), server)


def list_levels(found: Iterable[Finding]) -> list[str]:
    return [str(each.level) for each in found]


def find_one(found: Iterable[Finding], level: Level) -> Finding:
    (only,) = [each for each in found if each.level is level]
    assert level is Level.OK or only.remedy
    return only


# ------------------------------------------------------------------------------------- config


def test_every_fault_of_the_settings_is_a_line(tmp_path: Path) -> None:
    settings = {
        "MUSTER_LISTEN_KAFKA": "A:SASL_PLAINTEXT://127.0.0.1:0,B:SASL_PLAINTEXT://127.0.0.1:0",
        "MUSTER_SASL_ENABLED_MECHANISMS": "PLAIN",
        "MUSTER_LISTENER_NAME_B_SASL_ENABLED_MECHANISMS": "OAUTHBEARER",
    }
    found = list(check_config(make_subject(tmp_path, settings)))
    faults = [each.what for each in found if each.level is Level.FAIL]
    assert ["PLAIN" in faults[0], "OAUTHBEARER" in faults[1], len(faults)] == [True, True, 2]


def test_an_open_listener_is_warned_of(tmp_path: Path) -> None:
    settings = {"MUSTER_ALLOW_UNAUTHENTICATED": "true", "MUSTER_LISTEN_KAFKA": "0.0.0.0:0"}
    found = list(check_config(make_subject(tmp_path, settings)))
    assert "allow.unauthenticated" in find_one(found, Level.WARN).what


def test_settings_without_faults_are_ok(tmp_path: Path) -> None:
    assert list_levels(check_config(make_subject(tmp_path))) == ["ok"]


# -------------------------------------------------------------------------------------- ports


def test_a_port_in_use_is_found_unless_the_server_itself_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
        settings = {"MUSTER_LISTEN_GRPC": address}
        found = find_one(check_ports(make_subject(tmp_path, settings)), Level.FAIL)
        assert address in found.what
        assert "listen.grpc" in found.remedy
        server = RunningServer(1, "0", {"grpc": address})
        assert list_levels(check_ports(make_subject(tmp_path, settings, server))) == ["ok"] * 3


def test_an_address_that_the_machine_lacks_is_named(tmp_path: Path) -> None:
    # TEST-NET-1 of RFC 5737: no machine has it.
    settings = {"MUSTER_LISTEN_HTTP": "192.0.2.1:0", "MUSTER_ALLOW_UNAUTHENTICATED": "true"}
    found = find_one(check_ports(make_subject(tmp_path, settings)), Level.FAIL)
    assert "192.0.2.1" in found.what
    assert "no such address" in found.remedy


def test_the_ports_of_relays_are_looked_at(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        settings = {
            "MUSTER_LISTEN_KAFKA": "127.0.0.1:9092",
            "MUSTER_UPSTREAM_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "MUSTER_UPSTREAM_RELAY_PORTS": str(port),
        }
        faults = list(check_ports(make_subject(tmp_path, settings)))
        (found,) = [each for each in faults if "relay" in each.what]
        assert found.level is Level.FAIL
        assert f"upstream.relay.ports ({port})" in found.what


# ------------------------------------------------------------------------- folder, space, disk


def test_a_folder_that_is_not_there_can_be_made(tmp_path: Path) -> None:
    found = list(check_folder(make_subject(tmp_path / "a" / "b")))
    assert "can be made" in found[0].what
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_something_else_is_none(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    assert "thesis.txt" in find_one(check_folder(make_subject(tmp_path)), Level.FAIL).what


def test_others_may_not_look_into_the_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    assert Level.WARN not in [each.level for each in check_folder(make_subject(data))]
    data.chmod(0o755)
    assert find_one(check_folder(make_subject(data)), Level.WARN).remedy == f"chmod 0700 {data}"


def test_a_folder_of_another_user_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever runs tests as root may use everything.
    monkeypatch.setattr(folder_checks.os, "access", lambda path, mode: False)
    found = list(check_folder(make_subject(tmp_path)))
    assert found[0].level is Level.FAIL
    assert f"of user {os.geteuid()}" in found[0].what
    missing = list(check_folder(make_subject(tmp_path / "data")))
    assert "may not make it" in missing[0].what


def test_the_format_of_the_store_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(tmp_path / "store", partitions=2).close()
    tmp_path.chmod(0o700)
    assert Level.WARN not in [each.level for each in check_folder(make_subject(tmp_path))]
    monkeypatch.setattr(folder_checks, "FORMAT_VERSION", watermark.FORMAT_VERSION + 1)
    older = find_one(check_folder(make_subject(tmp_path)), Level.WARN)
    assert "backup" in older.remedy
    monkeypatch.setattr(watermark, "FORMAT_VERSION", watermark.FORMAT_VERSION - 1)
    newer = find_one(check_folder(make_subject(tmp_path)), Level.FAIL)
    assert "use a newer version" in newer.what


def test_a_restore_that_was_not_finished_is_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "store.building").mkdir()
    assert "not finished" in find_one(check_folder(make_subject(tmp_path)), Level.FAIL).what


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/data/muster", "tmpfs"), ("/data", "tmpfs"), ("/mnt/a b/x", "nfs4"), ("/home", "ext4")],
)
def test_the_longest_mount_point_decides(path: str, kind: str, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 22 8:2 / /data rw - xfs /dev/sdb rw\n"
        "31 22 0:40 / /data rw shared:9 - tmpfs tmpfs rw\n"
        "32 22 0:41 / /mnt/a\\040b rw - nfs4 host:/x rw\n"
    )
    assert find_file_system(Path(path), mounts) == kind
    assert find_file_system(Path(path), tmp_path / "none") is None


def test_memory_and_network_disks_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("tmpfs", "overlay", "nfs4"):
        monkeypatch.setattr(folder_checks, "find_file_system", lambda path, kind=kind: kind)
        (*_, found) = check_folder(make_subject(tmp_path / "new"))
        assert (found.level, kind in found.what) == (Level.WARN, True)


def test_too_little_space_is_a_failure_before_commits_are_refused(tmp_path: Path) -> None:
    huge = {"MUSTER_LOG_MIN_FREE_BYTES": str(1 << 60)}
    assert list_levels(check_space(make_subject(tmp_path, huge))) == ["fail"]
    usable = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    close = {"MUSTER_LOG_MIN_FREE_BYTES": str(usable - 512 * MIB)}
    assert list_levels(check_space(make_subject(tmp_path, close))) == ["warn"]


def test_syncs_are_measured_and_leave_nothing_behind(tmp_path: Path) -> None:
    times_s = measure_syncs(tmp_path, count=5)
    assert len(times_s) == 5
    assert times_s == sorted(times_s)
    assert all(time_s > 0 for time_s in times_s)
    assert list(tmp_path.iterdir()) == []


def test_a_slow_disk_is_measured_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_speed.os, "fdatasync", lambda file: time.sleep(0.05))
    assert 1 <= len(measure_syncs(tmp_path, time_s=0.1)) <= 3
    (found,) = check_disk_speed(make_subject(tmp_path))
    assert (found.level, "SSD" in found.remedy) == (Level.WARN, True)


def test_what_a_sync_means() -> None:
    usual = describe_syncs([0.0002] * 99 + [0.001])
    assert (usual.level, "about 5,000 in a second" in usual.what) == (Level.OK, True)
    assert describe_syncs([0.0002] * 98 + [0.5, 0.5]).level is Level.WARN
    assert "nothing was made durable" in describe_syncs([0.000001]).what


def test_a_disk_that_refuses_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk_speed.os, "fdatasync", refuse)
    (found,) = check_disk_speed(make_subject(tmp_path))
    assert (found.level, "Input/output error" in found.what) == (Level.FAIL, True)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------- clock


def test_a_jump_of_the_wall_clock_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    offset = 0.0
    monkeypatch.setattr(time, "time", lambda: real() + offset)

    def jump(seconds: float) -> None:
        nonlocal offset
        offset = -2.0

    jump_s = measure_jump(jump)
    assert -2.1 < jump_s < -1.9
    assert describe_jump(jump_s).level is Level.WARN
    assert describe_jump(0.001).level is Level.OK


def test_a_store_from_the_future_means_that_the_clock_was_set_back(tmp_path: Path) -> None:
    file = tmp_path / "store" / "watermark"
    file.parent.mkdir()
    file.write_text("")
    ahead_s = time.time() + 3_600
    os.utime(file, (ahead_s, ahead_s))
    found = find_one(check_clock(make_subject(tmp_path)), Level.FAIL)
    assert found.remedy == "set the clock"


def test_what_the_kernel_says_of_the_clock() -> None:
    assert describe_ntp(NtpState(True, 0.0004, 0.02)).level is Level.OK
    assert describe_ntp(NtpState(True, -3.0, 5.0)).level is Level.WARN
    assert describe_ntp(NtpState(False, 0.0, 16.0)).level is Level.WARN
    state = read_ntp_state()
    assert state is None or 0 <= state.error_max_s < 1_000


# ------------------------------------------------------------------------- limits and versions


def test_open_files(tmp_path: Path) -> None:
    resolved = make_subject(tmp_path).resolved
    assert describe_files(resolved, resource.RLIM_INFINITY).level is Level.OK
    assert describe_files(resolved, 1 << 20).level is Level.OK
    few = describe_files(resolved, 4_096)
    assert (few.level, "max.connections" in few.what) == (Level.WARN, True)
    assert describe_files(resolved, 64).level is Level.FAIL


def test_memory_is_what_machine_and_container_both_have(tmp_path: Path) -> None:
    meminfo, groups = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text("MemTotal: 8000000 kB\nMemAvailable: 2097152 kB\n")
    groups.mkdir()
    assert read_available_memory(meminfo, groups) == 2_048 * MIB
    (groups / "memory.current").write_text(f"{100 * MIB}\n")
    (groups / "memory.max").write_text("max\n")
    assert read_available_memory(meminfo, groups) == 2_048 * MIB
    (groups / "memory.max").write_text(f"{300 * MIB}\n")
    assert read_available_memory(meminfo, groups) == 200 * MIB
    assert read_available_memory(tmp_path / "x", tmp_path / "y") is None
    levels = [describe_memory(size * MIB).level for size in (200, 512, 2_048)]
    assert levels == [Level.FAIL, Level.WARN, Level.OK]


def test_packages_that_are_missing_or_too_old() -> None:
    assert find_faults("numpy>=2.0") == ()
    assert find_faults("pyjwt[crypto]>=2.10") == ()
    assert find_faults("uvloop>=999; extra == 'speed'") == ()
    assert find_faults("no-such-package>=1") == ("no-such-package is not installed",)
    (line,) = find_faults("numpy>=999.1")
    assert "999.1 is needed" in line
    (line,) = find_faults("numpy<1,>=0.1")
    assert "<1 is needed" in line


def test_what_this_environment_has_is_right(tmp_path: Path) -> None:
    assert Level.FAIL not in [each.level for each in check_versions(make_subject(tmp_path))]


# ---------------------------------------------------------------------------------------- TLS


@pytest.mark.parametrize(
    ("days_left", "level"), [(29.0, Level.OK), (3.0, Level.WARN), (-2.0, Level.FAIL)]
)
def test_certificates_that_expire(tmp_path: Path, days_left: float, level: Level) -> None:
    issued = Authority(tmp_path).issue("server", days_left=days_left)
    issued.both.chmod(0o600)
    settings = {
        "MUSTER_LISTEN_KAFKA": "SSL://127.0.0.1:0",
        "MUSTER_SSL_KEYSTORE_LOCATION": str(issued.both),
    }
    (found,) = check_certificates(make_subject(tmp_path, settings))
    assert found.level is level
    assert "listen.kafka (SSL)" in found.what


def test_a_key_that_everybody_may_read_and_one_that_is_none(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("server")
    issued.both.chmod(0o644)
    settings = {
        "MUSTER_LISTEN_HTTP": "SSL://127.0.0.1:0",
        "MUSTER_SSL_KEYSTORE_LOCATION": str(issued.both),
    }
    found = list(check_certificates(make_subject(tmp_path, settings)))
    assert find_one(found, Level.WARN).remedy == f"chmod o= {issued.both}"
    issued.both.write_text("nothing")
    (refused,) = check_certificates(make_subject(tmp_path, settings))
    assert refused.level is Level.FAIL


# --------------------------------------------------------------------------------- examination


def test_a_check_that_hangs_or_breaks_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    held = threading.Event()

    def hang(subject: Subject) -> list[Finding]:
        held.wait(60)
        return []

    def break_down(subject: Subject) -> list[Finding]:
        raise ValueError("two\nlines")

    checks = (
        Check("hangs", hang, limit_s=0.05),
        Check("breaks", break_down),
        Check("works", lambda subject: [ok("fine")]),
    )
    found = list(examine(checks, make_subject(tmp_path)))
    held.set()
    assert [(name, str(each.level)) for name, each in found] == [
        ("hangs", "fail"),
        ("breaks", "fail"),
        ("works", "ok"),
    ]
    assert "within 0.05 s" in found[0][1].what
    assert "ValueError: two lines" in found[1][1].what
