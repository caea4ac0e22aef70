"""What is traced, as set: nothing by default."""

from __future__ import annotations

import sys

import pytest

from cli.errors import CommandError
from cli.serve.traces.traces import Traces, make_traces
from cli.settings import Resolved, SettingsError, resolve
from cli.settings.setting_sources import parse_flags

ENDPOINT = "http://127.0.0.1:4317"


def make(*flags: str) -> Resolved:
    return resolve(parse_flags(flags))


def test_nothing_is_traced_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "cli.serve.traces.spans", raising=False)
    traces = make_traces(make())
    assert traces.trips is None
    assert traces.compute_figures() is None
    traces.start()
    traces.stop(0.0)


def test_without_the_extra_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "cli.serve.traces.spans", raising=False)
    with pytest.raises(CommandError) as caught:
        make_traces(make(f"--traces.endpoint={ENDPOINT}"))
    assert str(caught.value) == (
        "traces.endpoint needs OpenTelemetry: install muster-server[traces], or unset it"
    )


def test_a_server_with_a_collector_follows_requests() -> None:
    traces: Traces = make_traces(make(f"--traces.endpoint={ENDPOINT}", "--traces.sample.one.in=1"))
    assert traces.trips is not None
    assert traces.trips.begin() is not None
    figures = traces.compute_figures()
    assert figures is not None
    assert figures.exported == 0
    traces.stop(0.0)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:4317", "grpc://a:1", "http://", "http://a", "http://a:b", "http://a:1/v1"]
)
def test_what_is_no_collector(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make(f"--traces.endpoint={text}")
    assert caught.value.lines == (
        f"traces.endpoint: {text} is not http://HOST:PORT or https://HOST:PORT",
    )
