"""Configs of groups: how they are shown and changed."""
