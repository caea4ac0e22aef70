"""The names of the built-in server-side assignors, in a module that is cheap to import."""

from typing import Final

BUILT_IN_ASSIGNORS: Final = ("uniform", "range", "rack", "weighted")
"""Names that ``consumer.assignors`` may have in addition to the server's own list.

``muster.assignors.registry`` has the assignors.
"""
