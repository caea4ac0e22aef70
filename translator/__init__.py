"""Classic requests on consumer groups, and online upgrade and downgrade of groups. Pure.

Rows (T1 and the like) are those of tests/scenarios/README.md.
"""
