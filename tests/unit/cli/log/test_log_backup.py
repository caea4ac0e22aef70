"""`muster log backup` and `restore`: their output, and when they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from model.access.scram import ScramCredential, ScramMechanism
from model.ids import GroupId, LogPartition
from model.log.side_records import (
    FakeSaltSecretKey,
    FakeSaltSecretValue,
    GroupConfigsSideKey,
    GroupConfigsSideValue,
    GroupPlaceKey,
    ScramCredentialKey,
    SideRecord,
)
from model.places import GroupPlace, Place
from storage import side_pb2
from storage.codec.record_codec import encode_key, encode_value
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from storage.side_codec import CREDENTIAL_KINDS, encode_side
from storage.transfer.backup import MANIFEST
from tests.support.cli.log_files import SEGMENTS, invoke
from tests.support.storage.appends import append, make_append, mark_all, offset_key, offset_value
from tests.support.storage.logs import current


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "data" / "store", partitions=1)
    for number in range(5):
        append(store, {0: [(offset_key("g"), offset_value(number))]})
    mark_all(store)
    store.close()
    return tmp_path / "data"


def check_refused(code: ExitCode, text: str, *arguments: str | Path) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.out) == (code, ""), result.error
    assert text in result.error
    assert len(result.error.splitlines()) == 1


def test_there_and_back(data: Path, tmp_path: Path) -> None:
    made = invoke("backup", tmp_path / "backup", "--data-dir", data, "-o", "json")
    assert made.exit_code == 0, made.error
    said = json.loads(made.out)
    assert said["next_offsets"] == [5]
    assert said["folder"] == str(tmp_path / "backup")
    assert invoke("verify", tmp_path / "backup").exit_code == 0
    restored = invoke("restore", tmp_path / "backup", "--data-dir", tmp_path / "new", "-o", "json")
    assert restored.exit_code == 0, restored.error
    assert json.loads(restored.out)["next_offsets"] == [5]
    for folder in (data, tmp_path / "new"):
        result = invoke("offsets", folder, "--group", "g", "-o", "csv")
        assert "t,0,4" in result.out


def test_a_store_of_kafkas_log_goes_there_and_back(tmp_path: Path) -> None:
    assert invoke("import", SEGMENTS, "--data-dir", tmp_path / "data", "-q").exit_code == 0
    assert invoke("backup", tmp_path / "b", "--data-dir", tmp_path / "data", "-q").exit_code == 0
    assert invoke("restore", tmp_path / "b", "--data-dir", tmp_path / "new", "-q").exit_code == 0
    dumps = [invoke("dump", tmp_path / name, "-o", "jsonl").out for name in ("data", "new")]
    assert dumps[0] == dumps[1]
    assert dumps[0].count("\n") == 6144


def test_what_to_back_up_is_said_once(data: Path, tmp_path: Path) -> None:
    both = ("--data-dir", data, "--server", "127.0.0.1:1")
    check_refused(ExitCode.USAGE, "--server", "backup", tmp_path / "b", *both)


def test_a_server_is_found_as_by_all_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def note(
        folder: Path, server: str, timeout: float, config: Path | None, *, with_credentials: bool
    ) -> None:
        assert not with_credentials
        asked.append(server)
        raise CommandError("noted", ExitCode.FAILED)

    monkeypatch.setattr("cli.log.backup_commands._back_up_running", note)
    check_refused(ExitCode.FAILED, "noted", "backup", tmp_path / "b")
    monkeypatch.setenv("MUSTER_SERVER", "h:1")
    check_refused(ExitCode.FAILED, "noted", "backup", tmp_path / "b")
    check_refused(ExitCode.NOT_FOUND, "", "backup", tmp_path / "b", "--data-dir", tmp_path)
    assert asked == ["127.0.0.1:50051", "h:1"]


def test_backups_that_cannot_be(data: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    backup = ("backup", tmp_path / "b", "--data-dir")
    check_refused(ExitCode.NOT_FOUND, "holds no Muster store", *backup, nothing)
    assert list(nothing.iterdir()) == []
    check_refused(ExitCode.PRECONDITION, "already exists", "backup", data, "--data-dir", data)
    nowhere = tmp_path / "no" / "where"
    check_refused(ExitCode.PRECONDITION, "make it first", "backup", nowhere, "--data-dir", data)
    server = ("--server", "127.0.0.1:1", "--timeout", "2s")
    check_refused(ExitCode.UNREACHABLE, "127.0.0.1:1", "backup", tmp_path / "b", *server)
    store = open_store(data / "store", partitions=1)
    check_refused(ExitCode.PRECONDITION, "in use", *backup, data)
    store.close()
    assert not (tmp_path / "b").exists()


def test_backups_that_are_not_restored(data: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b"
    assert invoke("backup", backup, "--data-dir", data, "-q").exit_code == 0
    new = ("--data-dir", tmp_path / "new")
    check_refused(ExitCode.NOT_FOUND, "is not a backup", "restore", data, *new)
    check_refused(ExitCode.PRECONDITION, "not empty", "restore", backup, "--data-dir", data)
    manifest = backup / MANIFEST
    content = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(content) | {"version": 99}))
    check_refused(ExitCode.PRECONDITION, "newer version", "restore", backup, *new)
    manifest.write_text(content)
    blob = next(backup.glob("store/rocksdb/*.blob"))
    blob.unlink()
    check_refused(ExitCode.FAILED, "No such file", "restore", backup, *new)
    assert not (tmp_path / "new").exists()


def test_no_server_starts_where_an_import_was_cut_off_before_it_is_done_again(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    (data / "store.building").mkdir(parents=True)
    with pytest.raises(CommandError, match="run it again") as refused:
        DataFolder(data).prepare()
    assert refused.value.exit_code == ExitCode.PRECONDITION
    check_refused(ExitCode.FAILED, "run it again", "backup", tmp_path / "b", "--data-dir", data)
    assert invoke("import", SEGMENTS, "--data-dir", data, "-q").exit_code == 0
    assert [entry.name for entry in data.iterdir()] == ["store"]
    DataFolder(data).prepare()


def test_what_is_said_of_groups_is_no_reason_to_lose_all(data: Path, tmp_path: Path) -> None:
    """Because of a bug in a rule or in the writer: the bytes are those that were acknowledged."""
    store = open_store(data / "store", partitions=1)
    ghost = current("m", 5, 0)
    assert ghost.value is not None
    append(store, {0: [(encode_key(ghost.key), encode_value(ghost.value))]})
    mark_all(store)
    store.close()
    assert invoke("backup", tmp_path / "b", "--data-dir", data, "-q").exit_code == 0
    restore = ("restore", tmp_path / "b", "--data-dir", tmp_path / "new")
    check_refused(ExitCode.FAILED, "(S19)", *restore)
    forced = invoke(*restore, "--force", "-q")
    assert forced.exit_code == 0, forced.error
    assert "(S19)" in forced.error
    assert "t,0,4" in invoke("offsets", tmp_path / "new", "--group", "g", "-o", "csv").out


def test_a_backup_of_a_store_that_is_wrong_is_not_restored(data: Path, tmp_path: Path) -> None:
    """The files are unchanged, but what was written was wrong."""
    store = open_store(data / "store", partitions=1)
    right = make_append(0, 5, [(offset_key("g"), offset_value(8))])
    right.latest.clear()  # type: ignore[attr-defined]
    store.write([right])
    mark_all(store)
    store.close()
    assert invoke("backup", tmp_path / "b", "--data-dir", data, "-q").exit_code == 0
    new = ("--data-dir", tmp_path / "new")
    check_refused(ExitCode.FAILED, "offset 5", "restore", tmp_path / "b", *new)
    check_refused(ExitCode.FAILED, "offset 5", "restore", tmp_path / "b", *new, "--force")
    assert not (tmp_path / "new").exists()


def test_credentials_are_in_a_backup_only_if_that_is_asked_for(data: Path, tmp_path: Path) -> None:
    secret = put_users(data / "store")
    made = invoke("backup", tmp_path / "without", "--data-dir", data)
    assert made.error == "not backed up: the credentials of 1 users (--with-credentials)\n"
    asked = invoke("backup", tmp_path / "with", "--data-dir", data, "--with-credentials")
    assert asked.error == ""
    found = {name: read_bytes(tmp_path / name) for name in ("with", "without")}
    assert (secret in found["with"], secret in found["without"]) == (True, False)
    assert (b"alice" in found["with"], b"alice" in found["without"]) == (True, False)
    for name, said in (("with", ""), ("without", "not restored, the backup was made without")):
        folder = tmp_path / f"restored-{name}"
        restored = invoke("restore", tmp_path / name, "--data-dir", folder)
        assert restored.exit_code == 0
        assert restored.error.startswith(said)
        assert len(restored.error.splitlines()) == bool(said)
        assert invoke("verify", folder).exit_code == 0
    assert read_side(tmp_path / "restored-with") == read_side(data)
    kept = [pair for pair in read_side(data) if not pair[0].startswith(CREDENTIAL_KINDS)]
    assert read_side(tmp_path / "restored-without") == kept
    assert len(kept) == 1


def put_users(folder: Path) -> bytes:
    """Side records with one user, whose credential was changed; returns its stored key."""
    random = Random(5)
    former, secret = random.randbytes(32), random.randbytes(32)
    key = ScramCredentialKey("alice", ScramMechanism.SHA_256)
    configs = GroupConfigsSideValue((("consumer.session.timeout.ms", "50000"),))
    store = open_store(folder, partitions=1)
    for record in (
        SideRecord(FakeSaltSecretKey(), FakeSaltSecretValue(bytes(32))),
        SideRecord(key, ScramCredential(b"salt", 4_096, former, former)),
        SideRecord(GroupConfigsSideKey(GroupId("g")), configs),
        SideRecord(key, ScramCredential(b"salt", 4_096, secret, secret)),
    ):
        store.write([], [encode_side(record)])
    store.sync()
    store.close()
    return secret


def read_side(data: Path) -> list[tuple[bytes, bytes]]:
    reader = open_store_reader(data / "store")
    try:
        return list(reader.side())
    finally:
        reader.close()


def read_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_credentials_are_exported_only_if_that_is_asked_for(data: Path, tmp_path: Path) -> None:
    secret = put_users(data / "store").hex().encode()
    export = ("export", "--data-dir", data)
    check_refused(
        ExitCode.USAGE, "needs --with-side", *export, tmp_path / "x", "--with-credentials"
    )
    for name, options, left_out in (
        ("plain", (), ["SCRAM credentials", "group configs"]),
        ("side", ("--with-side",), ["SCRAM credentials"]),
        ("all", ("--with-side", "--with-credentials"), []),
    ):
        made = invoke(*export, tmp_path / name, *options, "-o", "json")
        assert json.loads(made.out)["left_out"] == left_out
        said = "not exported: 1 SCRAM credentials (--with-credentials)" in made.error
        assert said == ("SCRAM credentials" in left_out)
        assert (secret in read_bytes(tmp_path / name)) == (name == "all")
        new = tmp_path / f"new-{name}"
        assert invoke("import", tmp_path / name, "--data-dir", new, "-q").exit_code == 0
        found = [pair for pair in read_side(new) if pair[0].startswith(CREDENTIAL_KINDS)]
        assert len(found) == (2 if name == "all" else 0)


def test_places_of_groups_are_kept_where_kafka_s_log_is_not_the_form(
    data: Path, tmp_path: Path
) -> None:
    record = SideRecord(
        GroupPlaceKey(LogPartition(0), GroupId("g")), GroupPlace(Place.MUSTER, 5, 7)
    )
    pair = encode_side(record)
    store = open_store(data / "store", partitions=1)
    store.write([], [pair])
    store.sync()
    store.close()
    assert invoke("verify", data).exit_code == 0
    assert invoke("backup", tmp_path / "backup", "--data-dir", data, "-q").exit_code == 0
    restored = ("restore", tmp_path / "backup", "--data-dir", tmp_path / "restored", "-q")
    assert invoke(*restored).exit_code == 0
    assert read_side(tmp_path / "restored") == [pair]
    plain = invoke("export", tmp_path / "plain", "--data-dir", data)
    assert "1 places of groups" in plain.error
    export = ("export", tmp_path / "side", "--data-dir", data, "--with-side", "-q")
    assert invoke(*export).exit_code == 0
    new = ("import", tmp_path / "side", "--data-dir", tmp_path / "new", "--partitions", "1", "-q")
    assert invoke(*new).exit_code == 0
    assert pair in read_side(tmp_path / "new")


def test_credentials_of_a_newer_version_are_not_restored_or_imported(
    data: Path, tmp_path: Path
) -> None:
    store = open_store(data / "store", partitions=1)
    newer = side_pb2.ScramCredential(version=2).SerializeToString()
    store.write([], [(b"\x0c\x01alice", newer)])
    store.sync()
    store.close()
    assert "version 2" in invoke("verify", data).error
    options = ("--with-side", "--with-credentials", "-q")
    assert invoke("export", tmp_path / "e", "--data-dir", data, *options).exit_code == 0
    new = ("--data-dir", tmp_path / "new")
    check_refused(ExitCode.PRECONDITION, "use a newer version", "import", tmp_path / "e", *new)
