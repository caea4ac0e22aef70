"""Regular expressions: matches, error messages, and the cost of hostile ones."""

from __future__ import annotations

import time
from typing import NoReturn

import pytest
import re2

from coordinator.core.subscriptions.regex_matching import check_regex, compute_matches
from model.errors import ErrorCode, InvalidRegularExpression
from model.ids import TopicName

MAX_BYTES = 4_096


def matches(regex: str, *names: str) -> set[str]:
    return set(compute_matches(regex, [TopicName(name) for name in names]))


def test_a_pattern_matches_from_end_to_end() -> None:
    names = ("orders", "orders-eu", "old-orders", "my-orders-eu")
    assert matches("orders", *names) == {"orders"}
    assert matches("orders.*", *names) == {"orders", "orders-eu"}
    assert matches(".*orders", *names) == {"orders", "old-orders"}
    assert matches("orders|old-.*", *names) == {"orders", "old-orders"}
    assert matches("^orders$", *names) == {"orders"}
    assert matches("", *names) == set()


def test_case_counts_unless_the_pattern_says_otherwise() -> None:
    assert matches("foo", "foo", "Foo") == {"foo"}
    assert matches("(?i)foo", "foo", "Foo") == {"foo", "Foo"}


def test_groups_and_classes_are_those_of_re2() -> None:
    assert matches(r"(?P<kind>a|b)-\d+", "a-1", "b-22", "c-3", "a-") == {"a-1", "b-22"}
    assert matches(r"\Qa.b\E", "a.b", "axb") == {"a.b"}
    assert matches(r"[[:alpha:]]+_[^x]", "ab_c", "ab_x") == {"ab_c"}


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        ("(unclosed", "missing closing )"),
        ("a)", "unexpected )"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("\\", "trailing backslash at end of expression"),
        ("a{2,1}", "invalid repeat count"),
        ("a{1001}", "invalid repeat count"),
        ("(?P<n", "invalid named capture"),
        ("a(?=b)", "invalid or unsupported Perl syntax"),
        ("(?<=a)b", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        (r"\pX", "invalid character class range"),
        (r"[\pL]{1000}", "it is too large"),
    ],
)
def test_what_is_no_pattern_is_refused_in_kafkas_words(regex: str, words: str) -> None:
    with pytest.raises(InvalidRegularExpression) as refusal:
        check_regex(regex, MAX_BYTES)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refusal.value.message == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {words}."
    )
    assert matches(regex, "a", "(unclosed", regex) == set()


def test_the_length_is_counted_in_bytes() -> None:
    check_regex("é" * 10, 20)
    with pytest.raises(InvalidRegularExpression, match="longer than 19 bytes"):
        check_regex("é" * 10, 19)
    with pytest.raises(InvalidRegularExpression, match="longer than 4096 bytes"):
        check_regex("(" * 65_536, MAX_BYTES)


@pytest.mark.parametrize(
    "regex",
    [
        "(a+)+$",
        "(a|a)*$",
        "(.*){1,1000}",
        "((a{1,30}){1,30})b",
        "(a?){1,1000}a{1,1000}b",
        "(?:" * 900 + "a*" + ")*" * 900,
        "(x+x+)+y|" * 400 + "z",
        "[^a]*a[^a]{1,120}",
    ],
)
def test_no_pattern_takes_long(regex: str) -> None:
    """An accepted expression compiles and matches quickly; others are refused."""
    names = [TopicName("a" * 248 + last) for last in "abcdefgh"]
    began = time.process_time()
    try:
        check_regex(regex, 1 << 16)
    except InvalidRegularExpression:
        pass
    else:
        compute_matches(regex, names)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "regex",
    [
        "(.*){1,1000}",
        "(.*){1000}",
        "(.*){1000,}",
        "((a.*){1,99}){1,99}",
        r"\pL" * 1_000,
        "|".join([r"\pL\p{Greek}\PN"] * 300),
        r"[\pL\pN]" * 400,
        "." * 4_096,
        "(?i)" + "[a-zà-ÿ]{1,50}" * 70,
        "a{9999999999}",
    ],
)
def test_what_would_take_long_is_refused_before_it_is_compiled(
    regex: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise AssertionError("it is compiled")

    monkeypatch.setattr(re2, "compile", fail)
    with pytest.raises(InvalidRegularExpression, match="it is too large"):
        check_regex(regex[:MAX_BYTES], MAX_BYTES)


@pytest.mark.parametrize(
    "regex",
    [
        "|".join(f"orders-{number:05d}" for number in range(300)),
        "|".join(f".*{number:03x}.*" for number in range(400)),
        r"(?i)[\w.-]{1,249}",
        r"(\pL+[-_.]){0,5}\pN*",
        r"\Qa.b{1000}\E|[[:alpha:]]{3,}\d{1,9}",
        ".*(eu|us)-(east|west)-[0-9]+",
    ],
)
def test_what_people_write_is_taken(regex: str) -> None:
    check_regex(regex[:MAX_BYTES], MAX_BYTES)
