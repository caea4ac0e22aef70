"""Logins at the cluster in the names of clients of both doors."""
