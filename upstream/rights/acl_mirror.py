"""Reads the ACLs of the cluster again and again, and has requests decided by them.

Nothing is allowed before they were read. A cluster that cannot be reached leaves the last known
ACLs in force, as brokers do that have lost their controller: nothing that Muster does for a client
happens without the cluster anyway. A cluster that answers and refuses to show them ends that after
``stale_max_ms``, since rights that are taken away would never be noticed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.codec.client_frames import ClientRequest
from model.errors import ErrorCode
from security.acl_index import AclIndex
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.rights.acl_rows import Known, NotUnderstood, apply_change, compute_change
from upstream.rights.exceptions import Exceptions, find_exceptions
from upstream.rights.mirrored_authorizer import MirroredAuthorizer
from upstream.rights.needed_rights import CLUSTER_RIGHT, describe_missing
from upstream.statistics import UpstreamStatistics

logger = logging.getLogger("muster.upstream")

DESCRIBE_ACLS: Final = 29
_ANY: Final = 1
_ALL: Final = {
    "resource_type_filter": _ANY,
    "resource_name_filter": None,
    "pattern_type_filter": _ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": _ANY,
    "permission_type": _ANY,
}
_EXCEPTIONS_S: Final = 300.0
"""How often the brokers are asked for their settings, which change with a restart."""


class AclsRefused(Exception):
    """The cluster answers, and does not show its ACLs."""


@dataclass(frozen=True, slots=True)
class AclMirrorSettings:
    """``principal``: Muster's own in the cluster, for messages.

    ``exceptions``: Muster's own settings of that kind, for what the brokers do not show.
    """

    principal: str
    exceptions: Exceptions
    parse_super_users: Callable[[str], frozenset[str]]
    interval_ms: int = 5_000
    stale_max_ms: int = 60_000
    timeout_ms: int = 5_000


class AclMirror:
    """Keeps ``authorizer`` up to date from ``start`` to ``stop``."""

    # The ACLs and their index, the task, and what is told of both: two lives with one end.

    def __init__(
        self,
        cluster: Cluster,
        authorizer: MirroredAuthorizer,
        settings: AclMirrorSettings,
        statistics: UpstreamStatistics | None = None,
    ) -> None:
        self._cluster = cluster
        self._authorizer = authorizer
        self._settings = settings
        self._statistics = statistics or UpstreamStatistics()
        self._known: Known = {}
        self._index = AclIndex()
        self._exceptions = settings.exceptions
        self._exceptions_due_s = 0.0
        self._refused_since_s: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_read = asyncio.Event()
        self.fault: str | None = None
        """Why the ACLs could not be read lately, in one line."""

    @property
    def count(self) -> int:
        """The number of ACLs that are known."""
        return len(self._known)

    def start(self) -> None:
        """Begin to read."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Read no more; what is known stays in force."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait_until_read(self) -> None:
        """Wait until the ACLs were read once: nobody can be served before."""
        await self._is_read.wait()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            await self._try_to_read()
            took_s = loop.time() - began_s
            await asyncio.sleep(max(0.0, self._settings.interval_ms / 1_000 - took_s))

    async def _try_to_read(self) -> None:
        try:
            await self.read()
        except ClusterUnreachable as error:
            self._note(f"the cluster's ACLs could not be read: {error}")
        except (AclsRefused, NotUnderstood) as error:
            self._note(str(error))
            self._check_stale()
        except Exception:
            # A mirror that ends would leave rights in force that were taken away.
            logger.exception("upstream_acls_failed")
            self._note("the cluster's ACLs could not be read, the log says why")
            self._check_stale()
        else:
            self._refused_since_s = None
            self._note(None)
            self._is_read.set()

    def _check_stale(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._refused_since_s is None:
            self._refused_since_s = now_s
        if now_s - self._refused_since_s >= self._settings.stale_max_ms / 1_000:
            self._authorizer.allow_nobody()

    def _note(self, fault: str | None) -> None:
        if fault is not None and fault != self.fault:
            logger.warning("upstream_acls_fault fault=%s", fault)
        elif fault is None and self.fault is not None:
            logger.info("upstream_acls_read count=%d", self.count)
        self.fault = fault

    async def read(self) -> None:
        """Read them once.

        Raises ``ClusterUnreachable``, ``AclsRefused``, ``NotUnderstood``.
        """
        timeout_ms = self._settings.timeout_ms
        answer = await self._cluster.ask(ClientRequest(DESCRIBE_ACLS, _ALL), timeout_ms=timeout_ms)
        match answer.error_code:
            case ErrorCode.NONE:
                await self._take(answer.resources)
                self._statistics.acls_mirrored_s = time.monotonic()
            case ErrorCode.SECURITY_DISABLED:
                self._known.clear()
                self._index = AclIndex()
                self._statistics.acls_mirrored_s = None
                self._authorizer.allow_all()
            case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise AclsRefused(describe_missing(self._settings.principal, CLUSTER_RIGHT))
            case code:
                said = " ".join(str(answer.error_message or "").split())[:200]
                raise AclsRefused(f"the cluster does not show its ACLs: error {code} {said}")

    async def _take(self, resources: Any) -> None:
        await self._read_exceptions()
        change = await compute_change(self._known, resources)
        if change:
            self._index = await apply_change(self._index, self._known, change)
        found = self._exceptions
        self._authorizer.use_acls(
            self._index, found.super_users, allows_without_acl=found.allows_without_acl
        )

    async def _read_exceptions(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s < self._exceptions_due_s:
            return
        settings = self._settings
        try:
            self._exceptions = await find_exceptions(
                self._cluster, settings.exceptions, settings.parse_super_users, settings.timeout_ms
            )
        except ClusterUnreachable:
            # Muster's own settings hold, or what was shown before.
            return
        self._exceptions_due_s = now_s + _EXCEPTIONS_S
