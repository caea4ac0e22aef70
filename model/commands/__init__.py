"""Commands: requests to the coordinator, from clients and from the coordinator itself.

A command is frozen data. The front ends have decoded it, checked its size, and authenticated and
authorised its caller; wire sentinels (-1, null, "") have become ``None`` or ``UNCHANGED``. The
runtime supplies time and random ids.
"""
