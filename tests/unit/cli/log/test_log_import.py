"""`muster log import` and `muster log export`: their input, output and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.log import known_topics
from cli.log.known_topics import parse_topic_id, read_known_topics
from model.ids import TopicName
from model.log.side_records import ImportGraceKey, ImportGraceValue, TopicSideKey, TopicSideValue
from storage.codec.batch_encoding import encode_batch
from storage.folder import watermark
from storage.folder.watermark import WatermarkHeader, create_watermark
from storage.rocks.rocks_opening import open_store
from storage.side_codec import decode_side
from tests.support.cli.log_files import SEGMENTS, invoke, write_segment
from tests.support.storage.appends import offset_key, offset_value

TOPIC_ID = "bw5pX9ilSquxU3RvBSpXVw"
TOPICS = f"""
- name: orders
  id: {TOPIC_ID}
  partitions: 12
- {{name: t3, id: 00000000-0000-0001-0000-000000000002, partitions: 3}}
"""


def read_files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def read_side(data: Path) -> dict[object, object]:
    store = open_store(data / "store", partitions=1)
    records = [decode_side(key, value) for key, value in store.side()]
    store.close()
    return {record.key: record.value for record in records if record is not None}


def test_an_import_says_what_it_did_and_what_is_missing(tmp_path: Path) -> None:
    topics = tmp_path / "topics.yaml"
    topics.write_text(TOPICS)
    data = tmp_path / "data"
    result = invoke("import", SEGMENTS, "--data-dir", data, "--topics", topics, "-o", "json")
    assert result.exit_code == 0, result.error
    said = json.loads(result.out)
    assert (said["partitions"], said["batches"], said["records"]) == (50, 2511, 6144)
    assert said["groups"] == {"classic": 27, "consumer": 17, "share": 1, "streams": 1}
    assert said["unserved_groups"] == [
        {"group": "o23-share", "type": "share", "state": "Empty"},
        {"group": "o24-streams", "type": "streams", "state": "Empty"},
    ]
    assert said["open_producer_ids"] == [2, 5]
    assert "t3" not in said["unknown_topics"]
    assert "t600" in said["unknown_topics"]
    assert "Some topics of the log are unknown" in result.error
    side = read_side(data)
    orders = TopicSideValue(parse_topic_id(TOPIC_ID), 12)
    assert side[TopicSideKey(TopicName("orders"))] == orders
    grace = side[ImportGraceKey()]
    assert isinstance(grace, ImportGraceValue)
    assert grace.imported_at_ms > 1_700_000_000_000


def test_kafkas_clock_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    result = invoke("import", SEGMENTS, "--data-dir", tmp_path, "--keep-clock", "-q")
    assert (result.exit_code, result.out) == (0, "")
    assert ImportGraceKey() not in read_side(tmp_path)


def test_there_and_back_with_side_records(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps([{"name": "orders", "id": TOPIC_ID, "partitions": 12}]))
    assert invoke("import", SEGMENTS, "--data-dir", first, "--topics", topics).exit_code == 0
    plain = invoke("export", tmp_path / "plain", "--data-dir", first, "--history")
    assert "not exported" in plain.error
    assert "1 topics" in plain.error
    assert read_files(tmp_path / "plain") == read_files(SEGMENTS)
    whole = invoke("export", tmp_path / "log", "--data-dir", first, "--history", "--with-side")
    assert (whole.exit_code, whole.error) == (0, "")
    again = invoke("import", tmp_path / "log", "--data-dir", second, "--keep-clock")
    assert again.exit_code == 0
    assert read_side(second) == read_side(first)
    stores = [open_store(data / "store", partitions=1) for data in (first, second)]
    assert stores[0].cluster_id == stores[1].cluster_id
    for store in stores:
        store.close()


def test_a_store_that_holds_groups_refuses_open_transactions(tmp_path: Path) -> None:
    write_segment(tmp_path / "log", 0, encode_batch(0, [(offset_key("mine"), offset_value(1))], 5))
    data = tmp_path / "data"
    first = invoke("import", tmp_path / "log", "--data-dir", data, "--partitions", "1")
    assert first.exit_code == 0, first.error
    before = read_files(data)
    refused = invoke("import", SEGMENTS, "--data-dir", data)
    assert refused.exit_code == ExitCode.PRECONDITION
    assert "--abort-open" in refused.error
    assert read_files(data) == before
    done = invoke("import", SEGMENTS, "--data-dir", data, "--abort-open", "-o", "json")
    assert done.exit_code == 0, done.error
    said = json.loads(done.out)
    assert (said["rehashed"], said["partitions"]) == (True, 1)
    assert said["aborted_producer_ids"] == [2, 5]
    assert said["groups"]["classic"] == 28


# ---------------------------------------------------------------------------------------- refused


def check_refused(tmp_path: Path, code: ExitCode, text: str, *arguments: str | Path) -> None:
    """One line, the exit code, and nothing written."""
    data = tmp_path / "data"
    result = invoke("import", *arguments, "--data-dir", data)
    assert (result.exit_code, result.out) == (code, "")
    assert text in result.error
    assert len(result.error.splitlines()) == 1
    assert not data.exists()


def test_a_folder_without_segments(tmp_path: Path) -> None:
    check_refused(tmp_path, ExitCode.NOT_FOUND, "does not exist", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    check_refused(tmp_path, ExitCode.NOT_FOUND, "holds no segments", tmp_path / "empty")


def test_a_foreign_file(tmp_path: Path) -> None:
    log = tmp_path / "log" / "__consumer_offsets-0"
    log.mkdir(parents=True)
    (log / "00000000000000000000.log").write_bytes(b"this is a text and no segment of a log" * 9)
    check_refused(tmp_path, ExitCode.NOT_FOUND, "is not a segment", log.parent)


def test_a_truncated_file(tmp_path: Path) -> None:
    batch = encode_batch(0, [(offset_key("g"), offset_value(1))], 5)
    write_segment(tmp_path / "log", 0, batch, batch[:-3])
    check_refused(tmp_path, ExitCode.FAILED, "byte", tmp_path / "log")


def test_partitions_that_are_not_those_of_the_log(tmp_path: Path) -> None:
    mismatch = ("--partitions", "60")
    check_refused(tmp_path, ExitCode.PRECONDITION, "use --partitions 50", SEGMENTS, *mismatch)


def test_a_store_of_a_newer_format(tmp_path: Path) -> None:
    store = tmp_path / "data" / "store"
    store.mkdir(parents=True)
    newer = WatermarkHeader(50, "C" * 22, format_version=watermark.FORMAT_VERSION)
    create_watermark(store / "watermark", newer).close()
    (store / "rocksdb").mkdir()
    content = bytearray((store / "watermark").read_bytes())
    content[8:12] = (99).to_bytes(4, "big")
    (store / "watermark").write_bytes(content)
    before = read_files(tmp_path / "data")
    result = invoke("import", SEGMENTS, "--data-dir", tmp_path / "data")
    assert result.exit_code == ExitCode.PRECONDITION
    assert "newer version" in result.error
    assert read_files(tmp_path / "data") == before


def test_a_running_server_keeps_its_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", partitions=50)
    result = invoke("import", SEGMENTS, "--data-dir", tmp_path)
    assert result.exit_code == ExitCode.PRECONDITION
    assert "in use" in result.error
    store.close()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("orders: 12", "write a list"),
        ("- {name: orders, partitions: 3}", "write a list"),
        ("- {name: orders, id: short, partitions: 3}", "is not a topic id"),
        (f"- {{name: orders, id: {TOPIC_ID}, partitions: 0}}", "at least 1"),
        (f"- {{name: 'a b', id: {TOPIC_ID}, partitions: 1}}", "is not a valid topic name"),
        (f"- &t {{name: a, id: {TOPIC_ID}, partitions: 1}}\n- *t", "occurs twice"),
        ("- [", "neither YAML nor JSON"),
    ],
)
def test_topics_that_cannot_be_read(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "topics"
    file.write_text(content)
    check_refused(tmp_path, ExitCode.USAGE, text, SEGMENTS, "--topics", file)


def test_topics_come_from_one_place(tmp_path: Path) -> None:
    both = ("--topics", tmp_path / "t", "--bootstrap-server", "127.0.0.1:1")
    check_refused(tmp_path, ExitCode.USAGE, "give either --topics or", SEGMENTS, *both)


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    cluster = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "300ms")
    check_refused(tmp_path, ExitCode.UNREACHABLE, "cannot be reached", SEGMENTS, *cluster)


def test_a_topic_id_in_each_form() -> None:
    hex_form = parse_topic_id(TOPIC_ID).hex()
    for text in (TOPIC_ID, TOPIC_ID + "==", hex_form, hex_form.upper()):
        assert parse_topic_id(text) == parse_topic_id(TOPIC_ID)
    for bad in ("", 5, None, "A" * 22, "x" * 32, TOPIC_ID[:-1]):
        with pytest.raises(known_topics.TopicSpecError):
            parse_topic_id(bad)


def test_topics_under_a_heading(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text("topics:" + TOPICS)
    assert list(read_known_topics(file)) == ["orders", "t3"]


def test_an_export_wants_a_store_and_a_new_folder(tmp_path: Path) -> None:
    missing = invoke("export", tmp_path / "out", "--data-dir", tmp_path / "nowhere")
    assert missing.exit_code == ExitCode.NOT_FOUND
    open_store(tmp_path / "store", partitions=1).close()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    taken = invoke("export", tmp_path / "out", "--data-dir", tmp_path)
    assert taken.exit_code == ExitCode.PRECONDITION
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["file"]
