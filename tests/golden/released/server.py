"""Runs the server of the released code, which has no other commands.

``python tests/golden/released/server.py --data-dir DIR ...`` with ``PYTHONPATH`` set to that code.
"""

import os
import sys


def main() -> None:
    """As ``muster serve``."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    from cli.errors import CommandError
    from cli.options import resolve_settings
    from cli.serve.serve_loop import run_serve

    try:
        run_serve(resolve_settings(sys.argv[1:], None), (), names_topics=False)
    except CommandError as error:
        sys.exit(f"muster: {error.message}")


if __name__ == "__main__":
    main()
