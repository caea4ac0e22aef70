"""Resolved settings of the core and the runtime; ``cli.settings`` has their names and bounds."""

from __future__ import annotations

from dataclasses import dataclass

from model.configs.assignor_configs import NO_ASSIGNOR_CONFIGS, AssignorConfigs
from model.configs.migration_policy import BIDIRECTIONAL

MEMBERS_COMMIT = "members"
"""Transactional commits follow the rule of OffsetCommit: if a group has members, only they may."""
ALL_COMMIT = "all"
"""A producer may also commit without naming a member, as in Kafka, which verifies transactions."""
NOBODY_COMMITS = "none"
"""Transactional offset commits are refused."""
TRANSACTIONAL_COMMITS = (MEMBERS_COMMIT, ALL_COMMIT, NOBODY_COMMITS)


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """One field per setting, named as Kafka's setting with underscores for dots if it has one."""

    # More than 15 attributes: one field is one setting.

    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_leave_grace_ms: int = 0
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_assignment_interval_ms: int = 0
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_migration_policy: str = BIDIRECTIONAL
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer")
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_regex_batch_refresh_min_interval_ms: int = 100
    group_regex_max_bytes: int = 4_096
    group_initial_rebalance_delay_ms: int = 3_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 9_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_expiry: str = "on"
    offsets_transactional_commits: str = MEMBERS_COMMIT
    transaction_max_timeout_ms: int = 900_000
    group_id_max_bytes: int = 32_767
    group_subscriptions_max: int = 10_000
    group_member_metadata_max_bytes: int = 4 * 1024 * 1024
    group_metadata_max_bytes: int = 128 * 1024 * 1024
    assignor_configs: AssignorConfigs = NO_ASSIGNOR_CONFIGS
    """Set per group only; the server has none."""
    assignor_inline_budget_ms: int = 5
    assignor_time_limit_ms: int = 30_000
    log_min_free_bytes: int = 256 * 1024 * 1024
    flush_records_max: int = 5_000
    log_checkpoint_interval_ms: int = 5_000
    log_checkpoint_bytes: int = 32 * 1024 * 1024
    log_checkpoint_keys: int = 10_000
    log_history_ms: int = 604_800_000
    log_history_bytes: int = 1_073_741_824
    log_history_check_interval_ms: int = 60_000
