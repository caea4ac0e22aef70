"""The settings of client quotas."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """Kafka's: how many windows are looked at, and how long each is."""

    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
