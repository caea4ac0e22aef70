"""Committed offsets of groups, set from outside: resets and their undoing."""
