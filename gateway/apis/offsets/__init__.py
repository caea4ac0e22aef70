"""Committed-offset APIs, transactional and plain."""
