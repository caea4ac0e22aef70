"""The use that clients make of their quotas, on all doors together."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from enum import Enum
from itertools import islice
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from model.access.quotas import (
    COMMIT_RATE,
    GROUPS_MAX,
    JOIN_RATE,
    MEMBERS_MAX,
    REQUEST_PERCENTAGE,
    REQUEST_RATE,
    QuotaEntity,
)
from model.caller import Caller
from security.quotas.addresses import find_address
from security.quotas.holdings import Held, Holdings, IsHeld
from security.quotas.quota_index import Limit, QuotaIndex
from security.quotas.settings import QuotaSettings
from security.quotas.usage import Usage

USAGES_MAX: Final = 10_000
"""Usages that are kept. Beyond it the one that was looked for least recently goes."""
_NAME_MAX: Final = 128
"""Longer names are kept as digests: a client may choose 32,767 bytes."""


class Work(Enum):
    """What a request is, as quotas tell requests apart."""

    REQUEST = None
    COMMIT = COMMIT_RATE
    JOIN = JOIN_RATE


_Named: TypeAlias = tuple[str, QuotaEntity]
_Used: TypeAlias = tuple[Usage, float]
"""What was used, and the limit for a second."""


class ClientMeter:
    """The use that one client makes of the quotas of one version of the index.

    Nobody is throttled for longer than ``longest_s`` at a time.
    """

    __slots__ = ("_by_work", "_longest_s", "_seconds", "groups_max", "members_max", "version")

    def __init__(
        self,
        version: int,
        longest_s: float,
        by_work: dict[Work, tuple[_Used, ...]],
        seconds: tuple[_Used, ...],
        most: tuple[int | None, int | None],
    ) -> None:
        """``most``: the groups and the members that the client's user may make."""
        self.version = version
        self._longest_s = longest_s
        self._by_work = by_work
        self._seconds = seconds
        self.groups_max, self.members_max = most

    @property
    def has_rates(self) -> bool:
        """Whether any rate of this client is limited."""
        return bool(self._seconds) or any(self._by_work.values())

    @property
    def has_most(self) -> bool:
        """Whether the groups or the members of this client are limited."""
        return self.groups_max is not None or self.members_max is not None

    def note(self, work: Work, now: float) -> float:
        """Note a request; for how many seconds the client is throttled."""
        used = self._by_work[work]
        for usage, limit in used:
            usage.record(now, 1 / limit)
        return self._compute_throttle_s((*used, *self._seconds), now)

    def compute_wait_s(self, work: Work, now: float) -> float:
        """How long the client has to wait before it may do this; nothing is noted."""
        return max(
            (usage.compute_over_s(now, 1 / limit) for usage, limit in self._by_work[work]),
            default=0.0,
        )

    def note_time(self, now: float, seconds: float) -> float:
        """Note time of the event loop; for how many seconds the client is throttled."""
        for usage, limit in self._seconds:
            usage.record(now, seconds * 100 / limit)
        return self._compute_throttle_s(self._seconds, now)

    def _compute_throttle_s(self, used: tuple[_Used, ...], now: float) -> float:
        over_s = max((usage.compute_over_s(now) for usage, _ in used), default=0.0)
        return min(over_s, self._longest_s)


