"""Becomes another program, which dies with the demo.

    python -m cli.demo.child cli.demo.kafka.run_command PROGRAM [ARGUMENT...]

``cli.demo.child`` asks the kernel for that, and what it asked for outlives the change of program.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.execv(sys.argv[1], sys.argv[1:])
