"""Readable logs of groups: segments and stores, their identity, and positions in them."""
