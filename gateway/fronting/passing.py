"""Passes the requests of one client on to the cluster, over one link.

The link is opened when the first request comes. Requests are sent in order and answered in order.
A request that is not answered in time, or an answer to something else, ends the link: what waits
hears that there is no answer. A link that ends while nothing waits is opened again when needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.fronting.front import Front, LinkUnavailable, PassedClient, PassedLink
from gateway.wire_clock import Clock, Timer

logger = logging.getLogger("muster.gateway")

TIMEOUT_S: Final = 120.0
"""Longer than requests that wait in a broker do, by their own timeouts."""
_KEY: Final = slice(4, 6)
_CORRELATION: Final = slice(8, 12)
_ANSWERED: Final = slice(4, 8)

OnAnswer: TypeAlias = Callable[[bytes | None], None]
"""Gets the response, size included; ``None`` if none will come: the request may have been done."""


class Passing:
    """The requests of one client that the cluster answers."""

    def __init__(self, front: Front, client: PassedClient, clock: Clock) -> None:
        self._front = front
        self._client = client
        self._clock = clock
        self._link: PassedLink | None = None
        self._reading: asyncio.Task[None] | None = None
        self._unsent: list[bytes] = []
        self._awaited: deque[tuple[bytes, OnAnswer, float]] = deque()
        self._timer: Timer | None = None
        self._why = "there is no connection to the cluster"

    def ask(self, frame: bytes, on_answer: OnAnswer, timeout_s: float = TIMEOUT_S) -> None:
        """Pass a request on; ``on_answer`` is called once, unless the client goes first."""
        self._front.note_passed_on(int.from_bytes(frame[_KEY], "big"))
        self._send(frame)
        self._awaited.append((frame[_CORRELATION], on_answer, self._clock.time() + timeout_s))
        if self._timer is None:
            self._timer = self._clock.call_later(timeout_s, self._check_time)

    @property
    def is_behind(self) -> bool:
        """Whether the cluster has not answered what was asked before."""
        return bool(self._awaited)

    def refuse_client(self) -> None:
        """Close the client's connection, as a broker's that has gone: no answer will come."""
        self._client.refuse("cluster-unreachable", self._why)

    def drop(self) -> None:
        """Forget everything: the client is gone."""
        self._awaited.clear()
        self._end()

    def _send(self, frame: bytes) -> None:
        passed = self._client.passed
        if not self._awaited and passed is not None and self._link not in (None, passed):
            # The client has logged in anew: what follows is to be asked as who it is now.
            self._end()
        if self._link is not None:
            self._link.send(frame)
            return
        self._unsent.append(frame)
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        link = None
        try:
            link = await self._front.open(self._client)
            if self._reading is not asyncio.current_task():
                return
            self._link = link
            self._why = "the connection to the cluster ended"
            for frame in self._unsent:
                link.send(frame)
            self._unsent.clear()
            while (answer := await link.read_frame()) is not None:
                if not self._take(answer):
                    break
        except (LinkUnavailable, OSError) as error:
            self._why = str(error)
        except Exception:
            self._why = "the connection to the cluster failed"
            logger.exception("kafka_link_failed")
        finally:
            if link is not None:
                link.close()
            if self._reading is asyncio.current_task():
                self._end(is_running=True)

    def _take(self, answer: bytes) -> bool:
        """Hand an answer to whom it is for; ``False`` if nothing that follows can be trusted."""
        if not self._awaited or self._awaited[0][0] != answer[_ANSWERED]:
            return False
        _, on_answer, _ = self._awaited.popleft()
        self._set_timer()
        on_answer(answer)
        return self._reading is asyncio.current_task()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._awaited:
            left_s = max(0.0, min(until for *_, until in self._awaited) - self._clock.time())
            self._timer = self._clock.call_later(left_s, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        self._why = "the cluster did not answer in time"
        self._end()

    def _end(self, *, is_running: bool = False) -> None:
        """Close the link; what waits will not be answered."""
        awaited, self._awaited = self._awaited, deque()
        reading, self._reading = self._reading, None
        link, self._link = self._link, None
        self._unsent.clear()
        self._set_timer()
        if link is not None:
            link.close()
        if reading is not None and not is_running:
            reading.cancel()
        for _, on_answer, _ in awaited:
            on_answer(None)
