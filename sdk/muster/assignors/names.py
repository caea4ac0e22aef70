"""The names of the server-side assignors, for whoever reads settings: importing this is quick."""

from typing import Final

BUILT_IN_ASSIGNORS: Final = ("uniform", "range", "rack", "weighted")
"""What ``consumer.assignors`` may name, beside what the server's own list has.

``muster.assignors.registry`` has the functions.
"""
