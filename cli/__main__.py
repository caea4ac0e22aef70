"""`python -m cli`: the same as the command `muster`."""

from cli.main import main

main()
