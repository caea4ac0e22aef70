"""Pages of lists."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.runtime.loop.slices import run_at_once
from coordinator.service.wire import paging
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import (
    Page,
    compute_page,
    compute_page_token,
    compute_slice,
    compute_visible,
    decode_number,
)


@given(st.sets(st.text(max_size=5)), st.integers(1, 4), st.sets(st.text(max_size=5)))
def test_pages_cover_the_list_also_while_it_changes(
    names: set[str], size: int, added: set[str]
) -> None:
    """A name that exists throughout is listed once, whatever is added or removed between pages."""
    seen: list[str] = []
    current = sorted(names)
    token = ""
    while True:
        page = compute_page(size, token, ("filter",), 100, 1_000)
        shown, more = compute_slice(current, page)
        seen += current[shown]
        if not more:
            break
        token = compute_page_token(current[shown][-1], ("filter",))
        current = sorted(names | added)
    assert sorted(seen) == sorted(set(seen)) == seen
    assert names <= set(seen)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_pages_of_what_is_seen(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "SLICE", 3)
    names = [f"{number:02d}" for number in range(20)]
    seen, more, after = list[str](), True, None
    while more:
        page = Page(size, after)
        steps = compute_visible(names, lambda name: int(name) % 4 == 1, page)
        found, more = run_at_once(steps)
        assert len(found) == size or not more
        seen += found
        after = found[-1]
    assert seen == ["01", "05", "09", "13", "17"]


def test_page_sizes() -> None:
    assert compute_page(0, "", (), 100, 1_000) == Page(100, None)
    assert compute_page(7, "", (), 100, 1_000) == Page(7, None)
    assert compute_page(5_000, "", (), 100, 1_000) == Page(1_000, None)
    with pytest.raises(InvalidField, match="below 0"):
        compute_page(-1, "", (), 100, 1_000)


@pytest.mark.parametrize(
    "token",
    [
        "not base64 !",
        "é",
        "AAAA",
        base64.urlsafe_b64encode(b"12345678\xff\xff").decode(),
        compute_page_token("a", ("another filter",)),
    ],
)
def test_tokens_of_others_are_refused(token: str) -> None:
    with pytest.raises(InvalidField, match="page_token"):
        compute_page(0, token, ("filter",), 100, 1_000)


def test_numbers_in_tokens() -> None:
    assert decode_number("0", 7) == 0
    assert decode_number("8", 7) == 7
    assert decode_number("9" * 19, 1 << 70) == 10**19 - 1


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "١", "²", "9" * 20, "9" * 10_000])
def test_what_is_no_number_in_a_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidField, match="page_token is invalid"):
        decode_number(text, 1 << 70)
