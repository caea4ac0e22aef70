"""A line of the audit log, whatever a client sends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.serve.audit.audit_lines import ENTRIES_MAX, LINE_MAX, MORE, TEXT_MAX, encode_line
from model.access.acls import Operation
from model.secret import HIDDEN, Secret


def read(line: bytes) -> Any:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert len(line) <= LINE_MAX
    return json.loads(line)


def test_a_line_has_the_time_the_event_and_the_fields() -> None:
    line = encode_line(1_700_000_000.25, "changed", {"operation": Operation.ALTER, "after": None})
    assert line == (
        b'{"time": "2023-11-14T22:13:20.250Z", "event": "changed", '
        b'"operation": "ALTER", "after": null}\n'
    )


@pytest.mark.parametrize(
    "text",
    ["a\nb\r\n", "\x00\x1b[2J\x7f", "\ud800 alone", "\u2028\u2029", '"}\n{"event": "x"', "😀"],
)
def test_no_text_ends_a_line_or_changes_a_terminal(text: str) -> None:
    line = encode_line(0, "e", {"principal": text, "before": {text: [text]}})
    assert read(line)["principal"] == text
    assert all(0x20 <= byte < 0x7F for byte in line[:-1])


def test_long_texts_and_many_entries_are_cut() -> None:
    many = ENTRIES_MAX + 7
    found = read(
        encode_line(
            0,
            "e",
            {
                "name": "x" * 100_000,
                "rows": list(range(many)),
                "offsets": {f"t-{number}": number for number in range(many)},
            },
        )
    )
    assert found["name"] == "x" * TEXT_MAX + MORE
    assert found["rows"][-2:] == [ENTRIES_MAX - 1, MORE]
    assert found["offsets"][MORE] == 7
    assert len(found["offsets"]) == ENTRIES_MAX + 1


def test_a_line_is_bounded_whatever_is_in_it() -> None:
    worst = {f"{'😀' * 1_000}{number}": ["😀" * 1_000] * 50 for number in range(1_000)}
    found = read(encode_line(0, "e", {"principal": "😀" * 1_000, "before": worst, "after": worst}))
    assert found["before"][MORE] > 900


def test_what_nests_deeply_is_cut() -> None:
    nested: Any = "end"
    for _ in range(10_000):
        nested = [nested]
    try:
        read(encode_line(0, "e", {"after": nested}))
    finally:
        while isinstance(nested, list):  # Freed one by one: not recursively.
            nested = nested.pop()


def test_a_secret_is_hidden() -> None:
    line = encode_line(0, "e", {"after": {"key": Secret("planted"), "all": [Secret("planted")]}})
    assert b"planted" not in line
    assert read(line)["after"] == {"key": HIDDEN, "all": [HIDDEN]}
