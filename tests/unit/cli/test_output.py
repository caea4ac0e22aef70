"""Output formats: tables for people, complete responses for programs."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cli.asking import raise_failures
from cli.errors import CommandError
from cli.output import Format, Listing, print_listing, print_note

CHECKOUT = Path(__file__).resolve().parents[3]

LISTING = Listing(
    "topic.list",
    ["TOPIC", "PARTITIONS", "NOTE"],
    [["orders", 12, ""], ["a,b", 4, 'say "x"']],
    {"topics": [{"topic_name": "orders"}, {"topic_name": "a,b"}]},
    "topics",
    wide_columns=1,
    preface=["two topics"],
)


def shown(form: Format, capsys: pytest.CaptureFixture[str]) -> str:
    print_listing(LISTING, form)
    return capsys.readouterr().out


def test_a_table_has_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(Format.TABLE, capsys).splitlines() == [
        "two topics",
        "TOPIC   PARTITIONS",
        "orders          12",
        "a,b              4",
    ]


def test_a_wide_table_has_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(Format.WIDE, capsys).splitlines()[2:] == [
        "orders          12  -",
        'a,b              4  say "x"',
    ]


def test_names_of_clients_move_no_cursor_and_begin_no_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [["a\nALLOW", 1, ""], ["\x1b[2J\u202e", 2, ""], ["grün", 3, ""]]
    listing = replace(LISTING, rows=rows, preface=["of \x1b[1m"])
    print_listing(listing, Format.TABLE)
    print_note("no group \x9b2J\nmuster: nor a line")
    with pytest.raises(CommandError) as caught:
        raise_failures([CommandError("a\nb: not there"), CommandError("c: not there")])
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == [
        "of",
        "TOPIC",
        "a\\nALLOW",
        "\\x1b[2J\\u202e",
        "grün",
    ]
    assert "\x1b" not in printed.out
    assert printed.err == "no group \\x9b2J\\nmuster: nor a line\n"
    assert caught.value.message.splitlines() == ["a\\nb: not there", "c: not there"]


def test_json_is_in_an_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(shown(Format.JSON, capsys))
    assert content == {"_command": "topic.list", "_version": 1, **LISTING.content}
    assert yaml.safe_load(shown(Format.YAML, capsys)) == content


def test_json_lines_are_the_items(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(Format.JSONL, capsys).splitlines()
    assert [json.loads(line) for line in lines] == LISTING.content["topics"]


@pytest.mark.parametrize("form", [Format.JSON, Format.JSONL])
def test_json_moves_no_cursor_either(form: Format, capsys: pytest.CaptureFixture[str]) -> None:
    odd = '\x9b2J\x7f\u202e\u2028\U000e0001 \x1b[2J\na\\b"gr\u00fcn \U0001f600'
    print_listing(replace(LISTING, content={"topics": [{"topic_name": odd}]}), form)
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.splitlines())
    assert "gr\u00fcn \U0001f600" in printed
    content = json.loads(printed)
    assert (content if form is Format.JSONL else content["topics"][0])["topic_name"] == odd


def test_csv_has_a_header_and_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO(shown(Format.CSV, capsys))))
    assert rows == [
        ["TOPIC", "PARTITIONS", "NOTE"],
        ["orders", "12", ""],
        ["a,b", "4", 'say "x"'],
    ]


def test_a_table_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(Listing("x", ["A", "B"], [], {"items": []}, "items"), Format.TABLE)
    assert capsys.readouterr().out == "A  B\n"


def test_commands_have_names_of_one_form() -> None:
    """Words and dots, in the JSON of every command."""
    named = [
        name
        for file in (CHECKOUT / "cli").rglob("*.py")
        for name in re.findall(r'Listing\(\s*"([^"]+)"', file.read_text(encoding="utf-8"))
    ]
    assert len(named) > 15
    assert [name for name in named if not re.fullmatch(r"[a-z-]+(\.[a-z-]+)*", name)] == []
