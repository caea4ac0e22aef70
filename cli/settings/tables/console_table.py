"""The settings of the console."""

from __future__ import annotations

from typing import Final

from cli.settings.setting import LONG_MAX, Kind, Scope, Setting

ENABLE: Final = "console.enable"
HOSTS: Final = "console.hosts"
SESSION_IDLE: Final = "console.session.idle.ms"
SESSION_MAX: Final = "console.session.max.ms"
STREAMS: Final = "console.streams.max"

CONSOLE_SETTINGS = (
    Setting(
        ENABLE,
        Kind.BOOLEAN,
        True,
        Scope.CONSOLE,
        "Whether `listen.http` serves the console. See [the console](console.md).",
    ),
    Setting(
        HOSTS,
        Kind.LIST,
        None,
        Scope.CONSOLE,
        "Further names that browsers may ask for the console by, as behind a proxy, separated by "
        "commas. Addresses, `localhost` and the name of this machine need not be listed.",
    ),
    Setting(
        SESSION_IDLE,
        Kind.LONG,
        30 * 60 * 1_000,
        Scope.CONSOLE,
        "After such a time without a page somebody who has signed in has to do so again.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    Setting(
        SESSION_MAX,
        Kind.LONG,
        8 * 60 * 60 * 1_000,
        Scope.CONSOLE,
        "How long somebody who has signed in stays so at most; less if the token ends before, or "
        "`connections.max.reauth.ms` allows less.",
        minimum=1,
        maximum=LONG_MAX,
    ),
    Setting(
        STREAMS,
        Kind.INT,
        100,
        Scope.CONSOLE,
        "How many pages may be kept up to date at a time; one host may have three fifths of them. "
        "Each has one of the connections of `listen.http`.",
        minimum=0,
        maximum=200,
    ),
)
