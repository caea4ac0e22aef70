"""Load programs, ownership in sessions, and readings of the machine and of processes."""

import os
import sys
import time
from pathlib import Path

import pytest

from bench.machine import find_file_system, measure_fsync_ms
from bench.peer import KloadError, Load
from bench.processes import read_cpu_seconds
from bench.sessions import Owners
from muster import TopicPartition


def start(code: str) -> Load:
    return Load([sys.executable, "-c", code])


def test_a_load_gives_its_report() -> None:
    with start("print('{\"rate\": 5}')") as load:
        assert load.read_report(30) == {"rate": 5}


def test_a_load_that_fails_gives_its_message() -> None:
    with (
        start("import sys; sys.exit('it broke')") as load,
        pytest.raises(KloadError, match=r"^it broke$"),
    ):
        load.read_report(30)


def test_leaving_the_block_ends_the_program() -> None:
    with start("import time; time.sleep(600)") as load:
        pid = load.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def partitions(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("orders", number) for number in numbers)


def test_owners_know_when_each_partition_has_one() -> None:
    owners = Owners(3)
    owners.on_assigned(partitions(0, 1))
    assert not owners.are_complete
    owners.on_assigned(partitions(2))
    assert owners.are_complete
    owners.on_given_up(partitions(1))
    assert not owners.are_complete
    owners.on_assigned(partitions(1))
    assert owners.are_complete
    assert owners.doubled == 0


def test_owners_count_partitions_with_two() -> None:
    owners = Owners(1)
    owners.on_assigned(partitions(0))
    owners.on_assigned(partitions(0))
    assert owners.doubled == 1
    assert not owners.are_complete
    owners.on_given_up(partitions(0))
    assert owners.are_complete


def test_cpu_of_a_process_is_what_it_used() -> None:
    before, own = read_cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() < own + 0.02:
        pass
    assert read_cpu_seconds(os.getpid()) - before == pytest.approx(0.02, abs=0.015)


def test_the_file_system_is_that_of_the_longest_mount_point() -> None:
    mounts = "dev / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nproc /proc proc rw 0 0\n"
    assert find_file_system(Path("/tmp/x"), mounts) == "tmpfs"
    assert find_file_system(Path("/tmpx"), mounts) == "ext4"


def test_an_fsync_takes_some_time(tmp_path: Path) -> None:
    taken = measure_fsync_ms(tmp_path, count=5)
    assert 0 < taken["p50"] <= taken["p99"]
