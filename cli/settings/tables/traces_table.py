"""The part of the table of settings for traces."""

from __future__ import annotations

from typing import Final

from cli.settings.setting import Kind, Scope, Setting

ENDPOINT: Final = "traces.endpoint"
ONE_IN: Final = "traces.sample.one.in"
QUEUE_MAX: Final = "traces.queue.max"

TRACES_SETTINGS = (
    Setting(
        ENDPOINT,
        Kind.STRING,
        None,
        Scope.SERVER,
        "A collector that takes traces by OTLP over gRPC: `http://HOST:PORT` or "
        "`https://HOST:PORT`. Needs the extra `traces`; by default nothing is traced. See "
        "[traces](traces.md).",
    ),
    Setting(
        ONE_IN,
        Kind.INT,
        100,
        Scope.SERVER,
        "One of so many requests is traced, chosen at random. gRPC calls whose client sends "
        "`traceparent` are traced if the client traces them.",
        minimum=1,
    ),
    Setting(
        QUEUE_MAX,
        Kind.INT,
        4_096,
        Scope.SERVER,
        "The maximum number of traced requests that wait to be exported; further ones are "
        "dropped, and counted in `muster_traces_dropped_total`.",
        minimum=1,
        maximum=1_000_000,
    ),
)
