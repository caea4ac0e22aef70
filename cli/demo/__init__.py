"""`muster demo`: two groups with real clients, a producer, kills and a restart, all of it checked.

The scene runs in this process; the server, every consumer and every member run in processes of
their own, so that each can be killed. Each worker records when it owned which partitions and
which commits were acknowledged. The summary is computed from these records and from the server's
answers, not from the script.
"""