class ClientQuotas:
    """The quotas of a server, and their use. Times are in seconds of one steady clock.

    ``index`` is the coordinator's: what replay changes there is in force with the next request.
    ``throttled_s`` adds up the time by door for which requests were throttled.
    """

    __slots__ = ("_kept", "_known", "_settings", "holdings", "index", "throttled_s")

    def __init__(self, settings: QuotaSettings | None = None) -> None:
        self.index = QuotaIndex()
        self._settings = settings or QuotaSettings()
        self._known: WeakValueDictionary[_Named, Usage] = WeakValueDictionary()
        self._kept: OrderedDict[_Named, tuple[Usage, float]] = OrderedDict()
        """With the time at which each was last looked for."""
        self.holdings = Holdings()
        self.throttled_s: dict[str, float] = {}

    @property
    def is_active(self) -> bool:
        """Whether requests have to be looked at at all."""
        return self.index.is_looked_at

    def note_throttled(self, door: str, seconds: float) -> None:
        """Note that a request was throttled."""
        self.throttled_s[door] = self.throttled_s.get(door, 0.0) + seconds

    def check_held(
        self, caller: Caller, meter: ClientMeter, held: Held, is_held: IsHeld, now: float
    ) -> None:
        """Raise unless the caller may make this group or member, or has it already."""
        if meter.has_most:
            most = {"groups_max": meter.groups_max, "members_max": meter.members_max}
            self.holdings.check(find_user(caller), held, is_held, now, **most)

    def observe_held(
        self, caller: Caller, meter: ClientMeter, held: Held, is_held: IsHeld, now: float
    ) -> None:
        """Note that the caller speaks for this member."""
        if meter.has_most:
            self.holdings.observe(find_user(caller), held, is_held, now)

    def find_meter(self, caller: Caller, now: float) -> ClientMeter:
        """The meter of a client; those of one user, client id or address share what they use."""
        of_client = self.index.find_of_client(find_user(caller), caller.client_id)
        of_address = self.index.find_of_address(*find_address(caller.client_host))

        def find(*keys: str) -> tuple[_Used, ...]:
            limits = (
                (key, each[key]) for each in (of_client, of_address) for key in keys if key in each
            )
            return tuple(self._use(key, limit, now) for key, limit in limits)

        return ClientMeter(
            self.index.version,
            self._settings.quota_window_size_seconds,
            {
                work: find(REQUEST_RATE) if work.value is None else find(REQUEST_RATE, work.value)
                for work in Work
            },
            find(REQUEST_PERCENTAGE),
            (_find_most(of_client, GROUPS_MAX), _find_most(of_client, MEMBERS_MAX)),
        )

    def find_connection_rate(self, client_host: str, now: float) -> _Used | None:
        """The rate of the connections from an address, if it is limited by a quota."""
        limit = self.index.find_connection_rate(*find_address(client_host))
        return None if limit is None else self._use("connections", limit, now)

    def make_usage(self) -> Usage:
        """What may be used at once is what all windows but the present one would allow."""
        settings = self._settings
        windows = max(settings.quota_window_num - 1, 1)
        return Usage(windows * settings.quota_window_size_seconds)

    def _use(self, key: str, limit: Limit, now: float) -> _Used:
        named = key, _shorten(limit.who)
        usage = self._known.get(named)
        if usage is None:
            self._forget(now)
            usage = self._known[named] = self.make_usage()
        usage.change_limit(now, limit.value)
        self._kept[named] = usage, now
        self._kept.move_to_end(named)
        return usage, limit.value

    def _forget(self, now: float) -> None:
        """Forget a few that nobody has looked for since they were idle, and one if it must be.

        One that a connection still has is found again until the connection is closed.
        """
        settings = self._settings
        forget_s = 3 * settings.quota_window_num * settings.quota_window_size_seconds
        for named, (usage, looked_at) in list(islice(self._kept.items(), 2)):
            if len(self._kept) >= USAGES_MAX or (now - looked_at > forget_s and usage.is_idle(now)):
                del self._kept[named]
            else:
                self._kept.move_to_end(named)


def find_user(caller: Caller) -> str:
    """The user that Kafka's quotas name: the principal without its type."""
    return caller.principal.partition(":")[2]


def _find_most(limits: dict[str, Limit], key: str) -> int | None:
    return int(limits[key].value) if key in limits else None


def _shorten(who: QuotaEntity) -> QuotaEntity:
    return QuotaEntity(*(name if name is None else _shorten_name(name) for name in who))


def _shorten_name(name: str) -> str:
    if len(name) <= _NAME_MAX:
        return name
    return "\0" + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=24).hexdigest()
