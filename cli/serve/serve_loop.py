"""Runs a server until a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from cli.errors import CommandError, ExitCode
from cli.serve.event_loop import find_loop_factory
from cli.serve.logs import configure_logging
from cli.serve.service import Service
from cli.serve.service_manager import ServiceManager, find_service_manager
from cli.settings import Resolved, SettingsError
from wording.topics import TopicSpec

log = structlog.get_logger("muster.serve")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SWITCH_INTERVAL_S: Final = 0.001
"""How long a thread waits for the GIL before the event loop has to release it.

The loop also releases it briefly in each iteration, which restarts the wait. With Python's 5 ms
and iterations of 3 ms, the thread that syncs the log waited as long as the loop was busy: 0.6 s.
"""


def run_serve(resolved: Resolved, specs: Sequence[TopicSpec], *, names_topics: bool) -> None:
    """Serve until SIGTERM or SIGINT; return when everything is flushed and closed.

    A second signal ends the process at once. Raises ``CommandError`` if the server cannot start.
    """
    check_assertions()
    configure_logging(resolved.text("log.format"), resolved.text("log.level"))
    for warning in resolved.warnings:
        log.warning("settings_without_effect", cause=warning)
    for line in resolved.exposed:
        log.warning("secrets_exposed", cause=line)
    try:
        service = Service(resolved, specs, names_topics=names_topics)
    except SettingsError as error:
        raise CommandError("\n".join(error.lines), ExitCode.USAGE) from error
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(_serve(service))


def check_assertions() -> None:
    """Raise ``CommandError`` under ``python -O``: the server relies on its assertions."""
    if sys.flags.optimize:
        raise CommandError(
            "the server needs Python's assertions: start it without -O and PYTHONOPTIMIZE",
            ExitCode.USAGE,
        )


async def _serve(service: Service) -> None:
    stopping = asyncio.Event()
    manager = find_service_manager()
    _handle_signals(stopping, _make_reload(service.reload, manager))
    try:
        await service.start()
        manager.tell_loading()
        for name, address in service.addresses.items():
            print(f"{name:<5} {address}", flush=True)
        await _load_and_serve(service, stopping, manager)
    finally:
        manager.tell_stopping()
        await service.stop()
    log.info("stopped")


def _make_reload(
    reload: Callable[[], Awaitable[None]], manager: ServiceManager
) -> Callable[[], None]:
    """What SIGHUP does. The manager hears when it is done; a later reload waits for the first."""
    turn = asyncio.Lock()
    reloading: set[asyncio.Task[None]] = set()

    async def reload_in_turn() -> None:
        async with turn:
            manager.tell_reloading()
            await reload()
            manager.tell_reloaded()

    def begin() -> None:
        # As many signals as come while one waits are one.
        if len(reloading) <= 1:
            task = asyncio.create_task(reload_in_turn(), name="muster-reload")
            reloading.add(task)
            task.add_done_callback(reloading.discard)

    return begin


async def _load_and_serve(
    service: Service, stopping: asyncio.Event, manager: ServiceManager
) -> None:
    """Wait for a signal, or for loading to fail. Raises the error of loading."""
    loading = asyncio.create_task(service.finish_start())
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((loading, waiting), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
            manager.tell_ready()
            await waiting
    finally:
        loading.cancel()
        waiting.cancel()


def _handle_signals(stopping: asyncio.Event, reload: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stopping.is_set():
            log.warning("stopped_at_once", signal=number.name)
            os._exit(128 + number)
        log.info("stopping", signal=number.name)
        stopping.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    loop.add_signal_handler(signal.SIGHUP, reload)
