"""`muster demo`: two real groups, a producer, deaths and a restart, and what was checked of it.

The scene runs in this process; the server, every consumer and every member is a process of its own,
so that a kill is a kill. Each worker writes down when it owned what and what was acknowledged;
the summary is computed from these records and from what the server said, not from the script.
"""
