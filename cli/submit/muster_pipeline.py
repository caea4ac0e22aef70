"""`muster pipeline …` for ``spark-submit``: ``spark-submit muster_pipeline.py audit --path P``.

All commands and options are the same; Spark's master is that of ``spark-submit``. Python puts the
folder of a script before all others, so that no other file is in this one: there it would be taken
for a package of its name.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from cli.main import main

    sys.argv = ["muster", "pipeline", *sys.argv[1:]]
    main()
