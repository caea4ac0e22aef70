"""Audits of a log: the invariants of groups, and the migration readiness of classic groups."""
