"""`muster pipeline` for ``spark-submit``: ``spark-submit muster_pipeline.py audit --path P``.

Commands and options are the same; the Spark master is that of ``spark-submit``. Python puts a
script's folder first on its path, so this folder has no other file: it would shadow a package of
the same name.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from cli.main import main

    sys.argv = ["muster", "pipeline", *sys.argv[1:]]
    main()
